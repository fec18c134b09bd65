"""The retry policy of a job: which failures start it again, how often, and after how long.

::

    an attempt fails ─▶ is its cause in retry_on? ─▶ are retries left? ─▶ back-off ─▶ a new attempt
                              │ no                        │ no
                              ▼                           ▼
                        the job fails                the job fails, with the number of retries as reason

Every retry continues from the newest checkpoint. Evictions, preemptions, isolated cards and lost nodes requeue a
job without a retry, because they are not caused by the job.

A fine-tune that ran out of memory is retried with smaller batches, outside of the policy: the batch on a card is
at most halved and the gradient accumulation grows by the same factor, so that a step sees as many examples as
before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Self

from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import (
    FieldFinding,
    check_fields,
    choices_field,
    integer_field,
    with_defaults,
)

#: Name of the field of job requests and of the column that stores the policy.
FIELD: Final = "retry_policy"
#: ``Signal 9 (SIGKILL) received by PID 4711``: what torchrun logs of a worker before it exits with code 1
#: (torch/distributed/elastic/multiprocessing/errors/__init__.py).
_KILLED_WORKER: Final = re.compile(r"Signal \d+ \(SIG(?:KILL|TERM|HUP|INT)\) received by PID \d+")
#: Doublings beyond which every back-off has reached its cap.
_MAX_DOUBLINGS: Final = 20


class RetryCause(StrEnum):
    """Cause of a failure, for the retry policy."""

    #: Ended by a signal that Ninefold did not send: SIGKILL, SIGTERM, SIGHUP or SIGINT.
    KILLED = "killed"
    #: Its log shows an error of a card, a link or a node, and no card was isolated for it.
    HARDWARE_ERROR = "hardware_error"
    #: Its software environment, image or inputs could not be prepared.
    ENVIRONMENT_ERROR = "environment_error"
    #: Its program ended with an exit code other than 0.
    USER_ERROR = "user_error"


INFRASTRUCTURE: Final = (
    RetryCause.KILLED,
    RetryCause.HARDWARE_ERROR,
    RetryCause.ENVIRONMENT_ERROR,
)

FIELDS: Final = (
    integer_field(
        "max_retries",
        "Max retries",
        "Maximum number of automatic retries before the job fails; 0 disables them.",
        default=3,
        within=(0, 20),
    ),
    integer_field(
        "backoff_seconds",
        "Initial back-off (s)",
        "Seconds before the first retry; the back-off doubles with each further retry.",
        default=10,
        within=(0, 3600),
    ),
    integer_field(
        "max_backoff_seconds",
        "Max back-off (s)",
        "Maximum number of seconds before a retry.",
        default=360,
        within=(0, 86_400),
    ),
    choices_field(
        "retry_on",
        "Retry on",
        "Causes of failure that start a retry. killed: a signal terminated the process. hardware_error: the "
        "log shows a hardware error. environment_error: the image, the environment or the inputs could not "
        "be prepared. user_error: the exit code is not 0. Out of memory, a full disk and the time limit "
        "never start a retry.",
        default=[cause.value for cause in INFRASTRUCTURE],
        choices=tuple(cause.value for cause in RetryCause),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    max_retries: int
    backoff_seconds: int
    max_backoff_seconds: int
    retry_on: tuple[RetryCause, ...]

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The policy with defaults filled in; ``values`` have passed ``check_policy``."""
        complete = with_defaults(FIELDS, values)
        causes = tuple(RetryCause(each) for each in complete.pop("retry_on"))
        return cls(**complete, retry_on=causes)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "retry_on": [cause.value for cause in self.retry_on]}

    def backoff(self, number: int) -> timedelta:
        """Delay before that retry, counted from 1: exponential, with a cap."""
        doubled = self.backoff_seconds * 2 ** min(max(number - 1, 0), _MAX_DOUBLINGS)
        return timedelta(seconds=min(doubled, self.max_backoff_seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRetry:
    #: From 1 up to ``max_retries``.
    number: int
    cause: RetryCause
    delay: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    #: None if the job fails.
    retry: ScheduledRetry | None
    #: Why the attempt ended, and what follows.
    reason: str


def check_policy(values: Mapping[str, Any]) -> tuple[FieldFinding, ...]:
    """Findings for a requested policy; absent fields have their defaults."""
    findings = tuple(
        replace(each, field=f"{FIELD}.{each.field}") for each in check_fields(FIELDS, values)
    )
    if findings:
        return findings
    policy = RetryPolicy.from_json(values)
    if policy.backoff_seconds > policy.max_backoff_seconds:
        message = Reason(
            "job.retry_policy.backoff_too_long",
            "backoff_seconds is {seconds}; it must be at most max_backoff_seconds, which is {limit}",
            seconds=policy.backoff_seconds,
            limit=policy.max_backoff_seconds,
        )
        return (FieldFinding(field=f"{FIELD}.backoff_seconds", message=message),)
    return ()


def log_shows_killed_worker(log_tail: str) -> bool:
    """Whether a launcher of several processes reports that a signal ended one of them."""
    return _KILLED_WORKER.search(log_tail) is not None


def decide_retry(
    policy: RetryPolicy, *, cause: RetryCause | None, retries: int, reason: str
) -> RetryDecision:
    """Whether a failed attempt is retried.

    :param cause: None for a failure that no policy retries.
    :param retries: automatic retries so far.
    :param reason: why the attempt failed.
    """
    if cause is None or cause not in policy.retry_on or policy.max_retries == 0:
        return RetryDecision(retry=None, reason=reason)
    if retries >= policy.max_retries:
        return RetryDecision(
            retry=None,
            reason=Reason(
                "attempt.retry.exhausted",
                "{reason}; failed after {retries} of {limit} retries, last cause: {cause}",
                reason=reason,
                retries=retries,
                limit=policy.max_retries,
                cause=cause,
            ),
        )
    retry = ScheduledRetry(number=retries + 1, cause=cause, delay=policy.backoff(retries + 1))
    seconds = int(retry.delay.total_seconds())
    return RetryDecision(
        retry=retry,
        reason=Reason(
            "attempt.retry.scheduled",
            "{reason}; retry {number} of {limit} starts in {seconds} s",
            reason=reason,
            number=retry.number,
            limit=policy.max_retries,
            seconds=seconds,
        ),
    )


#: Messages of engines when a card is out of memory, in lower case.
_OUT_OF_MEMORY_MESSAGES = (
    "outofmemoryerror",
    "out of memory. tried to allocate",
    "npu out of memory",
)

OUT_OF_MEMORY_ADVICE = (
    "its batches cannot become smaller; choose a smaller max_length, recompute on, the method lora, "
    "or a card with more memory"
)


def smaller_batch_fields(spec: Mapping[str, Any]) -> dict[str, int] | None:
    """Fields of the spec for smaller batches; None if the batch is one example, or the engine has no such fields.

    The new batch is the largest divisor of the examples of a step that is at most half of the batch.
    """
    batch, accumulation = spec.get("batch_size", 1), spec.get("gradient_accumulation", 1)
    if batch <= 1:
        return None
    rows = batch * accumulation
    smaller = next(size for size in range(batch // 2, 0, -1) if rows % size == 0)
    return {"batch_size": smaller, "gradient_accumulation": rows // smaller}


def log_shows_out_of_memory(log: str) -> bool:
    """Whether the end of a log shows that a card was out of memory."""
    text = log.lower()
    return any(message in text for message in _OUT_OF_MEMORY_MESSAGES)
