"""The five names by which processes of a gang find each other, and the parallel plan that they follow.

::

    NNODES  NODE_RANK  NPROC_PER_NODE  MASTER_ADDR  MASTER_PORT

``torchrun`` and every engine's own launcher read them; nothing else tells replicas of each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.domain.common.accelerators import Chip
from controlplane.domain.jobs.parallelism import ParallelPlan, check, read_plan
from controlplane.ports.launches import LaunchPlacement
from controlplane.ports.registry import chip_plugin

#: The arguments of ``torchrun``; ``programs/run_steps.py`` replaces a name by its value in each replica.
ARGUMENTS = (
    *("--nnodes", "$NNODES", "--node_rank", "$NODE_RANK"),
    *("--nproc_per_node", "$NPROC_PER_NODE"),
    *("--master_addr", "$MASTER_ADDR", "--master_port", "$MASTER_PORT"),
)
#: Below the ports that Linux gives to clients and those that Kubernetes gives to services.
_FIRST_PORT, _PORTS = 20_000, 10_000


class InvalidParallelPlan(ValueError):
    """The parallel plan does not fit the cards."""


def parallel_plan(values: Mapping[str, Any], *, cards: int) -> ParallelPlan:
    """The plan of a spec's group ``parallel`` on so many cards.

    :raises InvalidParallelPlan: if it does not multiply out to them.
    """
    plan = read_plan(values, cards=cards)
    if findings := check(plan, cards=cards):
        raise InvalidParallelPlan("; ".join(finding.message for finding in findings))
    return plan


def processes_per_replica(placements: Sequence[LaunchPlacement]) -> int:
    """Processes of one replica, one for each of its cards.

    :raises InvalidParallelPlan: unless every replica has as many cards.
    """
    counts = {max(1, len(placement.cards)) for placement in placements}
    if len(counts) != 1:
        found = ", ".join(f"{each.node}: {len(each.cards)}" for each in placements)
        raise InvalidParallelPlan(f"every node of a job must give as many cards; got {found}")
    return counts.pop()


def rendezvous_variables(placements: Sequence[LaunchPlacement], *, launch: str) -> dict[str, str]:
    """The five names for the replicas of a Launch of that name."""
    return {
        "NNODES": str(len(placements)),
        "NODE_RANK": "{index}",
        "NPROC_PER_NODE": str(processes_per_replica(placements)),
        "MASTER_ADDR": "{leader}",
        "MASTER_PORT": str(master_port(launch)),
    }


def master_port(launch: str) -> int:
    """The port at which replicas meet.

    It is the same for all of them and for every rendering, and two Launches that share a node's network
    seldom meet at one.
    """
    digest = hashlib.sha256(launch.encode()).digest()
    return _FIRST_PORT + int.from_bytes(digest[:4], "big") % _PORTS


def chip_variables(
    chip: Chip, placements: Sequence[LaunchPlacement]
) -> tuple[dict[str, str], tuple[dict[str, str], ...]]:
    """Variables that the chip requires: those shared by all replicas, and those that differ per replica."""
    plugin = chip_plugin(chip)
    each = [dict(plugin.environment(chip, cards=placement.cards)) for placement in placements]
    shared = dict(set.intersection(*(set(variables.items()) for variables in each)))
    ordered = {name: value for name, value in each[0].items() if name in shared}
    if scripts := plugin.profile().setup_scripts:
        ordered["NINEFOLD_SET_ENV"] = ":".join(scripts)
    differing = tuple(
        {name: value for name, value in variables.items() if name not in shared}
        for variables in each
    )
    return ordered, differing
