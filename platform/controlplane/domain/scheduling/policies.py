"""What may be tuned, as named values, so that a plan can be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Bounds and choices of one cycle."""

    #: Most claims to place in one cycle; keeps a commit short.
    placements_per_cycle: int = 200
    #: Where so many leave others unseen, the next cycle may place more, up to what takes so long; None: never.
    cycle: timedelta | None = None
    #: Most searches for room in one cycle, beside those that keep room for a few; a claim decided without any
    #: counts as one. Whoever was not looked at has a turn in one of the next cycles (``cycle``).
    attempts_per_cycle: int = 2000
    #: Take cards back for those that they are owed to.
    preemption: bool = True
    #: Most claims for which others are told to stop in one cycle.
    reclaims_per_cycle: int = 32
    #: Let claims use room that is kept for another, as long as they end before it starts. What nobody keeps is for
    #: whoever is next in any case.
    backfill: bool = True
    #: Claims that may keep room for themselves at the same time.
    reservations: int = 8
    #: How long those that are told to stop have to save their work.
    grace: timedelta = timedelta(seconds=120)
