"""What each serving engine makes of one spec on each chip, as somebody last looked at it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from controlplane.domain.common.spec_fields import value_at_path
from controlplane.ports.launches import DifferencePart, launch_differences
from tests.golden.launches import compare
from tests.unit.engines.serving_requests import (
    CHIPS,
    COMPRESSED,
    ENGINES,
    MODELSLIM,
    SPECS,
    findings,
    quantized,
    rendered,
)


def cases() -> Iterator[Any]:
    for name in ENGINES:
        for chip in CHIPS:
            for case, spec in SPECS.items():
                if not findings(name, spec, chip=chip):
                    yield pytest.param(name, chip, case, id=f"{name}-{chip}-{case}")


@pytest.mark.parametrize(("name", "chip", "case"), list(cases()))
def test_a_replica_is_rendered_as_before(name: str, chip: str, case: str) -> None:
    compare(rendered(name, SPECS[case], chip=chip), engine=name, case=f"{chip}-{case}")


def test_what_can_be_asked_of_which_engine_is_as_before() -> None:
    """Otherwise a refusal too many would only take golden files away."""
    found = {
        (name, chip): [case for case, spec in SPECS.items() if not findings(name, spec, chip=chip)]
        for name in ENGINES
        for chip in CHIPS
    }
    all_of = list(SPECS)
    without_fp8 = [case for case in SPECS if case != "small-cache"]
    for_xllm = ["default", "switched-off", "switched-on", "copied"]
    assert {key: value for key, value in found.items() if value} == {
        ("mindie", "ascend-910b3"): ["default", "bounded"],
        ("mindie", "ascend-910c"): ["default", "bounded"],
        ("mindie", "ascend-310p"): ["default", "bounded"],
        ("sglang", "nvidia-h800"): all_of,
        ("sglang", "ascend-910b3"): without_fp8,
        ("sglang", "ascend-910c"): without_fp8,
        ("vllm", "nvidia-h800"): all_of,
        ("vllm_ascend", "ascend-910b3"): without_fp8,
        ("vllm_ascend", "ascend-910c"): without_fp8,
        ("vllm_ascend", "ascend-310p"): without_fp8,
        ("xllm", "nvidia-h800"): for_xllm,
        ("xllm", "ascend-910b3"): for_xllm,
        ("xllm", "ascend-910c"): for_xllm,
    }


@pytest.mark.parametrize(
    ("name", "chip", "model"),
    [
        ("vllm", "nvidia-h800", COMPRESSED),
        ("vllm_ascend", "ascend-910b3", COMPRESSED),
        ("vllm_ascend", "ascend-910b3", MODELSLIM),
        ("sglang", "nvidia-h800", COMPRESSED),
        ("sglang", "ascend-910c", MODELSLIM),
        ("mindie", "ascend-910b3", MODELSLIM),
    ],
    ids=lambda value: getattr(value, "format", value),
)
def test_quantized_weights_are_rendered_as_before(name: str, chip: str, model: Any) -> None:
    assert findings(name, SPECS["default"], chip=chip, model=model) == {}
    launch = rendered(name, SPECS["default"], chip=chip, model=model)
    compare(launch, engine=name, case=f"{chip}-{model.format}")


@pytest.mark.parametrize(
    ("name", "chip"),
    [("vllm", "nvidia-h800"), ("vllm_ascend", "ascend-910b3"), ("sglang", "nvidia-h800")],
)
def test_a_replica_of_two_nodes_is_rendered_as_before(name: str, chip: str) -> None:
    spec = {"model_name": "assistant", "parallel": {"tensor": 4, "pipeline": 2}}
    compare(rendered(name, spec, chip=chip, nodes=2), engine=name, case=f"{chip}-2-nodes")


def test_a_quantization_on_ascend_is_rendered_as_before() -> None:
    compare(quantized({}, chip="ascend-910b3"), engine="msmodelslim", case="ascend-910b3-default")
    spec = {"ignore": ["lm_head", "down_proj"], "smoothing_strength": 0.5, "calibration_rows": 32}
    compare(quantized(spec, chip="ascend-910c"), engine="msmodelslim", case="ascend-910c-chosen")


def test_one_spec_on_a_gpu_and_an_npu_differs_in_what_the_chip_gives_only() -> None:
    """Those who serve are two engines of one parser, so what a person asked for reads the same."""
    spec = SPECS["bounded"]
    gpu = rendered("vllm", spec, chip="nvidia-h800")
    npu = rendered("vllm_ascend", spec, chip="ascend-910b3")
    assert gpu.image != npu.image
    found = {each.part for each in launch_differences(gpu, npu)}
    assert DifferencePart.IMAGE in found
    asked = [str(value_at_path(spec, name)) for name in ("context_length", "concurrency")]
    for launch in (gpu, npu):
        text = " ".join(launch.roles[0].argv) + " ".join(launch.files.values())
        assert all(value in text for value in asked)
