"""History of a job: timelines of its attempts, spec changes, and all state transitions as one list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise

from apps.jobs.models import Attempt, AttemptTransition, Job
from apps.jobs.selectors.jobs import OWNER_KIND
from apps.quotas.models import ClaimTransition
from controlplane.domain.jobs.lifecycle import ENDED_ATTEMPT_STATES, AttemptState
from controlplane.persistence.models import Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStateInterval:
    attempt: int
    state: str
    started_at: datetime
    #: None for the current state.
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTimeline:
    """The state intervals of one attempt."""

    attempt: Attempt
    intervals: tuple[AttemptStateInterval, ...]
    #: Empty while the attempt has not ended.
    final_state: str


class HistorySubject(StrEnum):
    """The kind of object that changed its state."""

    JOB = "job"
    ATTEMPT = "attempt"
    CLAIM = "claim"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvent:
    at: datetime
    subject: HistorySubject
    #: The new state.
    state: str
    reason: str
    actor: str = ""
    #: The attempt's number; None for the job itself.
    attempt: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecChange:
    """A field of the spec with another value than in the previous attempt."""

    attempt: int
    field: str
    before: object
    after: object


def spec_changes(job: Job, attempts: Sequence[Attempt]) -> list[SpecChange]:
    """Changes of the spec after attempts ran out of memory, by number of the attempt."""
    changes = []
    current = dict(job.spec)
    for attempt in sorted(attempts, key=lambda attempt: attempt.number):
        for name, value in (attempt.overrides or {}).items():
            if current.get(name) != value:
                changes.append(
                    SpecChange(
                        attempt=attempt.number, field=name, before=current.get(name), after=value
                    )
                )
            current[name] = value
    return changes


def attempt_timelines(attempts: Sequence[Attempt]) -> list[AttemptTimeline]:
    """The timeline of each attempt, by its number."""
    transitions: dict[int, list[AttemptTransition]] = {attempt.pk: [] for attempt in attempts}
    for transition in AttemptTransition.objects.filter(entity__in=attempts).order_by("at", "id"):
        transitions[transition.entity_id].append(transition)
    ordered = sorted(attempts, key=lambda attempt: attempt.number)
    return [_attempt_timeline(attempt, transitions[attempt.pk]) for attempt in ordered]


def _attempt_timeline(
    attempt: Attempt, transitions: Sequence[AttemptTransition]
) -> AttemptTimeline:
    states: list[tuple[str, datetime]] = [(AttemptState.PENDING, attempt.created_at)]
    states += [(transition.to_state, transition.at) for transition in transitions]
    ended = states[-1][0] in ENDED_ATTEMPT_STATES
    pairs: list[tuple[tuple[str, datetime], datetime | None]] = [
        (one, following[1]) for one, following in pairwise(states)
    ]
    if not ended:
        pairs.append((states[-1], None))
    return AttemptTimeline(
        attempt=attempt,
        intervals=tuple(
            AttemptStateInterval(
                attempt=attempt.number, state=state, started_at=started_at, ended_at=ended_at
            )
            for (state, started_at), ended_at in pairs
        ),
        final_state=states[-1][0] if ended else "",
    )


def job_history(job: Job, attempts: Sequence[Attempt]) -> list[HistoryEvent]:
    """State transitions of the job, its attempts and their claims, the newest first."""
    by_key = {attempt.pk: attempt.number for attempt in attempts}
    by_uid = {attempt.uid: attempt.number for attempt in attempts}
    of_claims = ClaimTransition.objects.filter(
        entity__owner_kind=OWNER_KIND, entity__owner_uid__in=by_uid
    ).select_related("entity")
    newest = ("-at", "-id")
    events = [
        *(_event(each, HistorySubject.JOB) for each in job.transitions.order_by(*newest)),
        *(
            _event(each, HistorySubject.ATTEMPT, attempt=by_key[each.entity_id])
            for each in AttemptTransition.objects.filter(entity__in=attempts).order_by(*newest)
        ),
        *(
            _event(each, HistorySubject.CLAIM, attempt=by_uid[each.entity.owner_uid])
            for each in of_claims.order_by(*newest)
        ),
    ]
    return sorted(events, key=lambda event: event.at, reverse=True)


def _event(
    transition: Transition, subject: HistorySubject, *, attempt: int | None = None
) -> HistoryEvent:
    return HistoryEvent(
        at=transition.at,
        subject=subject,
        state=transition.to_state,
        reason=transition.reason,
        actor=transition.actor if subject is HistorySubject.JOB else "",
        attempt=attempt,
    )
