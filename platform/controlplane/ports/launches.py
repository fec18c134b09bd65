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

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Self

from controlplane.domain.common.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where one replica runs."""

    #: The node's name inside its cluster.
    node: str
    #: Indices of the cards on that node, in ascending order.
    cards: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """An HTTP GET that answers 200 once the process can serve."""

    port: str
    path: str
    #: How long a process may take until its first success.
    start_within: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Identical processes of a Launch."""

    name: str
    argv: tuple[str, ...]
    #: One entry per replica.
    placements: tuple[Placement, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Names of TCP ports that the cluster assigns; each is had as ``{port:NAME}``.
    ports: tuple[str, ...] = ()
    probe: Probe | None = None
    #: Limits of one replica.
    limits: Resources = Resources()


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTree:
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
    roles: tuple[Role, ...]
    #: Small text files, by path relative to ``{work}``; a path may not leave it.
    files: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[InputTree, ...] = ()
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
    #: Who owns it: ``{"team": …, "kind": …, "uid": …}``; and for clusters that schedule by themselves the uid of
    #: its ``queue``, the number of its ``priority`` and, where it has one, the level that it stays ``within``.
    labels: Mapping[str, str] = field(default_factory=dict)

    def limited(self, limits: Mapping[str, Resources], *, run_within: timedelta | None) -> Self:
        """The same Launch with each role's limits by name; the shorter of two time limits holds."""
        roles = tuple(replace(role, limits=limits[role.name]) for role in self.roles)
        bounds = [bound for bound in (self.run_within, run_within) if bound is not None]
        return replace(self, roles=roles, run_within=min(bounds, default=None))
