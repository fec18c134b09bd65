"""The cluster port: where Launches run.

Every method is safe to repeat: ``launch`` creates if absent, ``stop`` and ``remove`` tolerate "gone", ``observe``
reports what is there and never changes it. Every method that calls the cluster raises ``ClusterError`` if the
cluster does not answer or refuses. One contract suite
(``tests/contract/test_cluster_contract.py``) runs on every adapter.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol, runtime_checkable

from controlplane.domain.common.reasons import Parameter, Reason, ReasonedError
from controlplane.domain.common.resources import Bytes, Resources
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.quotas.queue_documents import Documents
from controlplane.ports.launches import Launch


class ClusterError(ReasonedError):
    """The cluster refused or failed a call; the message is fit for the user."""


class InvalidClusterOption(ClusterError):
    """An option of the cluster cannot be used; the parameter ``option`` is its path, such as ``mounts[0].at``."""

    def __init__(self, message: str, template: str = "", /, **params: Parameter) -> None:
        super().__init__(message, template, **params)
        self.option = str(params.get("option", "")).strip("'")


class ClusterUnavailable(ClusterError):
    """The cluster cannot be reached now; the same call may succeed later."""

    @property
    def message(self) -> Reason:
        """What pages and REST report."""
        return Reason(
            "cluster.connection.unresponsive",
            "the cluster does not respond: {error}",
            error=str(self),
        )


class CredentialRefused(ClusterError):
    """What a cluster is to be reached by cannot be used as it is; another one may be."""


class LaunchRefused(ClusterError):
    """The Launch can never run as it is (a path that leaves its folder, an unknown node, a clashing name)."""


class ReplicaPhase(StrEnum):
    """What one replica is doing."""

    #: The software environment or the inputs are being prepared.
    PREPARING = "preparing"
    #: The process runs; its probe has not succeeded yet, or fails again (only where there is a probe).
    STARTING = "starting"
    RUNNING = "running"
    #: The process group has ended and its exit is known.
    EXITED = "exited"
    #: The process group has ended and its exit is unknown (the machine restarted, the supervisor was killed).
    LOST = "lost"


class ExitCause(StrEnum):
    """Why a replica is no more."""

    FINISHED = "finished"
    FAILED = "failed"
    #: Ended by a signal that Ninefold did not send.
    KILLED = "killed"
    STOPPED = "stopped"
    OUT_OF_MEMORY = "out_of_memory"
    OUT_OF_TIME = "out_of_time"
    DISK_FULL = "disk_full"
    #: Its environment or inputs could not be prepared.
    NOT_PREPARED = "not_prepared"
    LOST = "lost"


#: Exit codes, 128 + n as a shell reports them, of what is sent to a process from outside: SIGHUP, SIGINT, SIGKILL
#: and SIGTERM. Other signals, such as SIGSEGV and SIGABRT, are raised by what the program itself does.
_KILLED_CODES = frozenset({129, 130, 137, 143})


#: As reported by ``ninefold_runtime.exit_codes``; other programs are classified by their last lines.
EXIT_DISK_FULL: Final = 28
EXIT_OUT_OF_MEMORY: Final = 12
_DISK_FULL_MESSAGES = ("No space left on device", "Errno 28", "Disk quota exceeded")


def shows_full_disk(code: int, output: str) -> bool:
    """Whether an exit code or the end of the output reports a full disk."""
    return code == EXIT_DISK_FULL or any(phrase in output for phrase in _DISK_FULL_MESSAGES)


def exit_cause_of_code(code: int) -> ExitCause:
    """The cause that an exit code shows where nothing else is known."""
    if code == 0:
        return ExitCause.FINISHED
    return ExitCause.KILLED if code in _KILLED_CODES else ExitCause.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedReplica:
    role: str
    index: int
    phase: ReplicaPhase
    #: A short sentence on what is going on ("installing 34 of 62 packages"), or why it ended.
    message: str = ""
    exit_code: int | None = None
    cause: ExitCause | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    memory: Bytes = Bytes(0)
    #: Bytes of its inputs that are on the node, while it downloads them; None where unknown.
    downloaded: Bytes | None = None

    @property
    def ended(self) -> bool:
        return self.phase in (ReplicaPhase.EXITED, ReplicaPhase.LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedLaunch:
    """The cluster's status of one Launch. ``replicas`` has one entry per replica of every role."""

    name: str
    replicas: tuple[ObservedReplica, ...]
    labels: Mapping[str, str]

    @property
    def ended(self) -> bool:
        """Every process group has ended: the cards are free."""
        return all(replica.ended for replica in self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCard:
    index: int
    chip: str
    memory: Bytes = Bytes(0)
    serial: str = ""
    healthy: bool = True
    #: Allocated to work that is not ours: this card, or as many of the node as are marked so.
    taken: bool = False
    #: It is divided into slices, and given out as these alone.
    partitioned: bool = False
    #: Index of the card that it is a slice of; None for whole cards.
    parent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedNode:
    name: str
    cards: tuple[ObservedCard, ...]
    capacity: Resources
    ready: bool = True
    labels: Mapping[str, str] | None = None
    #: Groups of card indices that share a direct link.
    rings: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """Bytes of a log from an offset. Lines may be cut at either end."""

    content: bytes
    #: Where the next read starts.
    next_offset: int
    #: No more will ever come.
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaEndpoint:
    """Where a replica's port can be reached from the gateway."""

    url: str
    #: The bearer token that the engine requires; empty where it requires none.
    credential: str = ""


@runtime_checkable
class ClusterAdapter(Protocol):
    """Where Launches run."""

    @property
    def runs_images(self) -> bool:
        """Whether it starts containers; otherwise it runs only what brings a software environment."""

    def inventory(self) -> tuple[ObservedNode, ...]:
        """Every node with its cards, in name order.

        :raises ClusterUnavailable: if the cluster does not answer.
        """

    def isolation(self) -> str:
        """What keeps work apart from the product, as a sentence; starts with "not isolated" where nothing does."""

    def launch(self, launch: Launch) -> None:
        """Start it if nothing of that name exists; else do nothing.

        :raises LaunchRefused: if it can never run.
        :raises ClusterUnavailable: if the cluster does not answer; nothing partial stays behind.
        """

    def observe(self, names: Collection[str]) -> Mapping[str, ObservedLaunch]:
        """The named Launches that exist. A name that is absent here was removed or never launched."""

    def names(self) -> frozenset[str]:
        """Every Launch that exists here, ended ones included until they are removed."""

    def stop(self, name: str, *, grace: timedelta) -> None:
        """Ask every process to save and end; kill what is left of each group after ``grace``.

        Returns at once. Repeating it never extends the first grace period.
        """

    def remove(self, name: str) -> None:
        """Forget an ended Launch and delete its working folder.

        :raises ClusterError: if it has not ended.
        """

    def disk_usage_by_launch(self, names: Collection[str]) -> Mapping[str, Bytes]:
        """Bytes on disk that removing each of the named Launches would free; missing ones are left out.

        Inputs do not count: they belong to the artifact store.
        """

    def log(self, name: str, *, role: str, index: int, offset: int, limit: int) -> LogChunk:
        """Up to ``limit`` bytes of a replica's output from ``offset``; a negative offset counts from the end.

        An unknown Launch or replica gives an empty complete chunk.
        """

    def endpoint(self, name: str, *, role: str, index: int, port: str) -> ReplicaEndpoint | None:
        """Where that port can be reached; None until it has been assigned."""


class CheckVerdict(StrEnum):
    """How one check of a connection went."""

    PASSED = "passed"
    #: Workloads can run with restrictions; the message says what is lost.
    LACKING = "lacking"
    #: Nothing can run until it is put right.
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCheck:
    """One thing that a cluster must have, and whether it has it."""

    #: A stable word, such as ``api``, ``permissions`` or ``device-plugins``.
    name: str
    verdict: CheckVerdict
    #: What was found, as a sentence.
    message: str
    #: What an administrator of that cluster does about it; empty where nothing is to be done.
    remedy: str = ""
    #: What the remedy applies to the cluster, as YAML; empty if it applies nothing.
    manifest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent:
    """An event of a cluster about one of its objects."""

    at: datetime
    #: Whether its type is ``Warning``; otherwise ``Normal``.
    warning: bool
    reason: str
    message: str
    #: ``pod/attempt-3f2a-main-0``.
    about: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterObject:
    """One object of a Launch, as the cluster stores it."""

    kind: str
    namespace: str
    name: str
    #: The whole object as YAML; values of secrets are left out.
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCondition:
    name: str
    holds: bool
    #: Whether that is how it should be.
    good: bool
    reason: str
    message: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePod:
    """A pod on a node, of Ninefold or of others."""

    namespace: str
    name: str
    phase: str
    #: The Launch that it belongs to; empty if it is not ours.
    launch: str
    #: Its resource requests, as the cluster writes quantities.
    requests: Mapping[str, str] = field(default_factory=dict)
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInspection:
    """Details of one node beyond its cards."""

    name: str
    conditions: tuple[NodeCondition, ...]
    pods: tuple[NodePod, ...]
    events: tuple[ClusterEvent, ...]
    labels: Mapping[str, str]
    #: ``key=value:effect``.
    taints: tuple[str, ...]
    #: Program or resource → version or amount: kubelet, runtime, kernel, allocatable resources.
    facts: Mapping[str, str]


@runtime_checkable
class LocatableCluster(Protocol):
    """A cluster whose options can point to another place, where its Launches do not exist."""

    def location(self) -> Mapping[str, str]:
        """Options that identify where its workloads are; a credential is no part of it.

        The cluster is not called. Workloads are found again exactly while all of it stays the same.
        """


@runtime_checkable
class DownloadingCluster(Protocol):
    """A cluster whose nodes can download inputs."""

    @property
    def downloads_inputs(self) -> bool:
        """Whether Launches need ``downloads``, because the cluster has no folder of the artifact store."""


@runtime_checkable
class EphemeralCluster(Protocol):
    """A cluster whose working folders may be deleted with their processes."""

    @property
    def loses_checkpoints(self) -> bool:
        """Whether no folder outlives a process, so that a later attempt does not find its checkpoints."""


@runtime_checkable
class WeightCachingCluster(DownloadingCluster, Protocol):
    """A cluster on whose nodes downloaded inputs stay for later Launches.

    A pinned Launch on one node brings its inputs into the cache of that node.
    """

    @property
    def weight_cache_limit(self) -> Bytes | None:
        """Bytes of the weight cache of a node; None where a node has none."""


@runtime_checkable
class InspectableCluster(Protocol):
    """A cluster that can be inspected: version, checks, objects, events and nodes."""

    def version(self) -> str:
        """Of its API, as it calls it."""

    def checks(self) -> tuple[ClusterCheck, ...]:
        """What it needs for our work, in a fixed order. A cluster that does not answer fails one check."""

    def objects(self, name: str) -> tuple[ClusterObject, ...]:
        """The Launch's objects there."""

    def events(self, name: str) -> tuple[ClusterEvent, ...]:
        """What happened to the Launch's objects, the newest first."""

    def node(self, name: str) -> NodeInspection | None:
        """One node; None if there is no such node."""


@runtime_checkable
class WatchableCluster(Protocol):
    """A cluster that reports changes at once, so that it need not be polled."""

    def watch(
        self,
        *,
        launches_changed: Callable[[frozenset[str]], None],
        nodes_changed: Callable[[], None],
        alive: Callable[[], None],
        stopping: threading.Event,
    ) -> None:
        """Follow it until ``stopping`` is set; every failure is waited out and tried again.

        ``launches_changed`` gets names of Launches that may have changed; all of them after each full listing.
        ``alive`` is called whenever the connection has proved itself, at least twice a minute while it is healthy.
        """


@runtime_checkable
class TeamIsolatingCluster(Protocol):
    """A cluster on which objects of its own separate teams from each other and from the rest of the network."""

    def reconcile_isolation(self) -> None:
        """Bring those objects up to date for every team, also where an earlier release created them."""


@runtime_checkable
class QueueSyncingCluster(Protocol):
    """A cluster whose own scheduler needs our queues: it has a copy of them and of what belongs to them.

    Each method brings its part of the copy up to date and changes nothing where it is; what is not ours is left
    alone. None of them is quick enough to be called inside a transaction.
    """

    def sync_queues(self, documents: Documents) -> tuple[FieldFinding, ...]:
        """Let it have the queues of the tree, and no others of ours.

        :return: what of the tree it does not enforce, and what it cannot delete yet. ``field`` is the queue's
            display name.
        :raises ClusterError: if it would refuse a part of the tree, in which case nothing was changed; or if it
            does not answer or refuses, and what was done until then stays.
        """

    def sync_priority_classes(self, classes: Mapping[str, int]) -> None:
        """Create a priority class for each value, by display name; a removed one stays."""

    def sync_topology(self) -> None:
        """Publish the network topology of the nodes, unless another controller does."""


#: The code of a signal that a node has been without heartbeat for too long.
NODE_UNREACHABLE: Final = "node-silent"
#: The node label that names who acts on its faults, so that we only watch. Adapters set it where somebody
#: does, and leave what an administrator of the cluster set. Without it, or with ``REMEDIATED_BY_NINEFOLD``,
#: Ninefold acts.
REMEDIATION_LABEL: Final = "ninefold.io/keeper"
REMEDIATED_BY_NINEFOLD: Final = "ninefold"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSignal:
    """One signal of the cluster about a node, or about one of its cards."""

    node: str
    #: The card's place in its node, as the inventory counts; None for the node itself.
    index: int | None = None
    origin: SignalOrigin
    #: A code of the vendor's fault map, a condition's type, an event's reason.
    code: str
    #: The required action; None where the fault map of ``vendor`` gives it.
    level: FaultLevel | None = None
    #: The vendor of the code; empty where it belongs to none.
    vendor: str = ""
    #: Whether its source calls it minor, should no fault map know the code.
    minor: bool = False
    #: The message of its source.
    message: str = ""
    #: When it happened, or began, as the cluster reports it; None where it does not.
    since: datetime | None = None
    #: False where it is reported as resolved, as opposed to no longer reported.
    active: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableSource:
    """A source that could not be read: its earlier signals may still hold."""

    origin: SignalOrigin
    #: Empty where it is about every node.
    node: str = ""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDiagnosis:
    """All signals of a cluster at one time. A lasting signal that is absent here is resolved."""

    signals: tuple[ClusterSignal, ...] = ()
    unreadable: tuple[UnreadableSource, ...] = ()


@runtime_checkable
class DiagnosableCluster(Protocol):
    """A cluster that reports faults of its nodes and cards."""

    def diagnose(self) -> ClusterDiagnosis:
        """Its current signals, in few calls whatever its size; what is malformed or forbidden is ``unreadable``.

        :raises ClusterUnavailable: if it does not answer: then nothing is known of any card.
        """


@runtime_checkable
class TaintableCluster(Protocol):
    """A cluster that can keep its own scheduler off an isolated node by a taint."""

    def taint_node(self, node: str, reason: str) -> bool:
        """Keep new pods away from it; running ones stay.

        Repeating it changes nothing, or the reason. Cordons and taints of others are left as they are.

        :return: whether our taint is present; not if the node is deleted, or has another installation's.
        :raises ClusterError: if it does not answer or refuses.
        """

    def untaint_node(self, node: str) -> None:
        """Remove our taint; without one, or without such a node, nothing happens."""
