"""Claims: requested, given a pending reason, evicted and released."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from apps.accounts.models import Team, User
from apps.quotas.models import Allocation, Claim, ClaimTransition, Nomination, Queue
from apps.quotas.selectors.queues import any_queue_closed_reason
from apps.quotas.selectors.snapshots import lock_queue_snapshots
from apps.quotas.services.admissions import nominations_create, nominations_reassign
from apps.quotas.services.queue_trees import queue_rows_lock_shared
from apps.quotas.services.usage_ledger import usage_record_releases
from controlplane.domain.common.reasons import ReasonedError
from controlplane.domain.quotas.claims import (
    CLAIM,
    NOT_EVALUATED_REASON,
    ClaimEvent,
    ClaimState,
    GangShape,
    ReleaseReason,
)
from controlplane.domain.quotas.queues import QueueSnapshot
from controlplane.domain.scheduling.plans import ClaimEviction, PendingClaim
from controlplane.outbox.messages import publish_message, publish_messages
from controlplane.persistence.bulk_writes import bulk_insert_rows
from controlplane.persistence.reasons import reason_as_json
from controlplane.persistence.state_transitions import (
    RowTransition,
    apply_transition,
    apply_transitions,
)
from controlplane.persistence.transactions import execute, pipelined_statements

#: Large columns of a claim.
_DOCUMENTS = (
    "shape",
    "chips",
    "speeds",
    "where",
    "placement",
    "explanation",
    "explanation_numbers",
)


class QueueNotAcceptingClaims(Exception):
    """The queue does not accept new claims; the message says why, and what to do."""


class PendingLimitExceeded(ReasonedError):
    """A user has too many pending claims; the message has the user, count, limit, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWorkload:
    """The workload of a claim; it may have many claims over time."""

    #: ``job`` or ``deployment``.
    kind: str
    uid: str
    name: str
    #: The user who submitted it.
    user: User | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTerms:
    """Constraints and preferences of a claim beyond cards, and how it may be preempted."""

    #: The owner can checkpoint, stop and resume later.
    preemptible: bool = False
    #: Expected runtime on the first chip.
    runtime: timedelta | None = None
    #: Speed on each chip relative to the first; absent means 1.
    speeds: Mapping[str, float] = field(default_factory=dict)
    #: Required node labels.
    selector: Mapping[str, str] = field(default_factory=dict)
    #: Network level within one domain of which all replicas must be, and the same as a preference.
    within: str = ""
    near: str = ""
    #: Number of the first chips that are equally preferred.
    equal_chips: int = 1
    #: Queueing time, if it resumes an evicted workload.
    in_line_since: datetime | None = None
    #: The workload was accepted before: accepted even if the queue does not accept new claims.
    continues: bool = False

    def node_constraints_json(self) -> dict[str, Any]:
        """Node constraints as JSON, without empty ones."""
        asked = {
            "selector": dict(self.selector),
            "within": self.within,
            "near": self.near,
            "equal_chips": self.equal_chips if self.equal_chips > 1 else 0,
        }
        return {key: value for key, value in asked.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    #: Kind and uid.
    owner: tuple[str, str]
    team: Team
    queue: Queue
    shape: GangShape
    chips: Sequence[str]
    priority: int = 0
    work: ClaimWorkload | None = None
    terms: ClaimTerms = field(default_factory=ClaimTerms)

    def claim(self) -> Claim:
        """The unsaved row.

        :raises ValueError: if it accepts no chip; it would be pending forever.
        """
        if not self.chips:
            raise ValueError("a claim must accept at least one chip, got none")
        work, terms = self.work, self.terms
        kind, uid = self.owner
        return Claim(
            owner_kind=kind,
            owner_uid=uid,
            team=self.team,
            queue=self.queue,
            shape=self.shape.as_json(),
            card_count=self.shape.cards,
            chips=list(self.chips),
            priority=self.priority,
            work_kind=work.kind if work else "",
            work_uid=work.uid if work else "",
            work_name=work.name if work else "",
            user=work.user if work else None,
            speeds=dict(terms.speeds),
            where=terms.node_constraints_json(),
            runtime=None if terms.runtime is None else round(terms.runtime.total_seconds()),
            preemptible=terms.preemptible,
            in_line_since=terms.in_line_since,
            explanation=NOT_EVALUATED_REASON,
        )


@transaction.atomic
def claims_create(*, requests: Sequence[ClaimRequest]) -> list[Claim]:
    """A new pending claim for each of the requests, or none at all.

    :raises ValueError: if one accepts no chip; it would be pending forever.
    :raises QueueNotAcceptingClaims: if one of the queues, or one above it, does not accept new claims.
    :raises PendingLimitExceeded: if a user would have too many pending claims.
    """
    _check_pending_limits(requests)
    claims = [request.claim() for request in requests]
    bulk_insert_rows(claims, numbered=True)
    # Checked under the locks: the queues do not change until the claims are committed.
    queues = {each.queue.pk: each.queue for each in requests}
    queue_rows_lock_shared(*queues.values())
    fresh = {each.queue.pk: each.queue for each in requests if not each.terms.continues}
    if fresh and (refusal := any_queue_closed_reason(fresh.values())):
        raise QueueNotAcceptingClaims(refusal)
    nominations_reassign(claims=claims)
    # One message for all of them: the scheduler considers all pending claims.
    if claims:
        publish_message("claim.requested", claim_uid=claims[0].uid)
    return claims


def pending_limit_check(*, user: User, more: int) -> None:
    """Check that the user may submit ``more`` claims. Blocks other submissions of the user until the commit.

    :raises PendingLimitExceeded: if the limit would be exceeded.
    """
    limit = settings.NINEFOLD_PENDING_PER_USER
    if not limit:
        return
    # Concurrent submissions would not count each other.
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    pending = Claim.objects.filter(user=user, state=ClaimState.PENDING).count()
    if pending + more > limit:
        raise PendingLimitExceeded(
            "claim.pending_limit.exceeded",
            "user {user} has {pending} pending claims and submits {submitted} more; "
            "the limit is {limit} per user; wait until some have started, or cancel "
            "some",
            user=user.username,
            pending=pending,
            submitted=more,
            limit=limit,
        )


def _check_pending_limits(requests: Sequence[ClaimRequest]) -> None:
    """Check limits for new submissions; claims after an eviction or a failure were submitted before."""
    users: dict[int, User] = {}
    more: Counter[int] = Counter()
    for each in requests:
        user = each.work.user if each.work else None
        if user is not None and not each.terms.continues and each.terms.in_line_since is None:
            users[user.pk] = user
            more[user.pk] += 1
    for key in sorted(users):
        pending_limit_check(user=users[key], more=more[key])


def claims_reasons_update(*, refusals: Sequence[PendingClaim]) -> None:
    """Store changed reasons of claims that are still pending; one statement for all of them."""
    if not refusals:
        return
    # A claim that was admitted meanwhile keeps that reason: its state is checked under its lock.
    execute(
        """
        UPDATE quotas_claim AS claim
           SET explanation = told.reason, explanation_numbers = told.numbers
          FROM json_to_recordset(%(told)s::json) AS told(uid text, reason jsonb, numbers jsonb)
         WHERE claim.uid = told.uid AND claim.state = %(waiting)s AND claim.explanation <> told.reason
        """,
        {
            # One JSON parameter is much faster than arrays of texts.
            "told": json.dumps(
                [
                    {
                        "uid": each.claim,
                        "reason": reason_as_json(each.reason),
                        "numbers": dict(each.numbers),
                    }
                    for each in refusals
                ]
            ),
            "waiting": ClaimState.PENDING.value,
        },
    )


@transaction.atomic
def claim_revoke(
    *,
    claim: Claim,
    reason: ReleaseReason,
    grace: timedelta,
    at: datetime,
    explanation: str,
    for_claim: Claim | None = None,
) -> None:
    """Evict the claim: its owner has to checkpoint and stop. The cards stay allocated until the release.

    :param for_claim: the pending claim for which its cards are nominated then.
    :raises IllegalTransition: if the claim has no cards.
    """
    apply_transition(
        claim,
        CLAIM,
        ClaimEvent.REVOKE,
        into=ClaimTransition,
        at=at,
        reason=explanation,
        release_reason=reason,
        revoke_by=at + grace,
        revoked_for=for_claim,
    )
    publish_message("claim.revoking", claim_uid=claim.uid)


def claim_release(*, uid: str, reason: ReleaseReason, at: datetime) -> bool:
    """Release the cards. Called only by the owner, when nothing of the claim runs any more.

    Returns whether this call released it: False if it was released before, or does not exist.
    """
    return uid in claims_release(uids=(uid,), reason=reason, at=at)


@transaction.atomic
def claims_release(*, uids: Sequence[str], reason: ReleaseReason, at: datetime) -> frozenset[str]:
    """``claim_release`` for many; returns the uids of those that this call released."""
    rows = Claim.objects.select_for_update(no_key=True, of=("self",)).select_related("revoked_for")
    # Request and placement are large and not needed here.
    rows = rows.defer(*_DOCUMENTS, *(f"revoked_for__{name}" for name in _DOCUMENTS))
    claims = list(rows.filter(uid__in=uids).exclude(state=ClaimState.RELEASED).order_by("uid"))
    with pipelined_statements():
        ends = usage_record_releases(claims=claims, at=at)
        nominations_create(released=claims, at=at)
        for ended in set(ends.values()):
            those = [pk for pk, end in ends.items() if end == ended]
            Allocation.objects.filter(claim__in=those, released_at=None).update(released_at=ended)
        steps = []
        for claim in claims:
            # The reason of an eviction takes precedence: it was preempted, even if it then "finished".
            final_reason = ReleaseReason(claim.release_reason) if claim.release_reason else reason
            changes = {
                "release_reason": final_reason,
                "released_at": ends[claim.pk],
                "metered_until": claim.metered_until,
            }
            steps.append(RowTransition(row=claim, reason=final_reason, changes=changes))
        apply_transitions(
            steps, CLAIM, ClaimEvent.RELEASE, into=ClaimTransition, at=at, locked=True
        )
        Nomination.objects.filter(claim__in=ends).delete()
        # One message for all of them: the scheduler considers all free cards.
        publish_messages("claim.released", ({"claim_uid": claim.uid} for claim in claims[:1]))
    return frozenset(claim.uid for claim in claims)


def claim_progress_update(
    *, uid: str, progress: float, checkpointed_at: datetime | None = None
) -> None:
    """Store the progress (0 to 1) and the time of the last checkpoint, as reported by the owner."""
    changes: dict[str, object] = {"progress": progress}
    if checkpointed_at is not None:
        changes["checkpointed_at"] = checkpointed_at
    Claim.objects.filter(uid=uid).update(**changes)


@transaction.atomic
def claims_revoke(
    *,
    revocations: Sequence[ClaimEviction],
    queues: Mapping[str, QueueSnapshot],
    grace: timedelta,
    at: datetime,
) -> tuple[str, ...]:
    """Evict each claim for its beneficiary; returns the uids of the evicted claims.

    Skips claims whose beneficiary is no longer pending, and those that are stopping or have stopped. Skips all if
    the queues have changed since the plan: the next cycle decides with the new quotas.

    :param queues: queues of the plan's snapshot.
    """
    uids = {uid for each in revocations for uid in (each.claim, each.beneficiary)}
    rows = Claim.objects.select_for_update(no_key=True, of=("self",)).filter(uid__in=uids)
    claims = {claim.uid: claim for claim in rows.order_by("uid")}
    if not _are_queues_unchanged(queues):
        return ()
    steps = []
    for revocation in revocations:
        victim, beneficiary = claims.get(revocation.claim), claims.get(revocation.beneficiary)
        if victim is None or victim.state != ClaimState.ADMITTED or not victim.preemptible:
            continue
        if beneficiary is None or beneficiary.state != ClaimState.PENDING:
            continue
        changes = {
            "release_reason": ReleaseReason.PREEMPTED,
            "revoke_by": at + grace,
            "revoked_for": beneficiary,
        }
        steps.append(RowTransition(row=victim, reason=revocation.reason, changes=changes))
    apply_transitions(steps, CLAIM, ClaimEvent.REVOKE, into=ClaimTransition, at=at, locked=True)
    publish_messages("claim.revoking", ({"claim_uid": step.row.uid} for step in steps))
    return tuple(step.row.uid for step in steps)


@transaction.atomic
def claims_evict(
    *,
    cards: Mapping[int, str],
    nodes: Mapping[str, str],
    grace: timedelta,
    at: datetime,
    reason: ReleaseReason = ReleaseReason.FAULT,
    kinds: Collection[str] = (),
) -> tuple[Claim, ...]:
    """Evict every claim that uses one of these cards or runs on one of these nodes: the whole gang.

    Call it in the transaction that isolates the cards, under their locks, so that none is allocated meanwhile. The
    grace period of claims that are stopping already is shortened. The cards stay allocated until the release.

    :param cards: primary key → why.
    :param nodes: uid → why; includes claims that run there without cards.
    :param kinds: kinds of workload, such as ``job``; empty means all.
    :return: the claims that this call evicted.
    """
    holding = Allocation.objects.filter(card__in=cards, released_at=None)
    claim_explanation = {
        claim: cards[card] for claim, card in holding.values_list("claim_id", "card_id")
    }
    which = Q(pk__in=claim_explanation)
    for node in nodes:
        which |= Q(placement__contains=[{"node": node}])
    rows = Claim.objects.select_for_update(no_key=True, of=("self",)).filter(which)
    rows = rows.filter(state__in=(ClaimState.ADMITTED, ClaimState.REVOKING))
    if kinds:
        rows = rows.filter(work_kind__in=kinds)
    steps, late = [], []
    for claim in rows.order_by("uid"):
        if claim.state == ClaimState.REVOKING:
            late.append(claim.pk)
            continue
        explanation = claim_explanation.get(claim.pk) or next(
            nodes[part["node"]] for part in claim.placement if part["node"] in nodes
        )
        changes = {"release_reason": reason, "revoke_by": at + grace, "revoked_for": None}
        steps.append(RowTransition(row=claim, reason=explanation, changes=changes))
    Claim.objects.filter(pk__in=late, revoke_by__gt=at + grace).update(revoke_by=at + grace)
    apply_transitions(steps, CLAIM, ClaimEvent.REVOKE, into=ClaimTransition, at=at, locked=True)
    publish_messages("claim.revoking", ({"claim_uid": step.row.uid} for step in steps))
    return tuple(step.row for step in steps)


def _are_queues_unchanged(queues: Mapping[str, QueueSnapshot]) -> bool:
    stated = {uid: replace(view, used={}) for uid, view in queues.items()}
    now = lock_queue_snapshots(stated)
    return all(now.get(uid) == view for uid, view in stated.items())
