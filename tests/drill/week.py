"""Days of faults at many times their usual rate, in a fleet full of work, beside healthy noise.

::

    onset ──≤ 5 s──▶ text ──▶ faults ──▶ decision ──▶ claims withdrawn ──▶ job waits again ──▶ placed
      └── known to the drill alone                                          repaired ──▶ text ──▶ given back
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count

from apps.jobs.models import Attempt
from apps.monitoring.models import Decision, Isolation
from controlplane.domain.health.snapshots import HealthAction
from controlplane.domain.quotas.claims import GangShape
from tests.drill.company import Company
from tests.drill.faults import HARMLESS, HARMLESS_CONDITIONS, Expected, Onset, onsets
from tests.drill.scoring import Measurement, Outcome, centile
from tests.drill.truth import Struck, Truth

#: Between two readings of an exporter, or two pushes.
EVERY = 5.0
#: What a person takes to repair a card or a node.
REPAIR = timedelta(hours=4)
#: Noise and what costs only a restart passes by itself.
PASSES = timedelta(minutes=10)
CHECKPOINTS = timedelta(minutes=10)
#: From its placement until a gang computes again: programs, weights, the first step.
STARTING = timedelta(seconds=60)


@dataclass(slots=True)
class _Course:
    """One replay."""

    company: Company
    truth: Truth = field(default_factory=Truth)
    #: What passes or is repaired: when, a number, the node, and the fault if it was one.
    mending: list[tuple[datetime, int, str, Struck | None]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)
    busy: set[str] = field(default_factory=set)
    replaced: list[float] = field(default_factory=list)
    noises: int = 0
    passed_over: int = 0

    def play(self, hours: float, rate: float) -> None:
        company, draws = self.company, self.company.draws
        began_at, nodes = company.at, company.nodes
        faults = list(onsets(nodes, began_at=began_at, hours=hours, rate=rate, draws=draws))
        # As much noise as there are faults, at times of its own.
        noise = onsets(nodes, began_at=began_at, hours=hours, rate=rate, draws=draws)
        events = heapq.merge(
            ((onset.at, next(self.numbers), True, onset) for onset in faults),
            ((onset.at, next(self.numbers), False, onset) for onset in noise),
        )
        for at, _, is_fault, onset in events:
            self._mend_until(at)
            if onset.node.name in self.busy:
                # One thing at a time on a node: what the drill sees must be that thing's doing.
                self.passed_over += 1
            elif is_fault:
                self._strike(onset)
            else:
                self._make_noise(onset)
        self._mend_until(began_at + timedelta(hours=hours))

    def _strike(self, onset: Onset) -> None:
        company, node = self.company, onset.node.name
        self.busy.add(node)
        reported_at = company.move_to(onset.at + timedelta(seconds=company.draws.uniform(0, EVERY)))
        struck = self.truth.add(onset, reported_at=reported_at)
        if onset.index is None:
            company.voices.condition(node, onset.sign.condition)
        else:
            company.voices.say(node, onset.index, onset.sign.code)
        began = time.perf_counter()
        self._report(onset)
        company.turn()
        seconds = time.perf_counter() - began
        self._observe()
        if struck.answered_at is not None:
            struck.seconds = seconds
        company.recover()
        self.replaced.append(time.perf_counter() - began)
        lasts = REPAIR if struck.expected is Expected.OUT else PASSES
        heapq.heappush(self.mending, (reported_at + lasts, next(self.numbers), node, struck))

    def _make_noise(self, onset: Onset) -> None:
        company, node = self.company, onset.node
        self.busy.add(node.name)
        self.noises += 1
        company.move_to(onset.at)
        if onset.index is None or company.draws.random() < 0.1:
            company.voices.condition(node.name, company.draws.choice(HARMLESS_CONDITIONS))
            company.voices.report_conditions(at=company.at)
        else:
            code = company.draws.choice(HARMLESS[node.vendor])
            company.voices.say(node.name, onset.index, code)
            company.voices.report(node.name, at=company.at)
        company.turn()
        self._observe()
        company.recover()
        entry = (company.at + PASSES, next(self.numbers), node.name, None)
        heapq.heappush(self.mending, entry)

    def _report(self, onset: Onset) -> None:
        company = self.company
        if onset.index is None:
            company.voices.report_conditions(at=company.at)
        else:
            company.voices.report(onset.node.name, at=company.at)

    def _mend_until(self, at: datetime) -> None:
        company = self.company
        while self.mending and self.mending[0][0] <= at:
            when, _, node, struck = heapq.heappop(self.mending)
            company.move_to(when)
            company.voices.hush(node)
            company.voices.report(node, at=company.at)
            company.voices.report_conditions(at=company.at)
            if struck is not None:
                # What a guard held back until now was not answered while it stood.
                struck.mended_at = company.at
            company.release(node=node)
            company.turn()
            self._observe()
            company.recover()
            self.busy.discard(node)

    def _observe(self) -> None:
        """Which faults have been answered by now."""
        for struck in self.truth.unanswered():
            node, index = struck.place
            if struck.expected is Expected.OUT:
                answered = self.company.is_out(node, index)
            else:
                restarts = Decision.objects.filter(
                    outcome=Decision.Outcome.DONE,
                    action=HealthAction.RESTART_JOB,
                    at__gte=struck.reported_at,
                )
                answered = (node, index) in restarts.values_list("node__name", "card__index")
            if answered:
                struck.answered_at = self.company.at


def replay(company: Company, *, hours: float, rate: float) -> Outcome:
    """The replay's figures beside their goals."""
    course = _Course(company)
    began_at, began = company.at, time.perf_counter()
    course.play(hours, rate)
    wall = time.perf_counter() - began
    return Outcome(
        name="the week",
        metrics=tuple(_metrics(course, began_at)),
        summary=(
            f"{hours:g} hours at {rate:g} times the published rate in {wall:.0f} s: "
            f"{_mix(course.truth)}; {course.noises} of healthy noise; {course.passed_over} passed over, "
            f"as something went on at their node already{_slips(course, began_at)}"
        ),
    )


