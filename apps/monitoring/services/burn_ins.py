"""Burn-in runs: an isolated card is tested by a real workload on exactly that card.

The program is ``ninefold_runtime.burnin``; it runs as a Launch of its own, in the environment of an engine whose
PyTorch supports the chip. The last line of its log is ``RESULT`` with the measurements.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from typing_extensions import TypedDict

from apps.fleet.models import Card, Node
from apps.monitoring.models import Isolation
from apps.monitoring.services.isolations import isolation_transition
from controlplane.domain.common.accelerators import CardState, Chip, ChipKind, Dtype
from controlplane.domain.common.reasons import Reason, ReasonedError
from controlplane.domain.common.resources import Millicpu, Resources
from controlplane.domain.health.isolations import IsolationEvent, IsolationState
from controlplane.outbox.messages import publish_message
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import ClusterAdapter, ObservedLaunch
from controlplane.ports.engines import ROLES, EngineTask, RenderRequest
from controlplane.ports.launches import Launch, LaunchPlacement

#: Has torch for the processor and for CUDA.
_ENGINE = "transformers"
_ROLE = ROLES[EngineTask.SCRIPT]
_SECONDS = 60
#: Beyond the tests themselves: preparing the environment and loading PyTorch.
_SLACK = timedelta(minutes=10)
#: Share of the vendor's dense rate that a large matrix product reaches on a healthy card.
_FLOOR = 0.6
#: The backend of PyTorch itself, which needs no vendor library.
_PLAIN_BACKEND = "gloo"
_RESULT = "RESULT "
_TAIL_BYTES = 64 * 1024
#: Kinds of clusters that only record launches and run nothing.
_NOTHING_RUNS = frozenset({"simulated"})


class BurnInImpossible(ReasonedError):
    """No program can test the card there; the message says why. A user has to decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnInResult:
    """How a burn-in ended."""

    passed: bool
    #: The finding, for display: the first failure, or why there is no result.
    message: str
    #: As the program wrote it; empty where it wrote nothing.
    content: Mapping[str, Any] = field(default_factory=dict)


def burn_in_launch(*, name: str, node: Node, cards: Sequence[Card]) -> Launch:
    """The Launch that tests these cards of the node and nothing else. Rendering is deterministic.

    :raises BurnInImpossible: if the cluster runs no programs, or no environment supports the chip.
    """
    if node.cluster.kind in _NOTHING_RUNS:
        raise BurnInImpossible(
            "burn_in.cluster.not_supported",
            "a cluster of kind {kind} does not run workloads",
            kind=node.cluster.kind,
        )
    if any(card.parent_id is not None and card.state != CardState.UNKNOWN for card in cards):
        raise BurnInImpossible(
            "burn_in.card.partitioned", "a card that is partitioned into slices cannot be tested"
        )
    whole = sorted((card for card in cards if card.parent_id is None), key=lambda card: card.index)
    chips = {card.chip for card in whole}
    if len(chips) != 1:
        raise BurnInImpossible(
            Reason("burn_in.cards.missing", "the node has no cards to test")
            if not chips
            else Reason("burn_in.cards.mixed_chips", "the cards are of different chips")
        )
    chip = adapter_registry.chip_by_name(chips.pop())
    if chip is None:
        raise BurnInImpossible(
            "burn_in.chip.unknown", "no plug-in supports chip {chip}", chip=whole[0].chip
        )
    engine = adapter_registry.engine_by_name(_ENGINE)
    if wrong := engine.unsupported_reason(EngineTask.EVALUATE, chip):
        raise BurnInImpossible(
            "burn_in.chip.not_supported",
            "the burn-in program does not run on this chip: {reason}",
            reason=wrong,
        )
    launch = engine.render(
        RenderRequest(
            task=EngineTask.SCRIPT,
            name=name,
            spec={"argv": ["-m", "ninefold_runtime.burnin"]},
            chip=chip,
            placements=(
                LaunchPlacement(node=node.name, cards=tuple(card.index for card in whole)),
            ),
            inputs=(),
            labels={"kind": "burn-in", "node": node.uid},
        )
    )
    argv = ("{python}", "-m", "ninefold_runtime.burnin", "{work}/burnin.json")
    spec = json.dumps(burn_in_spec(chip, cards=len(whole)), indent=2) + "\n"
    limits = Resources(cpu=Millicpu(1000 * len(whole)))
    return replace(
        launch,
        roles=tuple(replace(role, argv=argv) for role in launch.roles),
        files={"burnin.json": spec},
        run_within=timedelta(seconds=_SECONDS) + _SLACK,
    ).limited({role.name: limits for role in launch.roles}, run_within=None)


