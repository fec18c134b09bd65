"""Several commands in one role: convert rows, train, merge, collect the model's files.

An engine that lives in an image knows nothing of this product, so what must happen before and after its own
command runs in the same process tree, by ``programs/run_steps.py``. No text of a user is passed to a shell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

#: What starts the sequence.
ARGV = ("{python}", "{work}/run_steps.py")
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
class CollectStep:
    """The files of a model, from a folder below ``{work}`` into ``outputs``; on the first replica."""

    source: str
    newest: str = ""


def render_steps(
    steps: Sequence[CommandStep | CollectStep], *, replicas: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """The files that run the steps; ``replicas`` are variables that differ, one entry per replica."""
    plan = {"replicas": [dict(each) for each in replicas], "steps": [_step(each) for each in steps]}
    return {
        "steps.json": json.dumps(plan, ensure_ascii=False, indent=2) + "\n",
        "run_steps.py": program_text("run_steps"),
    }


@cache
def program_text(name: str) -> str:
    """The text of a program that a Launch brings along."""
    folder = files("controlplane.adapters.engines.programs")
    return folder.joinpath(f"{name}.py").read_text(encoding="utf-8")


@cache
def scoring_text() -> str:
    """How the product compares answers, as a module without dependencies."""
    return files("ninefold_runtime").joinpath("scoring.py").read_text(encoding="utf-8")


def shape_step(shape: str, *, split: str) -> CommandStep:
    """Rows of a split rewritten to ``rows/<split>.jsonl``; see ``programs/shape_rows.py``."""
    source, target = f"{{inputs}}/dataset/{split}.jsonl", f"rows/{split}.jsonl"
    return CommandStep(argv=("{python}", "shape_rows.py", shape, source, target))


def _step(step: CommandStep | CollectStep) -> dict[str, Any]:
    if isinstance(step, CollectStep):
        render_steps: dict[str, Any] = {
            "collect": step.source,
            "into": OUTPUTS,
            "leader_only": True,
        }
    else:
        render_steps = {"run": list(step.argv)}
        if step.resumed:
            render_steps["resumed"] = list(step.resumed)
        if step.leader_only:
            render_steps["leader_only"] = True
        if step.folder:
            render_steps["folder"] = step.folder
    if step.newest:
        render_steps["newest"] = step.newest
    return render_steps
