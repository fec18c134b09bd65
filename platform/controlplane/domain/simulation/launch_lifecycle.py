"""Lifecycle of simulated Launches: faults, progress of work, and the state at an instant.

::

    launched ── prepares ─▶ PREPARING ─ starts ─▶ STARTING ─ up ─▶ RUNNING ── the first of these ─▶ EXITED
                                                                    │  its work is done (and handed over)
                                                                    │  it fails by itself
                                                                    │  a stop, and the time to save
                                                                    │  its time limit
                                                                    └  a card fails, a node is lost ─▶ LOST

    work                      ╱
     │                ___––––╱    a slow card delays its whole gang:
     │         ___––––            while it is slow, one second of work takes longer
     │       ╱
     │    ╱
     └──────────────────────────▶ time
        work_begins_at   slow     well

A gang waits for its slowest card, so the largest slowness of its cards applies to all of its work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from controlplane.domain.common.reasons import Reason
from controlplane.domain.simulation.run_profiles import RunProfile


class SimulatedFaultKind(StrEnum):
    #: The card has failed: processes on it fail, and the cluster reports it as not healthy.
    CARD_DEAD = "card_dead"
    #: The card computes slowly; nothing reports that by itself.
    CARD_SLOW = "card_slow"
    #: The node does not answer; its processes are lost if that lasts for ``NODE_LOST_AFTER``.
    NODE_UNREACHABLE = "node_silent"


#: Simulated time after which processes on an unreachable node are lost.
NODE_LOST_AFTER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFault:
    kind: SimulatedFaultKind
    node: str
    #: None for the whole node.
    card: int | None = None
    since: datetime
    #: None while it lasts.
    until: datetime | None = None
    #: Factor by which work takes longer on a slow card.
    slowness: float = 1.0
    #: Message of the fault.
    message: str = ""

    def is_active(self, at: datetime) -> bool:
        return self.since <= at and (self.until is None or at < self.until)

    @property
    def location(self) -> str:
        if self.card is None:
            return self.node
        return Reason(
            "simulation.fault.card_location",
            "card {card} of {node}",
            card=self.card,
            node=self.node,
        )


def faults_of_kind(
    kind: SimulatedFaultKind, faults: Iterable[SimulatedFault]
) -> list[SimulatedFault]:
    return [fault for fault in faults if fault.kind is kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkProgress:
    """The progress of one gang, in seconds of simulated time."""

    #: Start of the work, and the work that was done before.
    since: datetime
    initial_work: float = 0.0
    #: Simulated seconds per second of the clock.
    speed: float = 1.0
    #: Faults of its cards that slow it down.
    slow: tuple[SimulatedFault, ...] = ()

    def done(self, at: datetime) -> float:
        """Work done by then."""
        work = self.initial_work
        for start, end, rate in self._rate_intervals():
            if start >= at:
                break
            stop = min(at, end) if end else at
            work += (stop - start).total_seconds() * rate
        return work

    def reached(self, work: float) -> datetime:
        """When so much work is done."""
        remaining = work - self.initial_work
        for start, end, rate in self._rate_intervals():
            capacity = (end - start).total_seconds() * rate if end else None
            if capacity is None or remaining <= capacity:
                return start + timedelta(seconds=max(0.0, remaining) / rate)
            remaining -= capacity
        raise AssertionError("the last interval has no end")

    def slowness(self, at: datetime) -> float:
        """Factor by which work takes longer at that instant."""
        return max((one.slowness for one in self.slow if one.is_active(at)), default=1.0)

    def _rate_intervals(self) -> Iterator[tuple[datetime, datetime | None, float]]:
        """Start, end and rate of each interval; the last one has no end."""
        boundaries = sorted(
            {boundary for boundary in _fault_boundaries(self.slow) if boundary > self.since}
        )
        starts = [self.since, *boundaries]
        for start, end in zip(starts, [*boundaries, None], strict=True):
            yield start, end, self.speed / self.slowness(start)


def _fault_boundaries(faults: Iterable[SimulatedFault]) -> Iterator[datetime]:
    for fault in faults:
        yield fault.since
        if fault.until is not None:
            yield fault.until


_TERMINATED, _KILLED, _ABORTED = 143, 137, 134


class SimulatedStage(StrEnum):
    PREPARING = "preparing"
    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLocation:
    """The node and cards of one replica."""

    role: str
    index: int
    node: str
    cards: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLaunchRecord:
    """The stored record of a Launch: what was requested, and when."""

    name: str
    locations: tuple[ReplicaLocation, ...]
    profile: RunProfile
    launched_at: datetime
    #: Simulated seconds per second of the clock.
    speed: float = 1.0
    #: Whether it reports to the control plane; it succeeds only once its outputs are handed over.
    reports: bool = False
    #: Whether its process is probed, and so starts before it runs.
    probed: bool = False
    run_within: timedelta | None = None
    #: Work in the checkpoint of an earlier Launch.
    initial_work: float = 0.0
    labels: Mapping[str, str]
    stop_at: datetime | None = None
    kill_at: datetime | None = None
    handed_over_at: datetime | None = None

    def after(self, seconds: float, since: datetime) -> datetime:
        """So many seconds of simulated time later."""
        return since + timedelta(seconds=seconds / self.speed)

    @property
    def ready_at(self) -> datetime:
        """When its processes start."""
        return self.after(self.profile.prepares, self.launched_at)

    @property
    def work_begins_at(self) -> datetime:
        """When its processes begin to work."""
        return self.after(self.profile.starts if self.probed else 0.0, self.ready_at)

    def progress(self, faults: Sequence[SimulatedFault]) -> WorkProgress:
        slow = (
            one
            for one in faults_of_kind(SimulatedFaultKind.CARD_SLOW, faults)
            if self.is_affected_by(one)
        )
        return WorkProgress(
            since=self.work_begins_at,
            initial_work=self.initial_work,
            speed=self.speed,
            slow=tuple(slow),
        )

    def is_affected_by(self, fault: SimulatedFault) -> bool:
        """Whether the fault is of one of its cards or nodes."""
        return any(_fault_affects(fault, location) for location in self.locations)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOutcome:
    at: datetime
    #: A value of ``controlplane.ports.clusters.ExitCause``.
    cause: str
    message: str
    exit_code: int | None = None
    #: The fault that caused it, if any; the other replicas are ended with the affected one.
    fault: SimulatedFault | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSnapshot:
    """A Launch at one instant."""

    record: SimulatedLaunchRecord
    at: datetime
    stage: SimulatedStage
    message: str
    #: Work done, in seconds of simulated time.
    work: float = 0.0
    started_at: datetime | None = None
    outcome: LaunchOutcome | None = None

    @property
    def ended(self) -> bool:
        return self.outcome is not None

    @property
    def finishing(self) -> bool:
        """Whether its work is done and its outputs are not handed over yet."""
        record = self.record
        done = record.profile.runs is not None and self.work >= record.profile.runs
        return done and not self.ended and record.reports and not record.profile.exit_code


def launch_snapshot(
    record: SimulatedLaunchRecord, faults: Sequence[SimulatedFault], at: datetime
) -> LaunchSnapshot:
    """The state of the Launch at that instant; ``faults`` may be those of the whole cluster."""
    own = [fault for fault in faults if record.is_affected_by(fault)]
    progress = record.progress(own)
    outcome = min(_possible_outcomes(record, progress, own), key=lambda one: one.at, default=None)
    if outcome is not None and outcome.at <= at:
        lost = outcome.cause == "lost"
        return LaunchSnapshot(
            record=record,
            at=at,
            stage=SimulatedStage.LOST if lost else SimulatedStage.EXITED,
            message=outcome.message,
            work=_work_done(record, progress, outcome.at),
            started_at=record.ready_at if outcome.at >= record.ready_at else None,
            outcome=outcome,
        )
    stage, message = _current_stage(record, own, at)
    return LaunchSnapshot(
        record=record,
        at=at,
        stage=stage,
        message=message,
        work=_work_done(record, progress, at),
        started_at=record.ready_at if at >= record.ready_at else None,
    )


def _work_done(record: SimulatedLaunchRecord, progress: WorkProgress, at: datetime) -> float:
    done = progress.done(at) if at > record.work_begins_at else record.initial_work
    return (
        done
        if record.profile.runs is None
        else min(done, max(record.initial_work, record.profile.runs))
    )


def _current_stage(
    record: SimulatedLaunchRecord, faults: list[SimulatedFault], at: datetime
) -> tuple[SimulatedStage, str]:
    unreachable = [
        one
        for one in faults_of_kind(SimulatedFaultKind.NODE_UNREACHABLE, faults)
        if one.is_active(at)
    ]
    if at < record.ready_at:
        stage = SimulatedStage.PREPARING
        message = Reason(
            "attempt.stage.preparing_simulated", "preparing the software and the inputs (simulated)"
        )
    elif at < record.work_begins_at:
        stage = SimulatedStage.STARTING
        message = Reason("attempt.stage.loading_simulated", "loading the model (simulated)")
    else:
        stage = SimulatedStage.RUNNING
        message = Reason("attempt.stage.running_simulated", "running (simulated)")
    if unreachable:
        message = Reason(
            "attempt.node.unreachable", "{node} is unreachable", node=unreachable[0].node
        )
    elif record.stop_at is not None and record.stop_at <= at:
        message = Reason("attempt.stop.requested", "stop requested")
    return stage, message


def _possible_outcomes(
    record: SimulatedLaunchRecord, progress: WorkProgress, faults: list[SimulatedFault]
) -> list[LaunchOutcome]:
    """All possible outcomes with their instants; the earliest one takes effect."""
    found = [_exit_outcome(record, progress), _stop_outcome(record), _timeout_outcome(record)]
    found += [_fault_outcome(record, fault) for fault in faults]
    return [outcome for outcome in found if outcome is not None]


def _exit_outcome(record: SimulatedLaunchRecord, progress: WorkProgress) -> LaunchOutcome | None:
    profile = record.profile
    if profile.runs is None:
        return None
    at = progress.reached(max(profile.runs, record.initial_work))
    if profile.exit_code:
        message = Reason(
            "attempt.exit.failed", "exited with code {exit_code}", exit_code=profile.exit_code
        )
        if profile.error:
            message = Reason(
                "attempt.exit.failed_with_error",
                "exited with code {exit_code}: {detail}",
                exit_code=profile.exit_code,
                detail=profile.error,
            )
        return LaunchOutcome(
            at=at,
            cause=_CAUSES.get(profile.exit_code, "failed"),
            message=message,
            exit_code=profile.exit_code,
        )
    if record.reports:
        if record.handed_over_at is None:
            return None
        at = max(at, record.handed_over_at)
    return LaunchOutcome(
        at=at, cause="finished", message=Reason("attempt.exit.finished", "finished"), exit_code=0
    )


#: Exit codes with another cause than "failed".
_CAUSES: Mapping[int, str] = {
    12: "out_of_memory",
    28: "disk_full",
    # 128 + n: SIGHUP, SIGINT, SIGKILL and SIGTERM from outside.
    **dict.fromkeys((129, 130, 137, 143), "killed"),
}


def _stop_outcome(record: SimulatedLaunchRecord) -> LaunchOutcome | None:
    if record.stop_at is None or record.kill_at is None:
        return None
    if record.stop_at < record.ready_at:
        return LaunchOutcome(
            at=record.stop_at,
            cause="stopped",
            message=Reason("attempt.stop.before_start", "stopped before the program started"),
        )
    saved = record.after(record.profile.saves, record.stop_at)
    if record.profile.obeys and saved <= record.kill_at:
        return LaunchOutcome(
            at=saved,
            cause="stopped",
            message=Reason("attempt.stop.stopped", "stopped"),
            exit_code=_TERMINATED,
        )
    return LaunchOutcome(
        at=record.kill_at,
        cause="stopped",
        message=Reason(
            "attempt.stop.killed", "killed because the program did not stop within the grace period"
        ),
        exit_code=_KILLED,
    )


def _timeout_outcome(record: SimulatedLaunchRecord) -> LaunchOutcome | None:
    if record.run_within is None:
        return None
    seconds = record.run_within.total_seconds()
    return LaunchOutcome(
        at=record.after(seconds, record.ready_at),
        cause="out_of_time",
        message=Reason(
            "attempt.time_limit.exceeded",
            "exceeded the time limit of {seconds} s",
            seconds=f"{seconds:.0f}",
        ),
        exit_code=_TERMINATED,
    )


def _fault_outcome(record: SimulatedLaunchRecord, fault: SimulatedFault) -> LaunchOutcome | None:
    """The outcome of a fault; None if the fault ended before the Launch started."""
    first = max(fault.since, record.ready_at)
    if fault.until is not None and fault.until <= first:
        return None
    match fault.kind:
        case SimulatedFaultKind.CARD_DEAD:
            return LaunchOutcome(
                at=first,
                cause="failed",
                message=Reason(
                    "attempt.hardware.failed",
                    "{location} failed: {error}",
                    location=fault.location,
                    error=fault.message,
                ),
                exit_code=_ABORTED,
                fault=fault,
            )
        case SimulatedFaultKind.NODE_UNREACHABLE:
            lost_at = record.after(NODE_LOST_AFTER.total_seconds(), fault.since)
            if fault.until is not None and fault.until <= lost_at:
                return None
            return LaunchOutcome(
                at=max(lost_at, record.launched_at),
                cause="lost",
                message=Reason(
                    "attempt.node.lost",
                    "{node} is unreachable: {error}",
                    node=fault.node,
                    error=fault.message,
                ),
                fault=fault,
            )
        case _:
            return None


def is_replica_affected(location: ReplicaLocation, outcome: LaunchOutcome) -> bool:
    """Whether the fault is of that replica; true for every replica if there was no fault."""
    return outcome.fault is None or _fault_affects(outcome.fault, location)


def _fault_affects(fault: SimulatedFault, location: ReplicaLocation) -> bool:
    return fault.node == location.node and (fault.card is None or fault.card in location.cards)
