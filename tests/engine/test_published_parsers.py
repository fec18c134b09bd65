"""What LLaMA-Factory and ms-swift read of what is rendered for them, by their own parsers and checks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controlplane.adapters.engines import ms_swift
from controlplane.domain.specs.training import METHODS
from controlplane.ports.launches import Launch
from tests.engine import published
from tests.unit.engines.training_requests import QWEN3_8B, rendered

# Their packages take minutes to install, and what is rendered for them is compared by unit tests too.
pytestmark = pytest.mark.full

ROW = {
    "messages": [
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "4"},
    ],
    "rejected": "5",
}
#: The tiny model's architecture, so that ms-swift finds the family that it was told of.
MODEL = replace(QWEN3_8B, architecture="Qwen2ForCausalLM")
EVERYTHING: dict[str, Any] = {
    "max_steps": 100,
    "learning_rate": 1e-5,
    "scheduler": "constant",
    "fused_operators": ["flash_attention", "adamw"],
    "lora": {"target_modules": ["q_proj", "v_proj"]},
}


def written(launch: Launch, work: Path) -> None:
    """The files of the Launch in a folder, as a cluster would write them."""
    for name, text in launch.files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        filled = text.replace("{work}", str(work)).replace("{inputs}", str(work / "inputs"))
        path.write_text(filled, encoding="utf-8")
    for folder in ("inputs/dataset", "rows"):
        (work / folder).mkdir(parents=True, exist_ok=True)
        for split in ("train", "validation"):
            (work / folder / f"{split}.jsonl").write_text(json.dumps(ROW) + "\n")


def commands(launch: Launch, program: str) -> list[list[str]]:
    steps = json.loads(launch.files["steps.json"])["steps"]
    return [step["run"] for step in steps if step.get("run", [""])[0] == program]


def folder_of(work: Path, name: str, *, model: Path) -> Path:
    """A working folder whose name has a space in it, with a tiny model among its inputs."""
    folder = work / f"a job {name}"
    (folder / "inputs").mkdir(parents=True)
    (folder / "inputs" / "model").symlink_to(model)
    return folder


@pytest.fixture(scope="module")
def model(built_models: Path) -> Path:
    return sorted(built_models.iterdir())[0]


#: The fused optimizer of each chip; weights in few bits are for the first one only.
OPTIMIZERS = {"nvidia-h800": "adamw_torch_fused", "ascend-910b3": "adamw_torch_npu_fused"}


def cases(*objectives: str) -> list[tuple[str, str, str]]:
    return [
        (chip, objective, method)
        for chip in OPTIMIZERS
        for objective in objectives
        for method in METHODS
        if method != "qlora" or chip == "nvidia-h800"
    ]


CASES_OF_LLAMAFACTORY = cases("sft", "dpo", "pretrain")
CASES_OF_SWIFT = cases("sft", "dpo", "grpo", "pretrain")


@pytest.fixture(scope="module")
def by_llamafactory(
    engine_python: Path, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str, str], Any]:
    """What LLaMA-Factory read of each case, and of the file that merges."""
    work = tmp_path_factory.mktemp("llamafactory")
    asked: list[list[str]] = []
    for chip, objective, method in CASES_OF_LLAMAFACTORY:
        spec = {"objective": objective, "method": method, **EVERYTHING}
        launch = rendered("llamafactory", spec, chip=chip)
        folder = folder_of(work, f"{chip} {objective} {method}", model=model)
        written(launch, folder)
        asked += [[str(folder), command[2]] for command in commands(launch, "llamafactory-cli")][:1]
    merges = folder_of(work, "merge", model=model)
    launch = rendered("llamafactory", {"method": "qlora", **EVERYTHING}, chip="nvidia-h800")
    written(launch, merges)
    asked.append([str(merges), commands(launch, "llamafactory-cli")[1][2]])
    packages = [published.installed(published.LLAMAFACTORY)]
    answers = published.read(engine_python, "read_llamafactory", packages=packages, asked=asked)
    return dict(zip([*CASES_OF_LLAMAFACTORY, ("", "merge", "")], answers, strict=True))


@pytest.fixture(scope="module", params=["4.3.0", "4.6.0"])
def by_swift(
    request: pytest.FixtureRequest,
    engine_python: Path,
    model: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[tuple[str, str, str], Any]:
    """What ms-swift read of each case, of the command that merges, and of the families' names."""
    work = tmp_path_factory.mktemp("swift")
    asked: list[list[Any]] = []
    for chip, objective, method in CASES_OF_SWIFT:
        spec = {"objective": objective, "method": method, **EVERYTHING}
        launch = rendered("ms_swift", spec, chip=chip, model=MODEL)
        folder = folder_of(work, f"{chip} {objective} {method}", model=model)
        written(launch, folder)
        asked.append([str(folder), *commands(launch, "swift")[0][1:]])
    asked.append(_merging(folder_of(work, "merge", model=model)))
    families = {*ms_swift.FAMILIES.values(), ms_swift.LLAMA_3}
    asked.append(["families", *([each.model_type, each.template] for each in families)])
    asked.append(["families", ["qwen2", "no such template"]])
    packages = [published.installed(published.MS_SWIFT[request.param])]
    answers = published.read(engine_python, "read_ms_swift", packages=packages, asked=asked)
    others = [("", "merge", ""), ("", "families", ""), ("", "nonsense", "")]
    return dict(zip([*CASES_OF_SWIFT, *others], answers, strict=True))


