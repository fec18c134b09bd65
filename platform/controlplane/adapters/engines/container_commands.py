"""Commands of engines in images: ``torchrun`` on several nodes, and several commands in one role.

An engine that lives in an image knows nothing of this product, so what must happen before and after its own
command runs in the same process tree, by ``programs/run_steps.py``. No text of a user is passed to a shell.

::

    NNODES  NODE_RANK  NPROC_PER_NODE  MASTER_ADDR  MASTER_PORT

``torchrun`` and every engine's own launcher read them; nothing else tells replicas of each other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from controlplane.domain.common.accelerators import Chip
from controlplane.domain.jobs.parallelism import ParallelPlan, check_plan, parse_parallel_plan
from controlplane.ports.adapter_registry import plugin_of_chip
from controlplane.ports.engines import RenderRefused
from controlplane.ports.launches import LaunchPlacement

#: The arguments of ``torchrun``; ``programs/run_steps.py`` replaces a name by its value in each replica.
TORCHRUN_ARGUMENTS = (
    *("--nnodes", "$NNODES", "--node_rank", "$NODE_RANK"),
    *("--nproc_per_node", "$NPROC_PER_NODE"),
    *("--master_addr", "$MASTER_ADDR", "--master_port", "$MASTER_PORT"),
)
#: Below the ports that Linux gives to clients and those that Kubernetes gives to services.
_FIRST_PORT, _PORTS = 20_000, 10_000


class InvalidParallelPlan(RenderRefused):
    """The parallel plan does not fit the cards."""


def parallel_plan(values: Mapping[str, Any], *, cards: int) -> ParallelPlan:
    """The plan of a spec's group ``parallel`` on so many cards.

    :raises InvalidParallelPlan: if it does not multiply out to them.
    """
    plan = parse_parallel_plan(values, cards=cards)
    if findings := check_plan(plan, cards=cards):
        raise InvalidParallelPlan("; ".join(finding.message for finding in findings))
    return plan


def processes_per_replica(placements: Sequence[LaunchPlacement]) -> int:
    """Processes of one replica, one for each of its cards.

    :raises InvalidParallelPlan: unless every replica has as many cards.
    """
    counts = {max(1, len(placement.cards)) for placement in placements}
    if len(counts) != 1:
        found = ", ".join(f"{each.node}: {len(each.cards)}" for each in placements)
        raise InvalidParallelPlan(
            "engine.cards.unequal_nodes",
            "every node of a job must provide the same number of cards; got {cards}",
            cards=found,
        )
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
    plugin = plugin_of_chip(chip)
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


#: What starts the sequence.
RUN_STEPS_COMMAND = ("{python}", "{work}/run_steps.py")
#: As a step: the arguments after ``RUN_STEPS_COMMAND``.
ALL_ARGUMENTS = ("$@",)
#: Where the finished model lies, relative to ``{work}``.
OUTPUTS = "outputs"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandStep:
    """A command."""

    argv: tuple[str, ...]
    #: A pattern below ``{work}``; the folder of its newest match is ``{newest}`` in arguments.
    newest: str = ""
    #: Runs instead of ``argv`` if there is a match; without it a match is required.
    resumed: tuple[str, ...] = ()
    #: Not on other replicas than the first.
    leader_only: bool = False
    #: Working directory of the command, below ``{work}``; empty: ``{work}`` itself.
    folder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectModelFilesStep:
    """The files of a model, from a folder below ``{work}`` into ``outputs``; on the first replica."""

    source: str
    newest: str = ""


def render_step_files(
    steps: Sequence[CommandStep | CollectModelFilesStep], *, replicas: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """The files that run the steps; ``replicas`` are variables that differ, one entry per replica."""
    plan = {
        "replicas": [dict(each) for each in replicas],
        "steps": [_step_document(each) for each in steps],
    }
    return {
        "steps.json": json.dumps(plan, ensure_ascii=False, indent=2) + "\n",
        "run_steps.py": read_bundled_program("run_steps"),
    }


@cache
def bundled_text(name: str) -> str:
    """A file among ``programs``."""
    folder = files("controlplane.adapters.engines.programs")
    return folder.joinpath(name).read_text(encoding="utf-8")


def read_bundled_program(name: str) -> str:
    """The text of a program that a Launch brings along."""
    return bundled_text(f"{name}.py")


@cache
def scoring_text() -> str:
    """How the product compares answers, as a module without dependencies."""
    return files("ninefold_runtime").joinpath("answer_scoring.py").read_text(encoding="utf-8")


def shape_rows_step(shape: str, *, split: str) -> CommandStep:
    """Rows of a split rewritten to ``rows/<split>.jsonl``; see ``programs/shape_rows.py``."""
    source, target = f"{{inputs}}/dataset/{split}.jsonl", f"rows/{split}.jsonl"
    return CommandStep(argv=("{python}", "shape_rows.py", shape, source, target))


def _step_document(step: CommandStep | CollectModelFilesStep) -> dict[str, Any]:
    if isinstance(step, CollectModelFilesStep):
        document: dict[str, Any] = {"collect": step.source, "into": OUTPUTS, "leader_only": True}
    else:
        document = {
            "run": list(step.argv),
            "resumed": list(step.resumed),
            "leader_only": step.leader_only,
            "folder": step.folder,
        }
    document["newest"] = step.newest
    return {name: value for name, value in document.items() if value}
