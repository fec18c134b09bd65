"""The engine on the page about engines is one: it keeps the port, refuses, and renders."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from controlplane.ports.adapter_registry import all_chips, engine_by_name, engine_names
from controlplane.ports.engines import Engine, EngineTask, RenderRequest
from controlplane.ports.launches import LaunchPlacement
from tests.unit.engines.training_requests import DATASET, MODEL_TREE, QWEN3_8B

README = Path(__file__).resolve().parents[3] / "README.md"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "adding-an-engine.md"


@pytest.fixture(scope="module")
def ferret() -> Engine:
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "ninefold_ferret"}
    exec(compile(code, str(PAGE), "exec"), names)
    engine: Engine = names["FerretEngine"]()
    return engine


def test_it_keeps_the_port(ferret: Engine) -> None:
    assert isinstance(ferret, Engine)
    assert ferret.unsupported_reason(EngineTask.FINETUNE, all_chips()["nvidia-h800"]) == ""
    assert "no image of Ferret" in ferret.unsupported_reason(
        EngineTask.FINETUNE, all_chips()["ascend-310p"]
    )


def test_it_says_what_it_cannot_do(ferret: Engine) -> None:
    spec = {"method": "lora", "engine_version": "1.0"}
    found = ferret.check(EngineTask.FINETUNE, spec, chip=all_chips()["nvidia-h800"], model=QWEN3_8B)
    assert {each.field: each.message for each in found} == {
        "method": "method must not be 'lora' here: Ferret trains whole models",
        "engine_version": "engine_version must be a version of Ferret >=2.1,<3, for example 2.4.0, "
        "got '1.0'",
    }


def test_it_renders_for_two_vendors(ferret: Engine) -> None:
    for chip, image in (("nvidia-h800", "2.4.0-cuda"), ("ascend-910b3", "2.4.0-cann")):
        launch = ferret.render(
            RenderRequest(
                task=EngineTask.FINETUNE,
                name="attempt-1",
                spec={"learning_rate": 1e-4},
                chip=all_chips()[chip],
                placements=(LaunchPlacement(node="a", cards=(0, 1)),),
                inputs=(MODEL_TREE, DATASET),
                model=QWEN3_8B,
            )
        )
        assert launch.image == f"ferret/train:{image}"
        assert json.loads(launch.files["ferret.json"])["lr"] == 1e-4
        assert launch.roles[0].environment["NPROC_PER_NODE"] == "2"


def test_the_readme_counts_the_chips_that_some_engine_runs_on() -> None:
    accelerators = [
        chip for chip in all_chips().values() if not chip.slice_of and chip.name != "cpu"
    ]
    engines = [engine_by_name(name) for name in engine_names()]
    counts = {
        task: sum(
            any(task in each.tasks and not each.unsupported_reason(task, chip) for each in engines)
            for chip in accelerators
        )
        for task in EngineTask
    }
    assert counts[EngineTask.EVALUATE] == counts[EngineTask.QUANTIZE]
    vendors = len({chip.vendor for chip in accelerators})
    readme = " ".join(README.read_text(encoding="utf-8").split())
    assert (
        f"Of {len(accelerators)} accelerators of {vendors} vendors, launches are rendered and checked for "
        f"fine-tuning on {counts[EngineTask.FINETUNE]}, "
        f"evaluation and quantization on {counts[EngineTask.EVALUATE]} and "
        f"serving on {counts[EngineTask.SERVE]}, by 13 engines"
    ) in readme
    assert len(engines) == 13