def _metrics(course: _Course, began_at: datetime) -> Iterator[Measurement]:
    company, struck = course.company, course.truth.struck
    seconds = [
        one.seconds for one in struck if one.seconds is not None and one.expected is Expected.OUT
    ]
    answered = [one for one in struck if one.answered_at is not None]
    late = [one for one in answered if one.seconds is None]
    replaced = centile(course.replaced, 0.99)
    taken, unjustified = _unjustified(course, began_at)
    yield Measurement(name="faults", value=len(struck), least=1)
    yield Measurement(
        name="told until unschedulable, p50", value=centile(seconds, 0.5), unit="s", most=1
    )
    yield Measurement(
        name="told until unschedulable, p99", value=centile(seconds, 0.99), unit="s", most=3
    )
    yield Measurement(
        name="told until the gang is placed again, p99", value=replaced, unit="s", most=10
    )
    yield Measurement(name="recall", value=len(answered) / max(1, len(struck)), least=1.0)
    yield Measurement(name="precision", value=1 - len(unjustified) / max(1, taken), least=0.95)
    yield Measurement(name="held back by the guard first", value=len(late))
    yield Measurement(
        name="placed on a card out of use", value=company.placed_on_isolated(), most=0
    )
    yield Measurement(
        name="effective training time",
        value=100 * _effective(course, began_at, timedelta(seconds=replaced)),
        unit="%",
        least=97,
    )
    yield Measurement(
        name="turn of the health loop, p50", value=centile(company.durations, 0.5), unit="s"
    )


def _unjustified(course: _Course, began_at: datetime) -> tuple[int, list[str]]:
    """How many places rules took out of use, and those of them where nothing was wrong that is worth it."""
    taken = Isolation.objects.filter(began_at__gte=began_at)
    rows = list(taken.values_list("node__name", "card__index", "began_at", "reason"))
    wrong = [
        f"{node}/{index}: {reason}"
        for node, index, at, reason in rows
        if not course.truth.justifies(node, index, at)
    ]
    return len(rows), wrong


def _effective(course: _Course, began_at: datetime, placing: timedelta) -> float:
    """Of the time that gangs had, weighed by their cards, what they computed and kept.

    Lost are: what was computed since the last checkpoint before the fault, the time until it was told, the time
    until the gang was placed again (of the wall), and its start.
    """
    until, reported = course.company.at, timedelta(seconds=EVERY)
    useful = 0.0
    rows = Attempt.objects.filter(admitted_at__isnull=False).exclude(ended_at__lt=began_at)
    for attempt in rows.select_related("job"):
        cards = GangShape.from_json(attempt.job.shape).cards
        started = max(attempt.admitted_at or until, began_at)
        ended = attempt.ended_at or until
        again = attempt.number > 1 and (attempt.admitted_at or until) > began_at
        lost = placing + STARTING if again else timedelta()
        if attempt.ended_at is not None:
            computed = max(timedelta(), ended - started - lost - reported)
            lost += reported + computed % CHECKPOINTS
        useful += cards * max(timedelta(), ended - started - lost).total_seconds()
    gangs = Attempt.objects.filter(number=1).values_list("job__shape", flat=True)
    cards = sum(GangShape.from_json(shape).cards for shape in gangs)
    whole = cards * (until - began_at).total_seconds()
    return useful / whole if whole else 0.0


def _mix(truth: Truth) -> str:
    kinds = Counter(one.onset.kind for one in truth.struck)
    return ", ".join(f"{times} {kind}" for kind, times in kinds.most_common()) or "no fault"


def _slips(course: _Course, began_at: datetime) -> str:
    """The first faults that were missed, and what was taken out for nothing."""
    missed = [
        f"{one.onset.node.name}/{one.onset.index} with {one.onset.sign.code or one.onset.sign.condition}"
        for one in course.truth.struck
        if one.answered_at is None
    ]
    _, unjustified = _unjustified(course, began_at)
    texts = [f"missed {each}" for each in missed[:3]]
    texts += [f"taken for nothing {each}" for each in unjustified[:3]]
    return "".join(f"; {each}" for each in texts)
