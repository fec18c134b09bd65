"""What a job went through: the stretches of its states, and everything that happened as one stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise

from apps.jobs.models import Attempt, AttemptTransition, Job
from apps.jobs.selectors.attempts import OWNER_KIND
from apps.quotas.models import ClaimTransition
from controlplane.domain.jobs import ENDED_ATTEMPT_STATES, AttemptState


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A time that an attempt spent in one state."""

    attempt: int
    state: str
    began_at: datetime
    #: None while it lasts.
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One attempt as a row of stretches, with the state in which it ended."""

    attempt: Attempt
    stretches: tuple[Stretch, ...]
    #: Empty while it lasts.
    ended_in: str


class Subject(StrEnum):
    """What an event happened to."""

    JOB = "job"
    ATTEMPT = "attempt"
    CLAIM = "claim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    at: datetime
    subject: Subject
    #: The state that it led to.
    state: str
    reason: str
    actor: str = ""
    #: The attempt's number; None for the job itself.
    attempt: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A field of the spec that an attempt ran with another value than the one before it."""

    attempt: int
    field: str
    before: object
    after: object


def changes_of(job: Job, attempts: Sequence[Attempt]) -> list[Change]:
    """What a lack of memory made smaller, the first attempt first."""
    changes = []
    current = dict(job.spec)
    for attempt in sorted(attempts, key=lambda attempt: attempt.number):
        for name, value in (attempt.overrides or {}).items():
            if current.get(name) != value:
                changes.append(
                    Change(
                        attempt=attempt.number, field=name, before=current.get(name), after=value
                    )
                )
            current[name] = value
    return changes


def runs_of(attempts: Sequence[Attempt]) -> list[Run]:
    """Each attempt's stretches in order of time, the first attempt first."""
    moves: dict[int, list[AttemptTransition]] = {attempt.pk: [] for attempt in attempts}
    for move in AttemptTransition.objects.filter(entity__in=attempts).order_by("at", "id"):
        moves[move.entity_id].append(move)
    ordered = sorted(attempts, key=lambda attempt: attempt.number)
    return [_run(attempt, moves[attempt.pk]) for attempt in ordered]


def _run(attempt: Attempt, moves: Sequence[AttemptTransition]) -> Run:
    states: list[tuple[str, datetime]] = [(AttemptState.PENDING, attempt.created_at)]
    states += [(move.to_state, move.at) for move in moves]
    ended = states[-1][0] in ENDED_ATTEMPT_STATES
    pairs: list[tuple[tuple[str, datetime], datetime | None]] = [
        (one, following[1]) for one, following in pairwise(states)
    ]
    if not ended:
        pairs.append((states[-1], None))
    return Run(
        attempt=attempt,
        stretches=tuple(
            Stretch(attempt=attempt.number, state=state, began_at=began_at, ended_at=ended_at)
            for (state, began_at), ended_at in pairs
        ),
        ended_in=states[-1][0] if ended else "",
    )


def events_of(job: Job, attempts: Sequence[Attempt]) -> list[Event]:
    """Moves of the job, of its attempts and of their claims, the newest first."""
    events = [*_job_events(job), *_attempt_events(attempts), *_claim_events(attempts)]
    return sorted(events, key=lambda event: event.at, reverse=True)


def _job_events(job: Job) -> Iterator[Event]:
    for move in job.transitions.order_by("-at", "-id"):
        yield Event(
            at=move.at,
            subject=Subject.JOB,
            state=move.to_state,
            reason=move.reason,
            actor=move.actor,
        )


def _attempt_events(attempts: Sequence[Attempt]) -> Iterator[Event]:
    numbers = {attempt.pk: attempt.number for attempt in attempts}
    for move in AttemptTransition.objects.filter(entity__in=attempts).order_by("-at", "-id"):
        yield Event(
            at=move.at,
            subject=Subject.ATTEMPT,
            state=move.to_state,
            reason=move.reason,
            attempt=numbers[move.entity_id],
        )


def _claim_events(attempts: Sequence[Attempt]) -> Iterator[Event]:
    numbers = {attempt.uid: attempt.number for attempt in attempts}
    moves = ClaimTransition.objects.filter(
        entity__owner_kind=OWNER_KIND, entity__owner_uid__in=numbers
    ).select_related("entity")
    for move in moves.order_by("-at", "-id"):
        yield Event(
            at=move.at,
            subject=Subject.CLAIM,
            state=move.to_state,
            reason=move.reason,
            attempt=numbers[move.entity.owner_uid],
        )
