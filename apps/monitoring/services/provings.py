"""The moves of what is tested: a burn-in begins, passes or fails, and its Launch is forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from apps.monitoring.models import Isolation, IsolationTransition
from apps.monitoring.services.burn_ins import BurnInResult
from controlplane.domain.health.isolations import ISOLATION, IsolationEvent, IsolationState
from controlplane.outbox.messages import publish
from controlplane.persistence.state_transitions import apply_transition

#: In the evidence: the Launch that may be on its cluster still.
LAUNCH = "launch"


def launch_name(row: Isolation) -> str:
    """Of the burn-in that it began last; derived from the row, so that launching twice is launching once."""
    return f"burnin-{row.uid}-{row.burn_ins}"


@transaction.atomic
def burn_in_begin(*, row: Isolation, at: datetime) -> None:
    """From now on it is being tested; its Launch is for the turns to make.

    :raises IllegalTransition: if it is not empty any more.
    """
    row.burn_ins += 1
    evidence = {LAUNCH: launch_name(row)}
    changes: dict[str, Any] = {"burn_ins": row.burn_ins, "evidence": evidence}
    changes |= {"tested_at": at, "test_asked_at": None, "proved_at": None}
    reason = f"burn-in {row.burn_ins}"
    apply_transition(
        row,
        ISOLATION,
        IsolationEvent.TEST,
        into=IsolationTransition,
        at=at,
        reason=reason,
        **changes,
    )


@transaction.atomic
def burn_in_end(*, row: Isolation, result: BurnInResult, at: datetime) -> None:
    """Keep what was found. Passed, it stays where it is until it is decided that it goes back; failed, it is empty
    again and waits for a person.

    :raises IllegalTransition: if it is not being tested any more.
    """
    evidence = _evidence(row, result)
    if not result.passed:
        apply_transition(
            row,
            ISOLATION,
            IsolationEvent.FAIL,
            into=IsolationTransition,
            at=at,
            reason=f"the burn-in failed: {result.words}",
            evidence=evidence,
        )
        publish("isolation.unproved", isolation_uid=row.uid)
        return
    # A burn-in that began meanwhile is not proved by what an earlier one found.
    testing = Isolation.objects.filter(
        pk=row.pk, state=IsolationState.TESTING, ended_at=None, burn_ins=row.burn_ins
    )
    testing.update(evidence=evidence, proved_at=at)


@transaction.atomic
def burn_in_disprove(*, row: Isolation, reason: str, at: datetime) -> None:
    """What it passed counts no more: it is empty again and waits for a person.

    :raises IllegalTransition: if it is not being tested any more.
    """
    apply_transition(
        row,
        ISOLATION,
        IsolationEvent.FAIL,
        into=IsolationTransition,
        at=at,
        reason=reason,
        proved_at=None,
    )
    publish("isolation.unproved", isolation_uid=row.uid)


def _evidence(row: Isolation, result: BurnInResult) -> Mapping[str, Any]:
    kept = {LAUNCH: row.evidence[LAUNCH]} if LAUNCH in row.evidence else {}
    return {**kept, "passed": result.passed, "words": result.words, "result": dict(result.content)}


@transaction.atomic
def burn_in_refuse(*, row: Isolation, reason: str) -> None:
    """Nothing can test it there: it waits for a person, who is told why."""
    refused = Isolation.objects.filter(pk=row.pk, ended_at=None).update(
        evidence={"impossible": reason}, test_asked_at=None, burn_ins=row.burn_ins + 1
    )
    if refused:
        publish("isolation.unproved", isolation_uid=row.uid)


def burn_in_forget(*, row: Isolation) -> None:
    """Its Launch is gone from the cluster."""
    kept = {name: value for name, value in row.evidence.items() if name != LAUNCH}
    Isolation.objects.filter(pk=row.pk, burn_ins=row.burn_ins).update(evidence=kept)
