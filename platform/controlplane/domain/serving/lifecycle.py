"""State machines of deployments, replicas and weight downloads, and the back-off of restarts.

::

    deployment  STARTING ──become_ready──▶ READY ──degrade──▶ DEGRADED ──become_ready──▶ READY
                    ▲                        └──change──▶ UPDATING ◀──change──┘
                    │                                        └──become_ready──▶ READY, or degrade
                    └──start── STOPPED ◀─confirm─ STOPPING ◀──stop── any of these

    replica     PENDING ─admit▶ ADMITTED ─launch▶ STARTING ─become_ready▶ READY ─drain▶ DRAINING
                                   ▲                  │  ▲                           │
                                   │                  │  └──────become_unready────────┤
                                   │                  └───crash──▶ BACKOFF ◀──crash──┘
                                   └────────restart────────────────────┘
                any live state ─stop▶ STOPPING ─confirm▶ STOPPED

    weight      PENDING ─launch▶ RUNNING ─succeed▶ SUCCEEDED
    download       └──────fail──────┴───fail▶ FAILED
                either ─cancel▶ STOPPING ─confirm▶ CANCELLED

A replica that does not answer its health check is starting until it answers again. One that crashes keeps its
cards and is restarted with back-off. A draining one gets no new requests and stops once every gateway has noticed
and its open requests have ended; a ready replica drains when it is replaced, scaled down, stopped or evicted, an
evicted one within the grace period of its claim.
Pausing and resuming a rollout leaves the state of the deployment as it is.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from controlplane.domain.common.reasons import ReasonedValueError
from controlplane.domain.common.state_machine import StateMachine

#: What a replica has after SIGTERM to end its open requests. Engines stop earlier when there are none.
STOP_GRACE = timedelta(minutes=2)
#: What an evicted replica has, at the end of the grace period of its claim. Others wait for its cards.
EVICTION_GRACE = timedelta(seconds=20)
#: What engines are told: they give up the last requests before they are killed.
DRAIN_SECONDS = int(STOP_GRACE.total_seconds()) - 5


class DeploymentState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    #: A new revision or number of replicas is being rolled out; the earlier one serves meanwhile.
    UPDATING = "updating"
    DEGRADED = "degraded"
    STOPPING = "stopping"
    STOPPED = "stopped"


class DeploymentEvent(StrEnum):
    BECOME_READY = "become_ready"
    DEGRADE = "degrade"
    #: A new revision, or another number of replicas.
    CHANGE = "change"
    #: Pause and resume its rollout.
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    CONFIRM = "confirm"
    START = "start"


LIVE_DEPLOYMENT_STATES = (
    DeploymentState.STARTING,
    DeploymentState.READY,
    DeploymentState.UPDATING,
    DeploymentState.DEGRADED,
)

DEPLOYMENT = StateMachine(
    name="deployment",
    initial=DeploymentState.STARTING,
    transitions={
        (DeploymentState.STARTING, DeploymentEvent.BECOME_READY): DeploymentState.READY,
        (DeploymentState.UPDATING, DeploymentEvent.BECOME_READY): DeploymentState.READY,
        (DeploymentState.DEGRADED, DeploymentEvent.BECOME_READY): DeploymentState.READY,
        (DeploymentState.STARTING, DeploymentEvent.DEGRADE): DeploymentState.DEGRADED,
        (DeploymentState.READY, DeploymentEvent.DEGRADE): DeploymentState.DEGRADED,
        (DeploymentState.UPDATING, DeploymentEvent.DEGRADE): DeploymentState.DEGRADED,
        (DeploymentState.STARTING, DeploymentEvent.CHANGE): DeploymentState.STARTING,
        **{
            (state, DeploymentEvent.CHANGE): DeploymentState.UPDATING
            for state in (DeploymentState.READY, DeploymentState.UPDATING, DeploymentState.DEGRADED)
        },
        **{
            (state, DeploymentEvent.STOP): DeploymentState.STOPPING
            for state in LIVE_DEPLOYMENT_STATES
        },
        (DeploymentState.STOPPING, DeploymentEvent.CONFIRM): DeploymentState.STOPPED,
        (DeploymentState.STOPPED, DeploymentEvent.START): DeploymentState.STARTING,
        **{
            (state, event): state
            for state in LIVE_DEPLOYMENT_STATES
            for event in (DeploymentEvent.PAUSE, DeploymentEvent.RESUME)
        },
    },
)


class ReplicaState(StrEnum):
    PENDING = "pending"
    ADMITTED = "admitted"
    STARTING = "starting"
    READY = "ready"
    BACKOFF = "backoff"
    #: It gets no new requests and is about to stop.
    DRAINING = "draining"
    STOPPING = "stopping"
    STOPPED = "stopped"


class ReplicaEvent(StrEnum):
    ADMIT = "admit"
    LAUNCH = "launch"
    BECOME_READY = "become_ready"
    #: Its health check fails; it gets no requests until it answers again.
    BECOME_UNREADY = "become_unready"
    CRASH = "crash"
    RESTART = "restart"
    DRAIN = "drain"
    STOP = "stop"
    CONFIRM = "confirm"


REPLICA = StateMachine(
    name="replica",
    initial=ReplicaState.PENDING,
    transitions={
        (ReplicaState.PENDING, ReplicaEvent.ADMIT): ReplicaState.ADMITTED,
        (ReplicaState.ADMITTED, ReplicaEvent.LAUNCH): ReplicaState.STARTING,
        (ReplicaState.STARTING, ReplicaEvent.BECOME_READY): ReplicaState.READY,
        (ReplicaState.READY, ReplicaEvent.BECOME_UNREADY): ReplicaState.STARTING,
        (ReplicaState.ADMITTED, ReplicaEvent.CRASH): ReplicaState.BACKOFF,
        (ReplicaState.STARTING, ReplicaEvent.CRASH): ReplicaState.BACKOFF,
        (ReplicaState.READY, ReplicaEvent.CRASH): ReplicaState.BACKOFF,
        (ReplicaState.BACKOFF, ReplicaEvent.RESTART): ReplicaState.ADMITTED,
        (ReplicaState.READY, ReplicaEvent.DRAIN): ReplicaState.DRAINING,
        **{
            (state, ReplicaEvent.STOP): ReplicaState.STOPPING
            for state in (
                ReplicaState.PENDING,
                ReplicaState.ADMITTED,
                ReplicaState.STARTING,
                ReplicaState.READY,
                ReplicaState.BACKOFF,
                ReplicaState.DRAINING,
            )
        },
        (ReplicaState.STOPPING, ReplicaEvent.CONFIRM): ReplicaState.STOPPED,
    },
)


class WeightDownloadState(StrEnum):
    """Of the download of a model version's weights into the weight cache of one node."""

    PENDING = "pending"
    RUNNING = "running"
    #: It was cancelled, and its processes have not ended.
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class WeightDownloadEvent(StrEnum):
    LAUNCH = "launch"
    SUCCEED = "succeed"
    FAIL = "fail"
    CANCEL = "cancel"
    CONFIRM = "confirm"