def burn_in_spec(chip: Chip, *, cards: int) -> dict[str, Any]:
    """The spec of the program, as its ``specs`` module reads it. A rate that the vendor does not publish is not
    tested.
    """
    processor = chip.kind is ChipKind.CPU
    collectives = adapter_registry.plugin_of_chip(chip).profile().collectives
    rate = chip.peak_rates.get(Dtype.BFLOAT16)
    return {
        "kind": "burnin",
        "device": chip.torch_device,
        "cards": cards,
        "seconds": _SECONDS,
        "matrix": {
            "size": 1024 if processor else 8192,
            "dtype": "float32" if processor or rate is None else "bfloat16",
            "expected_tflops": None if rate is None else rate / 1e12,
            "floor": _FLOOR,
        },
        "memory": {"share": 0.1 if processor else 0.5},
        "collective": {
            "backend": (collectives and collectives.torch_backend) or _PLAIN_BACKEND,
            "expected_gb_s": None,
            "floor": 0.5,
        },
    }


def burn_in_result(adapter: ClusterAdapter, name: str, observed: ObservedLaunch) -> BurnInResult:
    """Of a Launch that has ended.

    :raises ClusterUnavailable: if its log cannot be read now.
    """
    chunk = adapter.log(name, role=_ROLE, index=0, offset=-_TAIL_BYTES, limit=_TAIL_BYTES)
    content = _parse_burn_in_result(chunk.content.decode(errors="replace"))
    one = observed.replicas[0] if observed.replicas else None
    if content is None:
        how = (one.message or f"exit code {one.exit_code}") if one else "nothing ran"
        return BurnInResult(
            passed=False,
            message=Reason(
                "burn_in.result.missing", "the burn-in ended without a result: {reason}", reason=how
            ),
        )
    passed = content.get("passed") is True and one is not None and one.exit_code == 0
    return BurnInResult(
        passed=passed, message=_burn_in_result_message(content, passed=passed), content=content
    )


def _parse_burn_in_result(log: str) -> Mapping[str, Any] | None:
    said = [line for line in log.splitlines() if line.startswith(_RESULT)]
    try:
        content = json.loads(said[-1].removeprefix(_RESULT)) if said else None
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _burn_in_result_message(content: Mapping[str, Any], *, passed: bool) -> str:
    tests = [test for test in content.get("tests", ()) if isinstance(test, dict)]
    if passed:
        return Reason("burn_in.result.passed", "burn-in tests passed: {count}", count=len(tests))
    failed = [test for test in tests if test.get("verdict") == "failed"]
    if not failed:
        return Reason("burn_in.result.empty", "no burn-in test was run")
    first = failed[0]
    # Version 0.1.0 of the runtime names it ``words``.
    message = first.get("message", first.get("words"))
    return Reason(
        "burn_in.result.failed",
        "test {test} of card {card} failed: {reason}",
        test=first.get("test"),
        card=first.get("card"),
        reason=message,
    )


class BurnInTestRecord(TypedDict, total=False):
    """The outcome of one test on one card, as the program writes it."""

    test: str
    card: int
    verdict: str
    measured: float | None
    expected: float | None
    unit: str
    message: str


