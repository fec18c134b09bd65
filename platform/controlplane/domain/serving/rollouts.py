"""When the rollout of a revision has failed, so that the deployment returns to the revision that serves.

A rollout fails when a replica of the new revision crashes again and again, or when its replicas have had their
cards for the progress deadline and are not all ready. Time in which a replica waits for cards, or in which the
rollout is paused, does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.domain.common.reasons import Reason
from controlplane.domain.serving.lifecycle import ReplicaState

#: Consecutive crashes of one replica: after 10, 20, 40 and 80 seconds of back-off it has crashed once more.
MAX_ROLLOUT_CRASHES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutReplica:
    """A replica of the revision that is rolled out."""

    state: ReplicaState
    #: Consecutive crashes.
    crashes: int
    #: Its last message.
    message: str
    #: When it first got its cards; None while it waits for them.
    admitted_at: datetime | None


def rollout_failure(
    replicas: Sequence[RolloutReplica],
    *,
    deadline: timedelta,
    at: datetime,
    resumed_at: datetime | None = None,
) -> str:
    """Why the rollout has failed; empty while it has not.

    :param resumed_at: when it was last resumed; the deadline starts again then, as that of Kubernetes does.
    """
    late = [replica for replica in replicas if replica.state is not ReplicaState.READY]
    crashing = [replica for replica in late if replica.crashes >= MAX_ROLLOUT_CRASHES]
    if crashing:
        return Reason(
            "rollout.failed.crashes",
            "a replica crashed {crashes} times in a row: {reason}",
            crashes=crashing[0].crashes,
            reason=crashing[0].message,
        )
    admitted = [replica.admitted_at for replica in replicas]
    if not late or any(each is None for each in admitted):
        return ""
    if at - max(each for each in (*admitted, resumed_at) if each is not None) < deadline:
        return ""
    return Reason(
        "rollout.failed.deadline",
        "{ready} of {replicas} replicas were ready {minutes} minutes after they got their cards: {reason}",
        ready=len(replicas) - len(late),
        replicas=len(replicas),
        minutes=int(deadline.total_seconds() // 60),
        reason=late[0].message,
    )
