"""Several commands in one role: rows into shape, train, merge, keep what makes the model.

An engine that lives in an image knows nothing of this product, so what must happen before and after its own
command runs in the same process tree, by ``programs/run_steps.py``. No text of a user meets a shell.
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
class Run:
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
class Collect:
    """The files of a model, from a folder below ``{work}`` into ``outputs``; on the first replica."""

    source: str
    newest: str = ""


def rendered(
    steps: Sequence[Run | Collect], *, replicas: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """The files that run the steps; ``replicas`` are variables that differ, one entry per replica."""
    plan = {"replicas": [dict(each) for each in replicas], "steps": [_step(each) for each in steps]}
    return {
        "steps.json": json.dumps(plan, ensure_ascii=False, indent=2) + "\n",
        "run_steps.py": program("run_steps"),
    }


@cache
def program(name: str) -> str:
    """The text of a program that a Launch brings along."""
    folder = files("controlplane.adapters.engines.programs")
    return folder.joinpath(f"{name}.py").read_text(encoding="utf-8")


@cache
def scoring() -> str:
    """How the product compares answers, as a module without dependencies."""
    return files("ninefold_runtime").joinpath("scoring.py").read_text(encoding="utf-8")


def shaped(shape: str, *, split: str) -> Run:
    """Rows of a split rewritten to ``rows/<split>.jsonl``; see ``programs/shape_rows.py``."""
    source, target = f"{{inputs}}/dataset/{split}.jsonl", f"rows/{split}.jsonl"
    return Run(argv=("{python}", "shape_rows.py", shape, source, target))


def _step(step: Run | Collect) -> dict[str, Any]:
    if isinstance(step, Collect):
        rendered: dict[str, Any] = {"collect": step.source, "into": OUTPUTS, "leader_only": True}
    else:
        rendered = {"run": list(step.argv)}
        if step.resumed:
            rendered["resumed"] = list(step.resumed)
        if step.leader_only:
            rendered["leader_only"] = True
        if step.folder:
            rendered["folder"] = step.folder
    if step.newest:
        rendered["newest"] = step.newest
    return rendered
