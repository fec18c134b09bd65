"""An engine whose scripts run on the cluster's plain Python, installed as a package's plug-in would be.

Control plane and controllers are processes of their own: what a test patches, they do not see.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from controlplane.adapters.engines.transformers import TransformersEngine
from controlplane.ports.engines import EngineTask, RenderRequest
from controlplane.ports.launches import Launch

ENGINE = "plain-scripts"


class PlainScripts(TransformersEngine):
    """Renders the runtime's own script task, without the engine's environment: it needs no torch."""

    name = ENGINE
    tasks = frozenset({EngineTask.SCRIPT})

    def render(self, request: RenderRequest) -> Launch:
        return replace(super().render(request), engine=None)


def install(folder: Path) -> None:
    """Declare the engine in ``folder``; every process that has it on its path finds the plug-in."""
    declared = folder / "ninefold_plain_scripts-1.dist-info"
    declared.mkdir(parents=True)
    (declared / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: ninefold-plain-scripts\nVersion: 1\n"
    )
    (declared / "entry_points.txt").write_text(
        f"[ninefold.engines]\n{ENGINE} = {__name__}:{PlainScripts.__name__}\n"
    )
