"""State machines of jobs and their attempts.

A job is a workload that ends by itself. Each run of it is an attempt; a retry, a preemption or a fault creates a
new one. A cancellation is requested beside the state, and handled by the next run of the controller::

    job      WAITING ──start──▶ RUNNING ──succeed──▶ SUCCEEDED
                ▲  ◀──requeue──    │──fail──▶ FAILED ──retry──▶ WAITING
                │                  └──cancel─▶ CANCELLED ──retry──▶ WAITING

    attempt  PENDING ─admit▶ ADMITTED ─launch▶ LAUNCHED ─run▶ RUNNING ─finish▶ COMPLETING ─complete▶ SUCCEEDED
                │               └────────┬────────┴──────────────┘
             withdraw                  stop ▶ STOPPING ─confirm▶ STOPPED       (fail ▶ FAILED from any of them)
                ▼
             STOPPED
"""

from __future__ import annotations

from enum import StrEnum

from controlplane.domain.common.state_machine import StateMachine


class JobKind(StrEnum):
    FINETUNE = "finetune"
    EVALUATE = "evaluate"
    QUANTIZE = "quantize"
    SCRIPT = "script"


class JobState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobEvent(StrEnum):
    START = "start"
    REQUEUE = "requeue"
    SUCCEED = "succeed"
    FAIL = "fail"
    CANCEL = "cancel"
    RETRY = "retry"


JOB = StateMachine(
    name="job",
    initial=JobState.WAITING,
    transitions={
        (JobState.WAITING, JobEvent.START): JobState.RUNNING,
        (JobState.WAITING, JobEvent.FAIL): JobState.FAILED,
        (JobState.WAITING, JobEvent.CANCEL): JobState.CANCELLED,
        (JobState.RUNNING, JobEvent.REQUEUE): JobState.WAITING,
        (JobState.RUNNING, JobEvent.SUCCEED): JobState.SUCCEEDED,
        (JobState.RUNNING, JobEvent.FAIL): JobState.FAILED,
        (JobState.RUNNING, JobEvent.CANCEL): JobState.CANCELLED,
        (JobState.FAILED, JobEvent.RETRY): JobState.WAITING,
        (JobState.CANCELLED, JobEvent.RETRY): JobState.WAITING,
    },
)

#: States of ended jobs; a failed or cancelled one can be retried.
ENDED_JOB_STATES = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})


class AttemptState(StrEnum):
    PENDING = "pending"
    ADMITTED = "admitted"
    LAUNCHED = "launched"
    RUNNING = "running"
    STOPPING = "stopping"
    COMPLETING = "completing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


class AttemptEvent(StrEnum):
    #: Its claim is admitted.
    ADMIT = "admit"
    #: The cluster has accepted the Launch.
    LAUNCH = "launch"
    #: All its processes run.
    RUN = "run"
    #: Its processes succeeded; its outputs are not registered yet.
    FINISH = "finish"
    #: Its outputs are registered.
    COMPLETE = "complete"
    #: It has to end: its job is cancelled or its claim revoked.
    STOP = "stop"
    #: The cluster confirmed that none of its processes runs.
    CONFIRM = "confirm"
    #: It is cancelled before its claim was admitted.
    WITHDRAW = "withdraw"
    FAIL = "fail"


ATTEMPT = StateMachine(
    name="attempt",
    initial=AttemptState.PENDING,
    transitions={
        (AttemptState.PENDING, AttemptEvent.ADMIT): AttemptState.ADMITTED,
        (AttemptState.PENDING, AttemptEvent.WITHDRAW): AttemptState.STOPPED,
        (AttemptState.ADMITTED, AttemptEvent.LAUNCH): AttemptState.LAUNCHED,
        (AttemptState.ADMITTED, AttemptEvent.STOP): AttemptState.STOPPING,
        (AttemptState.ADMITTED, AttemptEvent.FAIL): AttemptState.FAILED,
        (AttemptState.LAUNCHED, AttemptEvent.RUN): AttemptState.RUNNING,
        (AttemptState.LAUNCHED, AttemptEvent.FINISH): AttemptState.COMPLETING,
        (AttemptState.LAUNCHED, AttemptEvent.STOP): AttemptState.STOPPING,
        (AttemptState.LAUNCHED, AttemptEvent.FAIL): AttemptState.FAILED,
        (AttemptState.RUNNING, AttemptEvent.FINISH): AttemptState.COMPLETING,
        (AttemptState.RUNNING, AttemptEvent.STOP): AttemptState.STOPPING,
        (AttemptState.RUNNING, AttemptEvent.FAIL): AttemptState.FAILED,
        (AttemptState.STOPPING, AttemptEvent.CONFIRM): AttemptState.STOPPED,
        (AttemptState.COMPLETING, AttemptEvent.COMPLETE): AttemptState.SUCCEEDED,
        (AttemptState.COMPLETING, AttemptEvent.FAIL): AttemptState.FAILED,
    },
)

ENDED_ATTEMPT_STATES = ATTEMPT.final
#: States in which the cluster may run processes of the attempt.
LIVE_ATTEMPT_STATES = frozenset(
    {
        AttemptState.ADMITTED,
        AttemptState.LAUNCHED,
        AttemptState.RUNNING,
        AttemptState.STOPPING,
    }
)
