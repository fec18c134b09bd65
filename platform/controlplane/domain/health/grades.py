"""How grave a fault has become: by its code, by how long it has stood and by how often it has come back.

A code's level says what one occurrence is worth. A link that is down for a second is a note; down for half a
minute, nobody should be placed behind it. And what comes and goes all day is not sound, however harmless each
time is: flapping is answered by isolation, and is over only when few enough of its occurrences are recent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from controlplane.domain.faults import FaultLevel, Repeats
from controlplane.domain.health.signals import Origin
from controlplane.domain.health.situations import FaultView, Policy

#: Silence comes back when monitoring does: it says nothing of the node. What crashed jobs leave behind is weighed
#: by ``suspicions``.
_NEVER_DAMPED = frozenset({Origin.SILENCE, Origin.JOB})


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    level: FaultLevel
    #: Why it is that grave, in words.
    reason: str
    #: It is so since it came back too often.
    flaps: bool = False


class Grades:
    """The grades of the faults of one situation, at one moment."""

    def __init__(
        self,
        faults: Iterable[FaultView],
        released: Mapping[str, datetime],
        policy: Policy,
        at: datetime,
    ) -> None:
        self._policy = policy
        self._released = released
        self._at = at
        self._began: dict[tuple[str, str, str, str], list[datetime]] = defaultdict(list)
        for fault in faults:
            self._began[_same(fault)].append(fault.began_at)

    def is_known(self, fault: FaultView) -> bool:
        """Whether its card or node was given back after it had begun, so that it is not held against it again."""
        back = self._given_back(fault)
        return back is not None and fault.began_at <= back

    def by_code(self, fault: FaultView) -> Grade:
        """What one short occurrence is worth."""
        return Grade(level=fault.level, reason=f"{fault.code} is of level L{fault.level.value}")

    def of(self, fault: FaultView) -> Grade:
        """What the fault is worth now."""
        grade = self._lasting(fault) or self.by_code(fault)
        return self._flapping(fault, grade.level) or grade

    def _lasting(self, fault: FaultView) -> Grade | None:
        lasting, stood = fault.lasting, self._at - fault.began_at
        if lasting is None or fault.ended_at is not None:
            return None
        if lasting.level <= fault.level or stood < lasting.after:
            return None
        return Grade(
            level=lasting.level,
            reason=(
                f"{fault.code} has stood for {stood.total_seconds():.0f} seconds; "
                f"from {lasting.after.total_seconds():.0f} on it is of level L{lasting.level.value}"
            ),
        )

    def _flapping(self, fault: FaultView, level: FaultLevel) -> Grade | None:
        began = self._began[_same(fault)]
        limit = self._limit(fault)
        if limit is None or level is FaultLevel.ISOLATE or len(began) < limit.times:
            return None
        since = self._at - limit.within
        back = self._given_back(fault)
        times = sum(each > since and (back is None or each > back) for each in began)
        if times < limit.times:
            return None
        return Grade(
            level=FaultLevel.ISOLATE,
            reason=(
                f"{fault.code} came {times} times within {limit.within.total_seconds() / 3600:g} hours; "
                f"{limit.times} are enough to isolate"
            ),
            flaps=True,
        )

    def _limit(self, fault: FaultView) -> Repeats | None:
        if fault.repeats is not None:
            return fault.repeats if fault.repeats.times else None
        if fault.origin in _NEVER_DAMPED or fault.level is FaultLevel.NOTE:
            return None
        return Repeats(times=self._policy.repeats, within=self._policy.repeats_within)

    def _given_back(self, fault: FaultView) -> datetime | None:
        return max(
            (
                self._released[uid]
                for uid in {fault.card, fault.node}
                if uid and uid in self._released
            ),
            default=None,
        )


def _same(fault: FaultView) -> tuple[str, str, str, str]:
    return (fault.node, fault.card, fault.origin, fault.code)
