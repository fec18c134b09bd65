"""A Launch: vendor-neutral processes, ready for any cluster.

::

    Launch "attempt-3f2a…"                 one per job attempt or serving replica
      ├─ role "trainer", 2 replicas        argv, environment, ports, limits
      │    ├─ replica 0 on node n1, cards 0-3
      │    └─ replica 1 on node n2, cards 0-3
      ├─ files     small text files written into the working folder (the spec)
      ├─ inputs    artifact trees, mounted read-only by digest
      └─ engine    the environment that provides ``python``

The name is derived from a row's uid before the call, so launching twice is launching once.
Placeholders in ``argv``, ``environment`` and ``files`` are written ``{work}``, ``{inputs}``, ``{port:http}``,
``{python}``, ``{index}`` (of the replica in its role, from 0) and ``{leader}`` (address of replica 0), and are
filled by the cluster; no other braces are touched, and nothing passes a shell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Self

from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import Resources
from controlplane.ports.artifacts import BlobDownload

#: The file of a Launch with the certificates that its processes trust for URLs of the artifact store, and the
#: variable with its path, which ``ninefold_runtime`` reads.
AUTHORITIES_FILE = "s3-ca.pem"
AUTHORITIES_VARIABLE = "NINEFOLD_S3_CA_FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlacement:
    """Where one replica runs."""

    #: The node's name inside its cluster.
    node: str
    #: Indices of the cards on that node, in ascending order.
    cards: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessProbe:
    """An HTTP GET that answers 200 once the process can serve, and is repeated as long as it runs.

    An engine that hangs keeps its process, its cards and its port: only its missing answers show it. The time-out
    is long, so that an engine that is slow because it is busy is not taken for one that hangs.
    """

    port: str
    path: str
    #: How long a process may take until its first success.
    start_within: timedelta = timedelta(minutes=5)
    #: After the first success: the time from one check to the next.
    period: timedelta = timedelta(seconds=30)
    #: After the first success: how long one answer may take. With the same value as ``period``, a process that
    #: accepts connections without an answer is ended as soon as one that refuses them.
    timeout: timedelta = timedelta(seconds=30)
    #: Consecutive failures after which the process gets no requests until it answers again.
    unready_threshold: int = 2
    #: Consecutive failures after which the process is ended.
    failure_threshold: int = 6

    @property
    def unanswered_limit(self) -> timedelta:
        """How long a process that has answered may go without an answer."""
        return self.period * self.failure_threshold


#: Message of a process that gets no requests until it answers again.
UNREADY = Reason("launch.probe.unready", "the engine does not answer its health check")


def unanswered_probe_reason(unanswered: timedelta) -> Reason:
    """Why a process that hung was ended."""
    return Reason(
        "launch.probe.unanswered",
        "the engine did not answer its health check for {seconds} s",
        seconds=f"{unanswered.total_seconds():g}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRole:
    """Identical processes of a Launch."""

    name: str
    argv: tuple[str, ...]
    #: One entry per replica.
    placements: tuple[LaunchPlacement, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Names of TCP ports that the cluster assigns; each is had as ``{port:NAME}``.
    ports: tuple[str, ...] = ()
    probe: ReadinessProbe | None = None
    #: Limits of one replica.
    limits: Resources = Resources()


@dataclass(frozen=True, slots=True, kw_only=True)
class InputArtifact:
    """An artifact to mount read-only at ``{inputs}/<name>``."""

    name: str
    #: Relative path → content digest (``sha256:<hex>``) of each file.
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineEnvironment:
    """The software environment in which a Launch runs."""

    #: Stable name with the digest of its lock, for example ``transformers-3fa9c1d2``.
    name: str
    #: Distributions to install before the lock, without hashes (``torch==2.13.0``): the CPU and GPU builds
    #: of one version differ, and the machine decides which it gets.
    preinstall: tuple[str, ...]
    #: Text of the hashed requirements file.
    lock: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything that a cluster needs to run one gang of processes, all or nothing."""

    name: str
    roles: tuple[LaunchRole, ...]
    #: Small text files, by path relative to ``{work}``; a path may not leave it.
    files: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[InputArtifact, ...] = ()
    #: Where each blob of the inputs is downloaded, by digest; empty: the cluster reads the artifact store itself.
    downloads: Mapping[str, BlobDownload] = field(default_factory=dict)
    #: None runs on the cluster's plain Python, or in the image.
    engine: EngineEnvironment | None = None
    #: For clusters that run containers; empty where the engine's environment is all that it needs.
    image: str = ""
    #: Values that are secret (the attempt's token): given to the process, never logged or shown.
    secrets: Mapping[str, str] = field(default_factory=dict)
    #: The whole Launch is killed after this; None means no limit.
    run_within: timedelta | None = None
    #: How long a stopped process may take to save before it is killed.
    grace: timedelta = timedelta(seconds=30)
    #: Name of an earlier Launch whose working folder this one continues in (resume from its checkpoints).
    continues: str | None = None
    #: Whether replicas read below ``{work}/checkpoints`` what others wrote there: on several nodes the cluster has
    #: to keep that folder for all of them.
    shares_checkpoints: bool = False
    #: Whether the nodes of its placements are fixed also where the cluster's scheduler chooses nodes otherwise; it
    #: has no cards then, and waits in no queue.
    pinned: bool = False
    #: Who owns it: ``{"team": …, "kind": …, "uid": …}``; and for clusters that schedule by themselves the uid of
    #: its ``queue``, the number of its ``priority`` and, where it has one, the level that it stays ``within``.
    labels: Mapping[str, str] = field(default_factory=dict)

    def limited(self, limits: Mapping[str, Resources], *, run_within: timedelta | None) -> Self:
        """The same Launch with each role's limits by name; the shorter of two time limits holds."""
        roles = tuple(replace(role, limits=limits[role.name]) for role in self.roles)
        bounds = [bound for bound in (self.run_within, run_within) if bound is not None]
        return replace(self, roles=roles, run_within=min(bounds, default=None))

    def with_variables(self, variables: Mapping[str, str]) -> Self:
        """The same Launch with further environment variables in every role."""
        roles = tuple(
            replace(role, environment={**role.environment, **variables}) for role in self.roles
        )
        return replace(self, roles=roles)

    def trusting(self, authorities: str) -> Self:
        """The same Launch with PEM certificates for URLs of the artifact store; unchanged if there are none."""
        if not authorities:
            return self
        trusting = replace(self, files={**self.files, AUTHORITIES_FILE: authorities})
        return trusting.with_variables({AUTHORITIES_VARIABLE: f"{{work}}/{AUTHORITIES_FILE}"})


