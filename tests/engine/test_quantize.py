"""Quantization by the real engine: made, measured, and served by the other engine."""

from __future__ import annotations

import ast
import http.client
import json
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from controlplane.adapters.engines.llm_compressor import QUANTIZABLE, LlmCompressorEngine
from controlplane.domain.quantization.schemes import SCHEMES, compare_metrics
from controlplane.domain.registry.versions import GateDecision, parse_model_config
from controlplane.ports.adapter_registry import all_chips
from controlplane.ports.engines import EngineTask, RenderRequest
from controlplane.ports.launches import LaunchPlacement
from ninefold_runtime.exit_codes import ExitCode
from tests.engine.conftest import (
    LIMIT_SECONDS,
    SMALL,
    Run,
    Start,
    complete_spec,
    runtime_environment,
)

KNOWN_BY_HEART = 4
#: Rows that the model knows, for calibrating and for measuring: few, since a quantized model is slow here.
QUICK: dict[str, Any] = {
    "calibration_rows": KNOWN_BY_HEART,
    "max_length": 128,
    "split": "train",
    "metrics": ["perplexity", "exact_match", "label_accuracy"],
    "max_new_tokens": 64,
}
#: Bits of a layer's weight, of 32, and what scales and zero points may add.
SHARES = {"w8a8": 8 / 32, "w4a16": 4 / 32, "fp8": 8 / 32}
OVERHEAD = 0.02


def quantize_spec(scheme: str, **changes: Any) -> dict[str, Any]:
    """As the control plane hands it to the runtime."""
    request = RenderRequest(
        task=EngineTask.QUANTIZE,
        name="attempt-1",
        spec={"scheme": scheme, **QUICK, **changes},
        chip=all_chips()["cpu"],
        placements=(LaunchPlacement(node="local", cards=(0,)),),
        inputs=(),
    )
    return dict(json.loads(LlmCompressorEngine().render(request).files["spec.json"]))


@pytest.fixture
def learned(start: Start, inputs: Path, tmp_path: Path) -> Path:
    """Inputs with a model that knows the few rows of its dataset by heart."""
    train = inputs / "dataset" / "train.jsonl"
    rows = train.read_text(encoding="utf-8").splitlines()[:KNOWN_BY_HEART]
    train.write_text("\n".join(rows) + "\n", encoding="utf-8")
    values = dict(SMALL) | {"max_steps": 80, "batch_size": 4, "checkpoint_every_steps": 1000}
    run = start(EngineTask.FINETUNE, complete_spec(EngineTask.FINETUNE, **values), inputs=inputs)
    assert run.finish() == ExitCode.FINISHED, run.text()
    model = tmp_path / "learned"
    shutil.copytree(run.work / "result", model)
    return _with_model(inputs, model)


def _with_model(inputs: Path, model: Path) -> Path:
    (inputs / "model").unlink()
    (inputs / "model").symlink_to(model)
    return inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantized:
    folder: Path
    metrics: dict[str, float]
    answers: list[dict[str, Any]]

    @classmethod
    def of(cls, run: Run) -> Quantized:
        folder = run.work / "result"
        report = json.loads((folder / "quantization/report.json").read_text(encoding="utf-8"))
        lines = (folder / "quantization/answers.jsonl").read_text(encoding="utf-8").splitlines()
        return cls(
            folder=folder,
            metrics=report["metrics"],
            answers=[json.loads(line) for line in lines],
        )


def test_every_scheme_shrinks_a_trained_model_which_answers_as_before_and_serves(
    start: Start, learned: Path, tmp_path: Path
) -> None:
    plain = learned.joinpath("model").resolve()
    for scheme in SCHEMES.values():
        _with_model(learned, plain)
        spec = quantize_spec(scheme.name)
        run = start(EngineTask.QUANTIZE, spec, inputs=learned, work=tmp_path / scheme.short)
        assert run.finish() == ExitCode.FINISHED, run.text()
        quantized = Quantized.of(run)

        config = parse_model_config(
            json.loads((quantized.folder / "config.json").read_text(encoding="utf-8"))
        )
        assert (config.scheme, config.format) == (scheme.short, "compressed-tensors")
        assert quantized.metrics["exact_match_before"] == 1.0
        verdict = compare_metrics(
            quantized.metrics,
            metric_names=QUICK["metrics"],
            tolerance={"perplexity_increase": 0.05, "accuracy_drop": 0.0},
        )
        assert verdict.acceptance is GateDecision.ACCEPTED, verdict.reason
        assert [answer["after"] for answer in quantized.answers] == [
            answer["reference"] for answer in quantized.answers
        ]
        share = quantized.metrics["layers_size_after"] / quantized.metrics["layers_size_before"]
        assert SHARES[scheme.short] < share < SHARES[scheme.short] + OVERHEAD
        # The embeddings keep their precision, and of so small a model they are a third.
        assert quantized.metrics["size_after"] < 0.5 * quantized.metrics["size_before"]
        weights = sum(path.stat().st_size for path in quantized.folder.glob("*.safetensors"))
        assert weights == pytest.approx(quantized.metrics["size_after"], rel=0.02)

        answer = quantized.answers[0]
        _with_model(learned, quantized.folder)
        assert _served(start, learned, question=answer["prompt"]) == answer["reference"]