def _merging(folder: Path) -> list[str]:
    launch = rendered("ms_swift", {"method": "lora", **EVERYTHING}, chip="nvidia-h800", model=MODEL)
    adapter = folder / "checkpoints" / "checkpoint-7"
    adapter.mkdir(parents=True)
    for name in ("adapter_config.json", "args.json"):
        (adapter / name).write_text("{}")
    values = {"{newest}": "checkpoints/checkpoint-7", "{inputs}": str(folder / "inputs")}
    arguments = commands(launch, "swift")[1][1:]
    for name, value in values.items():
        arguments = [word.replace(name, value) for word in arguments]
    return [str(folder), *arguments]


@pytest.mark.parametrize(("chip", "objective", "method"), CASES_OF_LLAMAFACTORY)
def test_llamafactory_reads_its_training_file(
    by_llamafactory: dict[tuple[str, str, str], Any], chip: str, objective: str, method: str
) -> None:
    found = by_llamafactory[chip, objective, method]
    assert found["stage"] == {"sft": "sft", "dpo": "dpo", "pretrain": "pt"}[objective]
    assert found["type"] == ("full" if method == "full" else "lora")
    assert found["bits"] == (4 if method == "qlora" else None)
    assert found["learning_rate"] == 1e-5
    assert (found["optim"], found["schedule"]) == (OPTIMIZERS[chip], "constant_with_warmup")
    assert found["warmup"] == 0.05
    assert found["flash"].endswith("fa2")
    assert found["deepspeed"]
    assert method == "full" or found["layers"] == ["q_proj", "v_proj"]
    assert [Path(row).is_file() for row in found["rows"]] == [True, True]
    assert found["ranking"] == [objective == "dpo"] * 2


def test_llamafactory_reads_its_merging_file(
    by_llamafactory: dict[tuple[str, str, str], Any],
) -> None:
    found = by_llamafactory["", "merge", ""]
    assert found == {"export_dir": "merged", "adapter": ["checkpoints"]}


@pytest.mark.parametrize(("chip", "objective", "method"), CASES_OF_SWIFT)
def test_ms_swift_reads_its_training_file(
    by_swift: dict[tuple[str, str, str], Any], chip: str, objective: str, method: str
) -> None:
    found = by_swift[chip, objective, method]
    assert found["rest"] == []
    assert found["type"] == ("full" if method == "full" else "lora")
    assert found["bits"] == (4 if method == "qlora" else None)
    assert (found["model_type"], found["template"]) == ("qwen2", "qwen2_5")
    assert (found["learning_rate"], found["optim"]) == (1e-5, OPTIMIZERS[chip])
    assert found["output"].endswith(f"a job {chip} {objective} {method}/checkpoints")
    assert found["deepspeed"]
    assert found["layers"] == (["all-linear"] if method == "full" else ["q_proj", "v_proj"])
    if objective == "grpo":
        assert found["rewards"] == ["ninefold_exact_match"]
    if objective == "dpo":
        assert found["columns"] == {"rejected": "rejected_response"}
    assert objective not in ("dpo", "grpo") or found["rlhf"] == objective


def test_ms_swift_reads_its_merging_command(by_swift: dict[tuple[str, str, str], Any]) -> None:
    found = by_swift["", "merge", ""]
    assert (found["rest"], found["merge"]) == ([], True)
    assert found["output"].endswith("a job merge/merged")


def test_ms_swift_knows_every_family_that_it_is_told_of(
    by_swift: dict[tuple[str, str, str], Any],
) -> None:
    assert by_swift["", "families", ""] == []
    assert by_swift["", "nonsense", ""] == [["qwen2", "no such template"]]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("learning_rat: 1.0\n", "learning_rat"),
        ("predict_with_generate: true\ncompute_accuracy: true\n", "together"),
    ],
)
def test_what_llamafactory_does_not_know_or_refuses_is_noticed(
    engine_python: Path, model: Path, tmp_path: Path, line: str, reason: str
) -> None:
    folder = folder_of(tmp_path, "wrong", model=model)
    written(rendered("llamafactory", EVERYTHING, chip="nvidia-h800"), folder)
    with (folder / "train.yaml").open("a") as file:
        file.write(line)
    packages = [published.installed(published.LLAMAFACTORY)]
    asked = [[str(folder), "train.yaml"]]
    with pytest.raises(AssertionError, match=reason):
        published.read(engine_python, "read_llamafactory", packages=packages, asked=asked)
