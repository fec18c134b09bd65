"""The transformers engine: what it refuses, what it fills in, what it renders."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from controlplane.adapters.chips.cpu import CPU
from controlplane.adapters.engines.transformers import TransformersEngine, engine
from controlplane.domain.common.spec_fields import FieldKind, SpecField
from controlplane.ports.adapter_registry import all_chips
from controlplane.ports.engines import Engine, EngineTask, ModelFacts, RenderRequest
from controlplane.ports.launches import InputArtifact, LaunchPlacement

ENGINE = TransformersEngine()
MODEL = ModelFacts(
    name="small", architecture="Qwen2ForCausalLM", context_length=512, parameters=700_000
)
SCRIPT = {"argv": ["python", "main.py"]}


def _messages(
    task: EngineTask, spec: dict[str, Any], model: ModelFacts | None = MODEL
) -> dict[str, str]:
    findings = ENGINE.check(task, spec, chip=CPU, model=model)
    return {finding.field: finding.message for finding in findings}


def _rendered(task: EngineTask, spec: dict[str, Any], **changes: Any) -> Any:
    values: dict[str, Any] = {
        "task": task,
        "name": "attempt-1",
        "spec": spec,
        "chip": CPU,
        "placements": (LaunchPlacement(node="local", cards=(0, 1)),),
        "inputs": (InputArtifact(name="model", files={}),),
        "report_url": "http://127.0.0.1:1/attempts/1",
        "token": "s3cret",
        "labels": {"team": "t"},
    }
    return ENGINE.render(RenderRequest(**(values | changes)))


def test_it_is_an_engine() -> None:
    engine: Engine = ENGINE
    assert isinstance(engine, Engine)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("learning_rate", -1, "learning_rate must be > 0, ≤ 1, got -1"),
        ("learning_rate", 0, "learning_rate must be > 0, ≤ 1, got 0"),
        ("learning_rate", float("nan"), "learning_rate must be > 0, ≤ 1, got nan"),
        ("learning_rate", "x", "learning_rate must be a number > 0, ≤ 1, got 'x'"),
        ("method", "magic", "method must be one of full, lora, qlora, got 'magic'"),
        ("batch_size", 1.5, "batch_size must be a whole number ≥ 1, ≤ 4096, got 1.5"),
        ("batch_size", True, "batch_size must be a whole number ≥ 1, ≤ 4096, got True"),
        ("epochs", 0, "epochs must be > 0, ≤ 1000, got 0"),
        ("max_length", 1024, "max_length must be ≤ 512, the context length of small, got 1024"),
        ("lora", 5, "lora must be an object, got 5"),
        ("train_split", "", "train_split must be a non-empty string, got ''"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(
    field: str, value: Any, message: str
) -> None:
    assert _messages(EngineTask.FINETUNE, {field: value}) == {field: message}


def test_fields_inside_a_group_are_checked_by_their_path() -> None:
    found = _messages(EngineTask.FINETUNE, {"lora": {"rank": 0, "target_modules": [], "depth": 3}})
    assert found["lora.rank"] == "lora.rank must be ≥ 1, ≤ 1024, got 0"
    assert "non-empty list" in found["lora.target_modules"]
    assert found["lora.depth"].startswith("unknown field lora.depth; known are alpha, dropout")


def test_an_unknown_field_is_named_with_those_that_are_known() -> None:
    found = _messages(EngineTask.FINETUNE, {"learning_rat": 0.1})
    assert found["learning_rat"].startswith("unknown field learning_rat; known are batch_size")


def test_several_mistakes_are_reported_together() -> None:
    assert set(_messages(EngineTask.FINETUNE, {"epochs": -1, "seed": -1, "x": 1})) == {
        "epochs",
        "seed",
        "x",
    }


@pytest.mark.parametrize(
    ("architecture", "task", "message"),
    [
        ("BertForMaskedLM", EngineTask.FINETUNE, "which this engine cannot train; it trains"),
        ("MixtralForCausalLM", EngineTask.FINETUNE, "which this engine cannot train"),
        ("BertForMaskedLM", EngineTask.SERVE, "runs causal language models"),
        ("", EngineTask.EVALUATE, "model of unknown architecture"),
    ],
)
def test_a_model_that_the_engine_cannot_handle_is_refused(
    architecture: str, task: EngineTask, message: str
) -> None:
    model = ModelFacts(name="m", architecture=architecture, context_length=512, parameters=1)
    assert message in _messages(task, {}, model)["model"]


def test_a_model_that_cannot_be_trained_may_still_be_served() -> None:
    model = ModelFacts(
        name="m", architecture="MixtralForCausalLM", context_length=512, parameters=1
    )
    assert _messages(EngineTask.SERVE, {}, model) == {}


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({}, "argv", "argv is required"),
        ({"argv": []}, "argv", "non-empty list of strings, got []"),
        ({"argv": "python main.py"}, "argv", "non-empty list of strings"),
        ({"argv": ["python", ""]}, "argv", "argv[1] must be a non-empty string"),
        ({"argv": ["python", 5]}, "argv", "argv[1] must be a non-empty string, got 5"),
        (
            SCRIPT | {"maximum_run_time_seconds": 0},
            "maximum_run_time_seconds",
            "≥ 1, ≤ 2592000",
        ),
        (SCRIPT | {"environment": {"1x": "y"}}, "environment", "letters, digits"),
        (
            SCRIPT | {"environment": {"LD_PRELOAD": "y"}},
            "environment",
            "must not set LD_PRELOAD; it is reserved",
        ),
        (SCRIPT | {"environment": {"NINEFOLD_WORK": "y"}}, "environment", "reserved"),
        (SCRIPT | {"environment": {"PYTHONPATH": "y"}}, "environment", "reserved"),
        (SCRIPT | {"environment": {"PATH": "y"}}, "environment", "reserved"),
        (SCRIPT | {"environment": {"A": 5}}, "environment", "environment.A must be a string"),
    ],
)
def test_a_script_is_checked(spec: dict[str, Any], field: str, message: str) -> None:
    assert message in _messages(EngineTask.SCRIPT, spec, None)[field]


def test_metrics_must_be_known_and_said_once() -> None:
    assert (
        "must be one of exact_match"
        in _messages(EngineTask.EVALUATE, {"metrics": ["bleu"]})["metrics"]
    )
    twice = {"metrics": ["perplexity", "perplexity"]}
    assert "has a duplicate value" in _messages(EngineTask.EVALUATE, twice)["metrics"]


@pytest.mark.parametrize("task", sorted(ENGINE.tasks))
def test_every_default_passes_its_own_check(task: EngineTask) -> None:
    given = SCRIPT if task is EngineTask.SCRIPT else {}
    complete = dict(ENGINE.normalise(task, given))
    assert _messages(task, complete) == {}
    assert ENGINE.normalise(task, complete) == complete


def test_lora_has_a_learning_rate_of_its_own_unless_one_is_given() -> None:
    assert ENGINE.normalise(EngineTask.FINETUNE, {"method": "lora"})["learning_rate"] == 2e-4
    given = {"method": "lora", "learning_rate": 0.5}
    assert ENGINE.normalise(EngineTask.FINETUNE, given)["learning_rate"] == 0.5


def test_a_tiny_model_gets_a_recipe_that_passes_the_check() -> None:
    recipe = dict(ENGINE.recommended_values(EngineTask.FINETUNE, model=MODEL))
    assert recipe["learning_rate"] == 2e-3
    assert _messages(EngineTask.FINETUNE, recipe) == {}
    large = ModelFacts(
        name="l", architecture="Qwen2ForCausalLM", context_length=512, parameters=7_000_000_000
    )
    assert ENGINE.recommended_values(EngineTask.FINETUNE, model=large) == {}


def test_a_fine_tune_becomes_one_trainer_with_its_spec_and_its_secret() -> None:
    launch = _rendered(EngineTask.FINETUNE, {"epochs": 1}, continues="attempt-0")
    (role,) = launch.roles
    assert role.name == "trainer"
    assert role.argv == (
        "{python}",
        "-m",
        "ninefold_runtime",
        "finetune",
        "--spec",
        "{work}/spec.json",
    )
    assert json.loads(launch.files["spec.json"])["epochs"] == 1.0
    assert launch.secrets == {"NINEFOLD_ATTEMPT_TOKEN": "s3cret"}
    assert "s3cret" not in json.dumps([dict(role.environment), dict(launch.files)])
    assert role.environment["HF_HUB_OFFLINE"] == "1"
    assert role.environment["OMP_NUM_THREADS"] == "2"
    assert role.environment["NINEFOLD_REPORT_URL"] == "http://127.0.0.1:1/attempts/1"
    assert launch.continues == "attempt-0"
    assert launch.engine == ENGINE.environment()


def test_a_server_gets_a_port_a_probe_and_its_key() -> None:
    launch = _rendered(EngineTask.SERVE, {"model_name": "parser"}, report_url="")
    (role,) = launch.roles
    assert role.ports == ("http",)
    assert role.argv[-2:] == ("--port", "{port:http}")
    assert role.probe is not None
    assert (role.probe.port, role.probe.path) == ("http", "/health")
    assert launch.secrets == {"NINEFOLD_ENGINE_KEY": "s3cret"}
    assert "NINEFOLD_REPORT_URL" not in role.environment


def test_a_script_may_run_as_long_as_it_says() -> None:
    launch = _rendered(EngineTask.SCRIPT, SCRIPT | {"maximum_run_time_seconds": 90})
    assert launch.run_within == timedelta(seconds=90)
    assert launch.roles[0].name == "script"
    assert _rendered(EngineTask.EVALUATE, {}).run_within is None


def test_more_than_one_replica_is_refused() -> None:
    with pytest.raises(ValueError, match="one replica only, got 2"):
        _rendered(
            EngineTask.FINETUNE,
            {},
            placements=(LaunchPlacement(node="a"), LaunchPlacement(node="b")),
        )


def test_the_environment_is_named_by_its_lock_and_leaves_torch_out_of_it() -> None:
    environment = ENGINE.environment()
    assert re.fullmatch(r"transformers-[0-9a-f]{8}", environment.name)
    assert environment.preinstall == ("torch==2.13.0",)
    pinned = re.findall(r"^([a-z0-9-]+)==", environment.lock, re.MULTILINE)
    assert "transformers" in pinned
    assert "torch" not in pinned
    assert "--hash=sha256:" in environment.lock
    assert "://" not in environment.lock


def _all_fields(fields: tuple[SpecField, ...]) -> list[SpecField]:
    return [each for field in fields for each in (field, *_all_fields(field.fields))]


@pytest.mark.parametrize("task", sorted(ENGINE.tasks))
def test_every_field_can_be_shown_in_a_form(task: EngineTask) -> None:
    for field in _all_fields(engine.FIELDS[task]):
        assert field.label
        assert field.help.endswith((".", "engine's."))
        assert bool(field.choices) == (field.kind in (FieldKind.CHOICE, FieldKind.CHOICES))
        if field.kind in (FieldKind.INTEGER, FieldKind.NUMBER):
            assert field.least is not None
            assert field.most is not None


def _lacking(chip: str, task: EngineTask = EngineTask.FINETUNE) -> str:
    return ENGINE.unsupported_reason(task, all_chips()[chip])


def test_it_runs_where_the_torch_of_its_environment_has_a_device() -> None:
    found = {chip.vendor for chip in all_chips().values() if not _lacking(chip.name)}
    assert found == {"cpu", "nvidia"}


@pytest.mark.parametrize(
    ("chip", "needed"),
    [
        ("ascend-910b3", "Ascend 910B3 requires torch_npu"),
        ("cambricon-mlu590", "Cambricon MLU590 requires torch_mlu"),
        ("amd-mi300x", "AMD Instinct MI300X requires torch for ROCm"),
        ("intel-max-1550", "Intel Data Center GPU Max 1550 requires torch for XPU"),
    ],
)
def test_elsewhere_it_says_what_its_environment_would_have_to_bring(chip: str, needed: str) -> None:
    assert _lacking(chip) == (
        f"the software environment of the engine has PyTorch for CPU and CUDA only; {needed}"
    )


def test_where_nobody_says_which_torch_drives_a_chip_it_does_not_guess() -> None:
    """CUDA by the name of its device alone is not NVIDIA's CUDA."""
    assert all_chips()["kunlunxin-p800"].torch_device == "cuda"
    assert _lacking("kunlunxin-p800") == "the PyTorch build for Kunlunxin P800 is not known"


def test_a_script_brings_what_it_needs_and_runs_anywhere() -> None:
    assert {_lacking(chip, EngineTask.SCRIPT) for chip in all_chips()} == {""}


@pytest.mark.parametrize(("chip", "device"), [("cpu", "cpu"), ("nvidia-h800", "cuda")])
def test_a_process_is_told_which_device_was_given(chip: str, device: str) -> None:
    launch = _rendered(EngineTask.FINETUNE, {}, chip=all_chips()[chip])
    assert launch.roles[0].environment["NINEFOLD_DEVICE"] == device
    assert "NINEFOLD_DEVICE" not in _rendered(EngineTask.SCRIPT, SCRIPT).roles[0].environment