def _served(start: Start, inputs: Path, *, question: str) -> str:
    """What the transformers engine answers over HTTP with that model."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    run = start(
        EngineTask.SERVE,
        complete_spec(EngineTask.SERVE, model_name="small"),
        inputs=inputs,
        arguments=("--port", str(port)),
        environment={"NINEFOLD_ENGINE_KEY": "k"},
    )
    run.wait_for("listening on")
    deadline = time.monotonic() + LIMIT_SECONDS
    body = {
        "model": "small",
        "messages": [{"role": "user", "content": question}],
        "max_tokens": 64,
        "temperature": 0,
    }
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(
                "POST", "/v1/chat/completions", json.dumps(body), {"Authorization": "Bearer k"}
            )
            response = connection.getresponse()
            content = response.read()
        except ConnectionRefusedError:
            content = b""
        else:
            if response.status == 200:
                break
        finally:
            connection.close()
        assert time.monotonic() < deadline, (content, run.text())
        time.sleep(0.1)
    run.close()
    return str(json.loads(content)["choices"][0]["message"]["content"])


def test_the_same_seed_makes_the_same_weights(start: Start, inputs: Path, tmp_path: Path) -> None:
    spec = quantize_spec("w8a8-smoothquant", metrics=["perplexity"], limit=2)
    weights = []
    for name in ("first", "second"):
        run = start(EngineTask.QUANTIZE, spec, inputs=inputs, work=tmp_path / name)
        assert run.finish() == ExitCode.FINISHED, run.text()
        weights.append((run.work / "result" / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]


def test_what_cannot_be_quantized_ends_with_one_line_that_says_why(
    start: Start, inputs: Path, tmp_path: Path
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        (
            {"group_size": 96},
            "group_size 96 does not divide the layers' widths 128, 256; these do: 128, 64",
        ),
        ({"calibration_split": "holiday"}, "the dataset has no split 'holiday'"),
        ({"ignore": ["re:.*"]}, "ignore leaves no linear layer to quantize: re:.*"),
    ]
    for number, (changes, message) in enumerate(cases):
        spec = quantize_spec("w4a16-awq", metrics=["perplexity"], limit=1, **changes)
        run = start(EngineTask.QUANTIZE, spec, inputs=inputs, work=tmp_path / str(number))
        assert run.finish() == ExitCode.BAD_INPUT, run.text()
        assert message in run.text()
        assert not (run.work / "result").exists()


def test_a_model_that_is_quantized_already_is_refused(
    start: Start, inputs: Path, tmp_path: Path
) -> None:
    model = tmp_path / "quantized"
    shutil.copytree(inputs / "model", model)
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {"quant_method": "compressed-tensors"}
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    spec = quantize_spec("fp8-dynamic")
    run = start(EngineTask.QUANTIZE, spec, inputs=_with_model(inputs, model))
    assert run.finish() == ExitCode.BAD_INPUT
    assert "the model is quantized already (compressed-tensors)" in run.text()


def test_both_algorithms_know_the_layers_of_every_architecture_that_is_offered(
    engine_python: Path,
) -> None:
    source = """
from llmcompressor.modifiers.transform.awq.mappings import AWQ_MAPPING_REGISTRY as awq
from llmcompressor.modifiers.transform.smoothquant.utils import MAPPINGS_REGISTRY as smooth
print(sorted(set(awq) & set(smooth)))
"""
    found = subprocess.run(
        [str(engine_python), "-c", source],
        check=True,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert set(ast.literal_eval(found.stdout.splitlines()[-1])) >= QUANTIZABLE


def test_the_pinned_memory_of_awq_is_left_alone_where_there_is_an_accelerator(
    engine_python: Path, tmp_path: Path
) -> None:
    source = """
from unittest import mock
from ninefold_runtime import model_loading, quantize
cache, own = quantize.IntermediatesCache, quantize.IntermediatesCache.pin_memory
with quantize._disable_awq_pinned_memory():
    without = cache.pin_memory is own
card = mock.patch.object(model_loading, "current_device", return_value=mock.Mock(type="cuda"))
with card, quantize._disable_awq_pinned_memory():
    beside = cache.pin_memory is own
print(without, beside, cache.pin_memory is own)
"""
    found = subprocess.run(
        [str(engine_python), "-c", source],
        check=True,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        env=runtime_environment(tmp_path, tmp_path),
    )
    assert found.stdout.splitlines()[-1] == "False True True"