WEIGHT_DOWNLOAD = StateMachine(
    name="weight download",
    initial=WeightDownloadState.PENDING,
    transitions={
        (WeightDownloadState.PENDING, WeightDownloadEvent.LAUNCH): WeightDownloadState.RUNNING,
        (WeightDownloadState.PENDING, WeightDownloadEvent.FAIL): WeightDownloadState.FAILED,
        (WeightDownloadState.RUNNING, WeightDownloadEvent.SUCCEED): WeightDownloadState.SUCCEEDED,
        (WeightDownloadState.RUNNING, WeightDownloadEvent.FAIL): WeightDownloadState.FAILED,
        (WeightDownloadState.PENDING, WeightDownloadEvent.CANCEL): WeightDownloadState.STOPPING,
        (WeightDownloadState.RUNNING, WeightDownloadEvent.CANCEL): WeightDownloadState.STOPPING,
        (WeightDownloadState.STOPPING, WeightDownloadEvent.CONFIRM): WeightDownloadState.CANCELLED,
    },
)
#: States in which its node may still be downloading.
ACTIVE_WEIGHT_DOWNLOAD_STATES = (
    WeightDownloadState.PENDING,
    WeightDownloadState.RUNNING,
    WeightDownloadState.STOPPING,
)

INITIAL_BACKOFF = timedelta(seconds=10)
MAX_BACKOFF = timedelta(minutes=5)
#: A replica that has been ready for this long restarts with the initial back-off.
BACKOFF_RESET_AFTER = timedelta(minutes=10)


def restart_backoff(*, crashes: int) -> timedelta:
    """The delay before the restart after that many consecutive crashes (1, 2, …).

    Doubles from ten seconds up to five minutes, as that of Kubernetes does.
    """
    if crashes < 1:
        raise ReasonedValueError(
            "deployment.restart.invalid_crash_count",
            "the number of crashes of a replica must be at least 1, got {crashes}",
            crashes=crashes,
        )
    factor = 1 << min(crashes - 1, 30)
    return min(INITIAL_BACKOFF * factor, MAX_BACKOFF)
