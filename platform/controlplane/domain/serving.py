"""Deployments and the replicas that serve them.

::

    deployment  STARTING ──become_ready──▶ READY ──degrade──▶ DEGRADED ──become_ready──▶ READY
                    ▲                        │                   │
                    └──start── STOPPED ◀─confirm─ STOPPING ◀──stop──┘

    replica     PENDING ─admit▶ ADMITTED ─launch▶ STARTING ─become_ready▶ READY
                                   ▲                  └───crash──▶ BACKOFF ◀──crash──┘
                                   └────────restart────────────────────┘
                any live state ─stop▶ STOPPING ─confirm▶ STOPPED

A replica that crashes keeps its cards and is restarted with back-off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum

from controlplane.domain.fields import Finding
from controlplane.domain.machines import Machine


class DeploymentState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    STOPPING = "stopping"
    STOPPED = "stopped"


class DeploymentEvent(StrEnum):
    BECOME_READY = "become_ready"
    DEGRADE = "degrade"
    #: A new revision or more replicas: back to starting.
    CHANGE = "change"
    STOP = "stop"
    CONFIRM = "confirm"
    START = "start"


DEPLOYMENT = Machine(
    name="deployment",
    initial=DeploymentState.STARTING,
    arrows={
        (DeploymentState.STARTING, DeploymentEvent.BECOME_READY): DeploymentState.READY,
        (DeploymentState.DEGRADED, DeploymentEvent.BECOME_READY): DeploymentState.READY,
        (DeploymentState.STARTING, DeploymentEvent.DEGRADE): DeploymentState.DEGRADED,
        (DeploymentState.READY, DeploymentEvent.DEGRADE): DeploymentState.DEGRADED,
        (DeploymentState.STARTING, DeploymentEvent.CHANGE): DeploymentState.STARTING,
        (DeploymentState.READY, DeploymentEvent.CHANGE): DeploymentState.STARTING,
        (DeploymentState.DEGRADED, DeploymentEvent.CHANGE): DeploymentState.STARTING,
        (DeploymentState.STARTING, DeploymentEvent.STOP): DeploymentState.STOPPING,
        (DeploymentState.READY, DeploymentEvent.STOP): DeploymentState.STOPPING,
        (DeploymentState.DEGRADED, DeploymentEvent.STOP): DeploymentState.STOPPING,
        (DeploymentState.STOPPING, DeploymentEvent.CONFIRM): DeploymentState.STOPPED,
        (DeploymentState.STOPPED, DeploymentEvent.START): DeploymentState.STARTING,
    },
)


class ReplicaState(StrEnum):
    PENDING = "pending"
    ADMITTED = "admitted"
    STARTING = "starting"
    READY = "ready"
    BACKOFF = "backoff"
    STOPPING = "stopping"
    STOPPED = "stopped"


class ReplicaEvent(StrEnum):
    ADMIT = "admit"
    LAUNCH = "launch"
    BECOME_READY = "become_ready"
    CRASH = "crash"
    RESTART = "restart"
    STOP = "stop"
    CONFIRM = "confirm"


REPLICA = Machine(
    name="replica",
    initial=ReplicaState.PENDING,
    arrows={
        (ReplicaState.PENDING, ReplicaEvent.ADMIT): ReplicaState.ADMITTED,
        (ReplicaState.ADMITTED, ReplicaEvent.LAUNCH): ReplicaState.STARTING,
        (ReplicaState.STARTING, ReplicaEvent.BECOME_READY): ReplicaState.READY,
        (ReplicaState.ADMITTED, ReplicaEvent.CRASH): ReplicaState.BACKOFF,
        (ReplicaState.STARTING, ReplicaEvent.CRASH): ReplicaState.BACKOFF,
        (ReplicaState.READY, ReplicaEvent.CRASH): ReplicaState.BACKOFF,
        (ReplicaState.BACKOFF, ReplicaEvent.RESTART): ReplicaState.ADMITTED,
        **{
            (state, ReplicaEvent.STOP): ReplicaState.STOPPING
            for state in (
                ReplicaState.PENDING,
                ReplicaState.ADMITTED,
                ReplicaState.STARTING,
                ReplicaState.READY,
                ReplicaState.BACKOFF,
            )
        },
        (ReplicaState.STOPPING, ReplicaEvent.CONFIRM): ReplicaState.STOPPED,
    },
)

#: The greatest weight of a backend in a route, as of a backend in the Gateway API of Kubernetes.
MAX_WEIGHT = 1_000_000

FIRST_BACKOFF = timedelta(seconds=1)
LONGEST_BACKOFF = timedelta(minutes=5)
#: A replica that has been ready for this long starts again from the first back-off.
FORGIVEN_AFTER = timedelta(minutes=10)


def backoff(*, crashes: int) -> timedelta:
    """How long to wait before the restart after that many crashes in a row (1, 2, …).

    Doubles from one second up to five minutes.
    """
    if crashes < 1:
        raise ValueError(f"crashes must be at least 1, got {crashes}")
    factor = 1 << min(crashes - 1, 30)
    return min(FIRST_BACKOFF * factor, LONGEST_BACKOFF)


def check_weights(weights: Mapping[str, int], *, route: str) -> Iterator[Finding]:
    """Everything wrong with the weights of a route, by the names of its deployments."""
    for name, weight in weights.items():
        # A truth value is an int as well.
        if type(weight) is not int or not 0 <= weight <= MAX_WEIGHT:
            message = f"the weight of {name} is {weight}; it must be a whole number from 0 to {MAX_WEIGHT}"
            yield Finding(field="weights", message=message)
    if weights and not any(weights.values()):
        message = f"the weights of the route {route} are all 0; one of them must be at least 1"
        yield Finding(field="weights", message=message)
