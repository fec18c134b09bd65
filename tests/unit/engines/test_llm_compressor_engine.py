"""The llm_compressor engine: what it refuses, what it renders, and that the runtime understands it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from controlplane.adapters.chips.cpu import CPU
from controlplane.adapters.engines.llm_compressor import LlmCompressorEngine
from controlplane.adapters.engines.transformers import TransformersEngine
from controlplane.domain.quantization.schemes import SCHEMES
from controlplane.ports.adapter_registry import all_chips
from controlplane.ports.engines import Engine, EngineTask, ModelFacts, RenderRequest
from controlplane.ports.launches import InputArtifact, Launch, LaunchPlacement
from ninefold_runtime.specs import QuantizeSpec, parse_spec

ENGINE = LlmCompressorEngine()
MODEL = ModelFacts(
    name="small v1",
    architecture="Qwen2ForCausalLM",
    context_length=512,
    parameters=700_000,
    config={"hidden_size": 128, "num_attention_heads": 4, "intermediate_size": 256},
)
QUANTIZED = replace(MODEL, name="small v2", scheme="w8a8", format="compressed-tensors")
#: Fits the model's context; the default is longer.
FITS = {"max_length": 512}


def _messages(spec: dict[str, Any], model: ModelFacts | None = MODEL) -> dict[str, str]:
    findings = ENGINE.check(EngineTask.QUANTIZE, FITS | spec, chip=CPU, model=model)
    return {finding.field: finding.message for finding in findings}


def _rendered(spec: dict[str, Any], **changes: Any) -> Launch:
    values: dict[str, Any] = {
        "task": EngineTask.QUANTIZE,
        "name": "attempt-1",
        "spec": spec,
        "chip": CPU,
        "placements": (LaunchPlacement(node="local", cards=(0, 1)),),
        "inputs": (InputArtifact(name="model", files={}),),
        "report_url": "http://127.0.0.1:1/attempts/1",
        "token": "s3cret",
        "model": MODEL,
    }
    return ENGINE.render(RenderRequest(**(values | changes)))


def test_it_is_an_engine() -> None:
    engine: Engine = ENGINE
    assert isinstance(engine, Engine)


def test_a_spec_of_defaults_is_right() -> None:
    assert _messages({}) == {}
    assert ENGINE.recommended_values(
        EngineTask.QUANTIZE, model=replace(MODEL, context_length=128)
    ) == {"max_length": 128}


@pytest.mark.parametrize(
    ("spec", "model", "field", "message"),
    [
        ({"scheme": "w2a2"}, MODEL, "scheme", "scheme must be one of w8a8-smoothquant, "),
        ({"calibration_rows": 0}, MODEL, "calibration_rows", "≥ 1, ≤ 16384, got 0"),
        (
            {"max_length": 1024},
            MODEL,
            "max_length",
            "≤ 512, the context length of small v1, got 1024",
        ),
        (
            {"scheme": "w4a16-awq", "group_size": 48},
            MODEL,
            "group_size",
            "must divide the layer widths of the model (128, 256), got 48; valid values: 128, 64, 32, 16",
        ),
        ({}, QUANTIZED, "model", "small v2 is already quantized to w8a8; "),
        (
            {},
            replace(MODEL, architecture="BertForMaskedLM"),
            "model",
            "small v1 is a BertForMaskedLM; this engine quantizes causal language models",
        ),
        (
            {},
            replace(MODEL, architecture="MambaForCausalLM"),
            "scheme",
            "requires the layer mapping of the architecture, which is not known for MambaForCausalLM",
        ),
        (
            {"scheme": "w4a16-awq"},
            replace(MODEL, config={"hidden_size": 100}),
            "scheme",
            "scheme must not be 'w4a16-awq' here: none of the group sizes 128, 64, 32, 16 divides",
        ),
        ({"tolerance": {"accuracy_drop": 2}}, MODEL, "tolerance.accuracy_drop", "≤ 1, got 2"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(
    spec: dict[str, Any], model: ModelFacts, field: str, message: str
) -> None:
    assert message in _messages(spec, model)[field]


def test_fp8_asks_for_no_knowledge_of_the_layers() -> None:
    unknown = replace(MODEL, architecture="MambaForCausalLM")
    assert _messages({"scheme": "fp8-dynamic"}, unknown) == {}


def test_the_runtime_reads_what_is_rendered() -> None:
    launch = _rendered({"scheme": "w4a16-awq"})
    spec = parse_spec(json.loads(launch.files["spec.json"]), QuantizeSpec)
    assert spec.scheme == "w4a16-awq"
    assert launch.roles[0].name == "quantizer"
    assert launch.roles[0].argv[:4] == ("{python}", "-m", "ninefold_runtime", "quantize")
    assert launch.secrets == {"NINEFOLD_ATTEMPT_TOKEN": "s3cret"}


def test_both_engines_of_the_runtime_share_one_environment() -> None:
    assert ENGINE.environment() == TransformersEngine().environment()


def test_it_does_not_cross_nodes() -> None:
    two = (LaunchPlacement(node="a"), LaunchPlacement(node="b"))
    with pytest.raises(ValueError, match="one replica only, got 2"):
        _rendered({}, placements=two)


@pytest.mark.parametrize("task", [EngineTask.SERVE, EngineTask.EVALUATE])
def test_the_transformers_engine_takes_what_this_one_makes_and_nothing_of_another_format(
    task: EngineTask,
) -> None:
    engine = TransformersEngine()
    assert engine.check(task, {}, chip=CPU, model=QUANTIZED) == ()
    other = replace(QUANTIZED, format="modelslim")
    (finding,) = engine.check(task, {}, chip=CPU, model=other)
    assert (finding.field, "transformers supports compressed-tensors" in finding.message) == (
        "model",
        True,
    )


def test_a_quantized_model_is_not_trained() -> None:
    findings = TransformersEngine().check(EngineTask.FINETUNE, {}, chip=CPU, model=QUANTIZED)
    assert [finding.field for finding in findings] == ["model"]
    assert "choose the version before quantization" in findings[0].message


@pytest.mark.parametrize("scheme", SCHEMES)
def test_where_its_environment_lacks_torch_no_scheme_can_be_chosen(scheme: str) -> None:
    chip = all_chips()["ascend-910b3"]
    needed = "Ascend 910B3 requires torch_npu"
    assert ENGINE.unsupported_reason(EngineTask.QUANTIZE, chip).endswith(needed)
    findings = ENGINE.check(EngineTask.QUANTIZE, FITS | {"scheme": scheme}, chip=chip, model=MODEL)
    assert [finding.field for finding in findings] == ["scheme"]
    assert needed in findings[0].message
    assert ENGINE.unsupported_reason(EngineTask.QUANTIZE, all_chips()["nvidia-h800"]) == ""
