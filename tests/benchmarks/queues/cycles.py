"""Full cycles over 10,000 cards, nearly full, with 10,000 claims waiting: loaded, planned and committed.

As a program: ``tests.benchmarks.queues.cycles NODES WAITING``. Before each cycle some of what runs ends, what was
told to stop stops, and as many ask anew; the first cycle has every claim to read and every reason to write.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from apps.quotas import reconcilers, services
from apps.quotas.models import Claim
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, RunningClaim, SchedulingSnapshot
from tests.benchmarks.queues.processors import Spent, spent
from tests.benchmarks.queues.rows import record, waiting_again
from tests.benchmarks.scheduling.companies import NOW
from tests.benchmarks.scheduling.companies import Company as Drawn

#: Chips with the same geometry as the drawn ones, that plug-ins know.
CHIPS = {"gpu": "nvidia-h800", "npu": "ascend-910a"}
ITERATIONS = 5
#: One of so many running claims ends between two cycles.
ENDING = 40
PHASES = ("load", "plan", "commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One cycle."""

    waiting: int
    admitted: int
    revoked: int
    refused: int
    #: Seconds of each phase.
    seconds: Mapping[str, float]

    #: Seconds of processors.
    spent: Spent | None = None

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class _Listener(logging.Handler):
    """Reads what cycles say of themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.cycles: list[Turn] = []

    def emit(self, record: logging.LogRecord) -> None:
        fields = vars(record)
        if "plan_seconds" in fields:
            self.cycles.append(
                Turn(
                    waiting=fields["waiting"],
                    admitted=fields["admitted"],
                    revoked=fields["revoked"],
                    refused=fields["refused"],
                    seconds={phase: fields[f"{phase}_seconds"] for phase in PHASES},
                )
            )


def measured_cycles(*, nodes: int, waiting: int, iterations: int = ITERATIONS) -> list[Turn]:
    """Each cycle of that many rounds, in an empty database."""
    drawn = Drawn(nodes=nodes)
    snapshot = with_known_chips(drawn.nearly_full(waiting=waiting))
    record(snapshot, at=NOW)
    listener, log = _Listener(), logging.getLogger(reconcilers.cycle_run.__module__)
    log.addHandler(listener)
    log.setLevel(logging.INFO)
    try:
        for number in range(iterations):
            at = NOW + timedelta(minutes=number)
            if number:
                _let_end(at)
                _top_up(snapshot.claims, waiting, number)
            before = spent()
            reconcilers.cycle_run(policy=SchedulingPolicy(), at=at)
            listener.cycles[-1] = replace(listener.cycles[-1], spent=spent().since(before))
    finally:
        log.removeHandler(listener)
    return listener.cycles


def _let_end(at: datetime) -> None:
    stopping = Claim.objects.filter(state=ClaimState.REVOKING).values_list("uid", flat=True)
    running = Claim.objects.filter(state=ClaimState.ADMITTED).order_by("uid")
    for uid in (*stopping, *running.values_list("uid", flat=True)[::ENDING]):
        services.claim_release(uid=uid, reason=ReleaseReason.FINISHED, at=at)


def _top_up(claims: tuple[ClaimSnapshot, ...], waiting: int, number: int) -> None:
    """As many ask as were placed, for the same as the first ones."""
    missing = waiting - Claim.objects.filter(state=ClaimState.PENDING).count()
    waiting_again(
        tuple(replace(claim, uid=f"again-{number}-{claim.uid[-6:]}") for claim in claims[:missing])
    )


def with_known_chips(snapshot: SchedulingSnapshot) -> SchedulingSnapshot:
    """The same company with chips whose geometry the product knows."""
    return replace(
        snapshot,
        nodes=tuple(
            replace(
                node,
                cards=tuple(replace(card, chip=CHIPS[card.chip]) for card in node.cards),
            )
            for node in snapshot.nodes
        ),
        claims=tuple(replace(claim, chips=_known(claim)) for claim in snapshot.claims),
        running=tuple(
            replace(view, chip=CHIPS[view.chip], chips=_known(view)) for view in snapshot.running
        ),
        queues={
            uid: replace(
                queue,
                entitlements={CHIPS[chip]: each for chip, each in queue.entitlements.items()},
            )
            for uid, queue in snapshot.queues.items()
        },
    )


def _known(view: ClaimSnapshot | RunningClaim) -> tuple[str, ...]:
    return tuple(CHIPS[chip] for chip in view.chips)


def main() -> int:
    nodes, waiting = map(int, sys.argv[1:3])
    print(json.dumps([asdict(turn) for turn in measured_cycles(nodes=nodes, waiting=waiting)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