#: Values of placeholders and of the Launch itself, which neither spec nor chip sets.
_LEFT_OUT = frozenset({"MASTER_PORT", "NINEFOLD_REPORT_URL"})


class DifferencePart(StrEnum):
    """What kind of thing differs."""

    IMAGE = "image"
    ENVIRONMENT = "environment"
    #: Arguments of the program, on its command line or in a file.
    ARGUMENTS = "arguments"
    CARDS = "cards"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchDifference:
    """One thing that is not the same in two Launches."""

    path: str
    part: DifferencePart
    #: None where the first has nothing there.
    left: str | None
    right: str | None


def launch_differences(a: Launch, b: Launch) -> tuple[LaunchDifference, ...]:
    """Everything that differs in what the two would run, in a fixed order; secrets and names do not count."""
    return tuple(_launch_differences(a, b))


def _launch_differences(a: Launch, b: Launch) -> Iterator[LaunchDifference]:
    if a.image != b.image:
        yield LaunchDifference(path="image", part=DifferencePart.IMAGE, left=a.image, right=b.image)
    names = (a.engine.name if a.engine else "", b.engine.name if b.engine else "")
    if names[0] != names[1]:
        yield LaunchDifference(
            path="engine", part=DifferencePart.IMAGE, left=names[0], right=names[1]
        )
    left_roles = {role.name: role for role in a.roles}
    right_roles = {role.name: role for role in b.roles}
    for name in dict.fromkeys((*left_roles, *right_roles)):
        left, right = left_roles.get(name), right_roles.get(name)
        if left is None or right is None:
            yield LaunchDifference(
                path=f"roles.{name}",
                part=DifferencePart.CARDS,
                left=name if left else None,
                right=name if right else None,
            )
        else:
            yield from _role_differences(left, right)
    for path in sorted({*a.files, *b.files}):
        yield from _line_differences(
            f"files/{path}",
            a.files[path].splitlines() if path in a.files else [],
            b.files[path].splitlines() if path in b.files else [],
            separator=":",
        )


def _role_differences(left: LaunchRole, right: LaunchRole) -> Iterator[LaunchDifference]:
    cards = tuple(_format_cards(role) for role in (left, right))
    if cards[0] != cards[1]:
        yield LaunchDifference(
            path="cards", part=DifferencePart.CARDS, left=cards[0], right=cards[1]
        )
    yield from _line_differences("argv", left.argv, right.argv, separator=".")
    yield from _variable_differences(left.environment, right.environment)


def _variable_differences(
    left: Mapping[str, str], right: Mapping[str, str]
) -> Iterator[LaunchDifference]:
    for name in sorted({*left, *right} - _LEFT_OUT):
        if left.get(name) != right.get(name):
            yield LaunchDifference(
                path=f"environment.{name}",
                part=DifferencePart.ENVIRONMENT,
                left=left.get(name),
                right=right.get(name),
            )


def _line_differences(
    where: str,
    left: list[str] | tuple[str, ...],
    right: list[str] | tuple[str, ...],
    *,
    separator: str,
) -> Iterator[LaunchDifference]:
    """Lines that were changed, left out or added, numbered from 1 as on the side that has them."""
    for kind, i, i_end, j, j_end in SequenceMatcher(a=left, b=right, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for offset in range(max(i_end - i, j_end - j)):
            old = left[i + offset] if i + offset < i_end else None
            new = right[j + offset] if j + offset < j_end else None
            number = (i if old is not None else j) + offset + 1
            yield LaunchDifference(
                path=f"{where}{separator}{number}",
                part=DifferencePart.ARGUMENTS,
                left=old,
                right=new,
            )


def _format_cards(role: LaunchRole) -> str:
    """``2 × 8``: replicas and the cards of each."""
    counts = sorted({len(placement.cards) for placement in role.placements})
    return f"{len(role.placements)} × {'/'.join(map(str, counts))}"
