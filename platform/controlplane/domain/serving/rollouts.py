"""Rollouts of a revision: which replicas are created and stopped next, when one has failed, how traffic moves.

The rules are those of a Kubernetes Deployment (``pkg/controller/deployment/rolling.go``): a rollout never has more
replicas than ``replicas + max_surge`` and never stops one that serves if fewer than ``replicas - max_unavailable``
would be left. Two things differ, because a replica holds cards: replicas that are stopping count until they have
stopped, and a replica that is not ready stops at once if its revision never served.

A paused rollout creates no replica of the new revision and stops none of the earlier ones. A replica that was
evicted meanwhile is replaced by one of the revision that serves. A rollout that waits for its weights is planned
in the same way.

A rollout fails when a replica of the new revision crashes again and again, or when its replicas have had their
cards for the progress deadline and are not all ready. Time in which a replica waits for cards, or in which the
rollout is paused, does not count. The deployment then returns to the revision that serves.

Strategies of traffic are pure functions from a deployment's weights in a route to its new ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, field_finding
from controlplane.domain.serving.lifecycle import ReplicaState

#: The greatest number of ``max_surge`` and ``max_unavailable``: that of the replicas of a deployment.
MAX_BATCH_REPLICAS = 64
#: A number of replicas or a percentage of them.
BATCH_PATTERN = r"^(\d{1,2}|\d{1,3}%)$"

#: States in which a replica ends; it still holds cards.
_ENDING = frozenset({ReplicaState.DRAINING, ReplicaState.STOPPING})


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutStrategy:
    """How many replicas a rollout replaces at a time; each a number (``1``) or a percentage (``25%``)."""

    #: Replicas beyond the wanted number while a rollout is in progress.
    max_surge: str = "1"
    #: Replicas that may be missing while a rollout is in progress.
    max_unavailable: str = "0"

    def findings(self) -> Iterator[FieldFinding]:
        """Everything invalid; nothing if the strategy can be used."""
        valid = True
        for field, value in (
            ("max_surge", self.max_surge),
            ("max_unavailable", self.max_unavailable),
        ):
            if not _is_batch(value):
                valid = False
                yield field_finding(
                    field,
                    "deployment.batch.out_of_range",
                    "must be a number from 0 to {limit} or a percentage from 0% to 100%, got {value}",
                    limit=MAX_BATCH_REPLICAS,
                    value=repr(value),
                )
        if valid and not any(
            int(each.rstrip("%")) for each in (self.max_surge, self.max_unavailable)
        ):
            yield field_finding(
                "max_unavailable",
                "deployment.batch.both_zero",
                "may not be 0 when max_surge is 0: no replica could be replaced; set one of them to 1 or more",
            )

    def limits(self, *, replicas: int) -> RolloutLimits:
        """The numbers for that many replicas: surge is rounded up, unavailable down; one of them is above 0."""
        surge = _resolved(self.max_surge, replicas, round_up=True)
        unavailable = _resolved(self.max_unavailable, replicas, round_up=False)
        if surge == unavailable == 0:
            unavailable = 1
        return RolloutLimits(max_surge=surge, max_unavailable=min(unavailable, replicas))


def _is_batch(value: str) -> bool:
    if re.fullmatch(BATCH_PATTERN, value) is None:
        return False
    limit = 100 if value.endswith("%") else MAX_BATCH_REPLICAS
    return int(value.rstrip("%")) <= limit


def _resolved(value: str, replicas: int, *, round_up: bool) -> int:
    if not value.endswith("%"):
        return int(value)
    share = int(value.rstrip("%")) * replicas
    return math.ceil(share / 100) if round_up else share // 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutLimits:
    """A strategy in replicas."""

    max_surge: int
    max_unavailable: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionReplica:
    """A replica that has not stopped, for the plan of a rollout."""

    #: Grows with each replica.
    key: int
    #: Number of its revision.
    revision: int
    state: ReplicaState

    @property
    def is_ready(self) -> bool:
        return self.state is ReplicaState.READY

    @property
    def is_ending(self) -> bool:
        return self.state in _ENDING


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutActions:
    """What to do next."""

    #: Replicas to create of the revision that the deployment should have.
    create: int = 0
    #: Replicas to create of the revision that serves, while the rollout is paused or waits for its weights.
    create_serving: int = 0
    #: Keys of replicas of the wanted revision that are too many.
    surplus: tuple[int, ...] = ()
    #: Keys of replicas of other revisions to stop.
    superseded: tuple[int, ...] = ()


def plan_rollout(
    live: Sequence[RevisionReplica],
    *,
    replicas: int,
    wanted: int,
    serving: int,
    limits: RolloutLimits,
    paused: bool,
) -> RolloutActions:
    """The next actions of a deployment; none once it has its replicas and no others.

    :param live: its replicas that have not stopped, those that end included.
    :param replicas: how many it should have.
    :param wanted: number of the revision that it should have.
    :param serving: number of the revision that its route has; ``wanted`` unless a rollout is in progress.
    :param paused: by the user, or until the weights of the wanted revision are on the nodes.
    """
    if paused and wanted != serving:
        return _plan_paused(live, replicas=replicas, wanted=wanted, limits=limits)
    current = [each for each in live if each.revision == wanted and not each.is_ending]
    others = [each for each in live if each.revision != wanted]
    missing = replicas - len(current)
    create = missing
    if others:
        create = min(missing, replicas + limits.max_surge - len(live))
    surplus = _youngest(current, -missing)
    return RolloutActions(
        create=max(0, create),
        surplus=surplus,
        superseded=_superseded(
            [each for each in others if not each.is_ending],
            ready=sum(each.is_ready for each in current if each.key not in surplus),
            least=replicas - limits.max_unavailable,
            serving=serving,
        ),
    )


def _superseded(
    others: Sequence[RevisionReplica], *, ready: int, least: int, serving: int
) -> tuple[int, ...]:
    """Keys of replicas of other revisions to stop: those that are not ready first, then the oldest."""
    never_served = [each for each in others if not each.is_ready and each.revision != serving]
    rest = [each for each in others if each not in never_served]
    rest.sort(key=lambda each: (each.is_ready, each.revision, each.key))
    allowed = max(0, ready + len(rest) - least)
    return tuple(each.key for each in (*never_served, *rest[:allowed]))


def _plan_paused(
    live: Sequence[RevisionReplica], *, replicas: int, wanted: int, limits: RolloutLimits
) -> RolloutActions:
    """Replace what was evicted, and stop what is too many after the deployment was scaled down."""
    remaining = [each for each in live if not each.is_ending]
    room = replicas + limits.max_surge - len(live)
    excess = len(remaining) - (replicas + limits.max_surge)
    # Those that are not ready first, then the new revision's, the youngest first.
    order = sorted(remaining, key=lambda each: (each.is_ready, each.revision != wanted, -each.key))
    stopped = order[: max(0, excess)]
    return RolloutActions(
        create_serving=max(0, min(replicas - len(remaining), room)),
        surplus=tuple(each.key for each in stopped if each.revision == wanted),
        superseded=tuple(each.key for each in stopped if each.revision != wanted),
    )


def _youngest(replicas: Sequence[RevisionReplica], count: int) -> tuple[int, ...]:
    ordered = sorted((each.key for each in replicas), reverse=True)
    return tuple(ordered[: max(0, count)])


class RolloutPhase(StrEnum):
    """Where the rollout of a deployment is."""

    #: The revision that it should have serves, with all of its replicas.
    COMPLETE = "complete"
    PROGRESSING = "progressing"
    #: A revision waits; the rollout was paused.
    PAUSED = "paused"
    #: The newest revision failed or was undone, and the one before it serves.
    FAILED = "failed"


def rollout_phase(
    *, in_progress: bool, settled: bool, paused: bool, given_up: bool
) -> RolloutPhase:
    """The phase that pages and REST show.

    :param in_progress: the revision that the deployment should have is not the one that its route has.
    :param settled: all of its replicas are ready and no others are left.
    :param paused: the user paused it.
    :param given_up: the newest revision failed or was undone.
    """
    if paused and (in_progress or not settled):
        return RolloutPhase.PAUSED
    if given_up and not in_progress:
        return RolloutPhase.FAILED
    if in_progress or not settled:
        return RolloutPhase.PROGRESSING
    return RolloutPhase.COMPLETE


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


Backend = TypeVar("Backend")


def shift_all_traffic_at_once(weights: Mapping[Backend, int], *, to: Backend) -> dict[Backend, int]:
    """Give one backend all of the traffic.

    :param weights: of the backends of one deployment in one route, relative to the other backends of the route.
    :param to: the backend of the new revision, whose replicas are ready.
    :returns: the weights of the backends that keep some; the others leave the route.
    """
    return {to: sum(weights.values())}