class BurnInReport(TypedDict, total=False):
    """What the program of a burn-in writes."""

    kind: str
    passed: bool
    device: str
    seconds: float
    node: str
    torch: str
    tests: list[BurnInTestRecord]


#: What an isolation records of its last burn-in; ``words`` is the finding.
BurnInEvidence = TypedDict(  # noqa: UP013 (stored fields have earlier terms)
    "BurnInEvidence",
    {"launch": str, "passed": bool, "words": str, "result": BurnInReport, "impossible": str},
    total=False,
)


#: In the evidence: the Launch that may be on its cluster still.
LAUNCH = "launch"


def burn_in_launch_name(row: Isolation) -> str:
    """Of the burn-in that it began last; derived from the row, so that launching twice is launching once."""
    return f"burnin-{row.uid}-{row.burn_ins}"


@transaction.atomic
def burn_in_begin(*, row: Isolation, at: datetime) -> None:
    """Mark the isolation as being tested; the controller starts the Launch.

    :raises IllegalTransition: if it is no longer empty.
    """
    row.burn_ins += 1
    evidence = {LAUNCH: burn_in_launch_name(row)}
    changes: dict[str, Any] = {"burn_ins": row.burn_ins, "evidence": evidence}
    changes |= {"tested_at": at, "test_asked_at": None, "proved_at": None}
    reason = Reason("burn_in.run.started", "burn-in run {number}", number=row.burn_ins)
    isolation_transition(row, IsolationEvent.TEST, at=at, reason=reason, **changes)


@transaction.atomic
def burn_in_end(*, row: Isolation, result: BurnInResult, at: datetime) -> None:
    """Store the result. After a pass the isolation waits for the decision to release it; after a failure it is
    empty again and waits for a user.

    :raises IllegalTransition: if it is no longer being tested.
    """
    evidence = _burn_in_evidence(row, result)
    if not result.passed:
        reason = Reason("burn_in.run.failed", "the burn-in failed: {reason}", reason=result.message)
        isolation_transition(row, IsolationEvent.FAIL, at=at, reason=reason, evidence=evidence)
        publish_message("isolation.unproved", isolation_uid=row.uid)
        return
    # A burn-in that began meanwhile is not proved by what an earlier one found.
    testing = Isolation.objects.filter(
        pk=row.pk, state=IsolationState.TESTING, ended_at=None, burn_ins=row.burn_ins
    )
    testing.update(evidence=evidence, proved_at=at)


@transaction.atomic
def burn_in_revoke_pass(*, row: Isolation, reason: str, at: datetime) -> None:
    """Discard a pass: the isolation is empty again and waits for a user.

    :raises IllegalTransition: if it is no longer being tested.
    """
    isolation_transition(row, IsolationEvent.FAIL, at=at, reason=reason, proved_at=None)
    publish_message("isolation.unproved", isolation_uid=row.uid)


def _burn_in_evidence(row: Isolation, result: BurnInResult) -> Mapping[str, Any]:
    launch = {LAUNCH: row.evidence[LAUNCH]} if LAUNCH in row.evidence else {}
    return {
        **launch,
        "passed": result.passed,
        "words": result.message,
        "result": dict(result.content),
    }


@transaction.atomic
def burn_in_record_impossible(*, row: Isolation, reason: str) -> None:
    """Record that the card cannot be tested there: the isolation waits for a user, who is notified with the
    reason.
    """
    refused = Isolation.objects.filter(pk=row.pk, ended_at=None).update(
        evidence={"impossible": reason}, test_asked_at=None, burn_ins=row.burn_ins + 1
    )
    if refused:
        publish_message("isolation.unproved", isolation_uid=row.uid)


def burn_in_record_launch_removed(*, row: Isolation) -> None:
    """Its Launch is gone from the cluster."""
    evidence = {name: value for name, value in row.evidence.items() if name != LAUNCH}
    Isolation.objects.filter(pk=row.pk, burn_ins=row.burn_ins).update(evidence=evidence)
