"""Engines that are on no registry: their commands have options of their source, with values of the right type."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from controlplane.adapters.engines.tool_parsers import MIN_VERSIONS, ParserKind
from controlplane.ports.adapter_registry import all_chips, engine_by_name
from controlplane.ports.launches import Launch, LaunchPlacement
from tests.golden.launches import compare
from tests.unit.engines.serving_requests import (
    CHIPS,
    IMAGE_SPEC,
    IMAGES,
    KEY,
    PLAIN,
    SPECS,
    findings,
    kinds,
    rendered,
)

OPTIONS = tomllib.loads(
    (Path(__file__).parents[2] / "fixtures" / "engines" / "options.toml").read_text("utf-8")
)
#: What a value of each type looks like.
TYPES = {
    "bool": r"true|false",
    "int32": r"-?\d+",
    "int64": r"-?\d+",
    "uint32": r"\d+",
    "uint64": r"\d+",
    "double": r"\d*\.?\d+",
    "string": r".+",
    "flag": r"",
}


def command(launch: Launch) -> list[str]:
    """What the engine is started with."""
    if "steps.json" in launch.files:
        first: list[str] = json.loads(launch.files["steps.json"])["steps"][0]["run"]
        return first
    return list(launch.roles[0].argv)


def launches(name: str) -> Iterator[Launch]:
    """Of every spec and kind of model on every chip that takes both, and with the parsers of the family."""
    specs = [*SPECS.values(), {"model_name": "assistant", "reasoning_parser": "auto"}]
    for chip in CHIPS:
        yield from (
            rendered(name, spec, chip=chip) for spec in specs if not findings(name, spec, chip=chip)
        )
    yield from (launch for _, launch in kinds(name))


def wrong_options(argv: list[str], known: dict[str, str]) -> list[str]:
    """Options that are not declared, or not of that type; a value follows ``=`` or is the next argument."""
    wrong = []
    for argument, following in pairwise([*argv, "--"]):
        if not argument.startswith("--"):
            continue
        name, given, value = argument.removeprefix("--").partition("=")
        value = value if given else "" if following.startswith("--") else following
        value = re.sub(r"\{port:\w+\}", "8000", value)
        if not re.fullmatch(TYPES.get(known.get(name, ""), r"(?!)"), value):
            wrong.append(argument)
    return wrong


def test_xllm_declares_every_option_and_parser_that_it_is_given() -> None:
    declared: dict[str, Any] = OPTIONS["xllm"]
    commands = [command(launch) for launch in launches("xllm")]
    assert len(commands) >= 12
    assert [wrong for argv in commands for wrong in wrong_options(argv, declared["options"])] == []
    given = {argument.partition("=")[0] for argv in commands for argument in argv}
    assert {"--model", "--enable_graph", "--dp_size", "--reasoning_parser"} <= given
    # What the program adds for each card.
    assert {"port", "nnodes", "node_rank", "devices"} <= set(declared["options"])
    assert wrong_options(["--no_such=1", "--block_size=large"], declared["options"]) == [
        "--no_such=1",
        "--block_size=large",
    ]
    for kind, names in (("tools", ParserKind.TOOLS), ("reasoning", ParserKind.REASONING)):
        assert set(MIN_VERSIONS["xllm"][names]) == set(declared["parsers"][kind])


def test_xllm_refuses_what_its_builds_and_its_server_do_not_have() -> None:
    embedder = replace(PLAIN, files=frozenset({"modules.json"}))
    assert "--task=embed" in command(rendered("xllm", {}, chip="ascend-910b3", model=embedder))
    refused = {
        "architecture": findings(
            "xllm", {}, model=replace(PLAIN, architecture="DeepseekV3ForCausalLM")
        )["model"],
        "reserved": findings("xllm", {"extra_args": ["-device_id=0"]})["extra_args"],
        "copies": findings("xllm", {"parallel": {"data": 3}})["parallel.data"],
        "pipeline": findings("xllm", {"parallel": {"pipeline": 2}})["parallel.pipeline"],
        "chip": engine_by_name("xllm").unsupported_reason(
            next(iter(engine_by_name("xllm").tasks)), all_chips()["ascend-310p"]
        ),
    }
    expected = {
        "architecture": "DeepseekV3ForCausalLM, which is not supported: xLLM serves MiMoForCausalLM",
        "reserved": "-device_id cannot be set here",
        "copies": "must be a power of 2 for xLLM, got 3",
        "pipeline": "no pipeline parallelism",
        "chip": "no image of xLLM is known for Ascend 310P",
    }
    assert {name: text for name, text in refused.items() if expected[name] not in text} == {}
    deepseek = replace(PLAIN, architecture="DeepseekV3ForCausalLM")
    assert findings("xllm", {}, chip="ascend-910b3", model=deepseek) == {}
    spec = {"extra_args": ["--enable_schedule_overlap=true"]}
    assert findings("xllm", spec) == {}
    assert command(rendered("xllm", spec, chip="nvidia-h800"))[-1] == spec["extra_args"][0]


def test_text_embeddings_inference_declares_every_option_and_serves_embeddings_alone() -> None:
    embedder = replace(
        PLAIN, name="bge-m3", architecture="XLMRobertaModel", files=frozenset({"modules.json"})
    )
    spec = {"model_name": "assistant", "concurrency": 64, "queue_size": 8}
    one_card = (LaunchPlacement(node="n0", cards=(0,)),)
    found: dict[str, Any] = {"model": embedder, "placements": one_card}
    launch = rendered("tei", spec, chip="nvidia-h800", **found)
    compare(launch, engine="tei", case="nvidia-h800-embedding")
    argv = command(launch)
    assert wrong_options(argv, OPTIONS["tei"]["options"]) == []
    assert argv[argv.index("--max-concurrent-requests") + 1] == "72"
    # Its key comes as a variable, which no list of processes shows.
    assert launch.secrets["API_KEY"] == KEY
    exact = command(rendered("tei", spec | {"precision": "float32"}, chip="nvidia-a10", **found))
    assert exact[exact.index("--dtype") + 1] == "float32"
    with pytest.raises(ValueError, match="uses one card of a replica, got 4"):
        rendered("tei", spec, chip="nvidia-h800", model=embedder)
    refused = {
        "text": findings("tei", spec)["model"],
        "reranker": findings(
            "tei", spec, model=replace(PLAIN, architecture="XLMRobertaForSequenceClassification")
        )["model"],
        "architecture": findings("tei", spec, model=replace(embedder, architecture="T5Model"))[
            "model"
        ],
        "chip": findings("tei", spec, chip="nvidia-v100-32gb")["engine"],
        "reserved": findings("tei", {"extra_args": ["--hostname=::"]}, model=embedder)[
            "extra_args"
        ],
    }
    expected = {
        "text": "serves models of the kinds embedding",
        "reranker": "serves models of the kinds embedding",
        "architecture": "is a T5Model, which is not supported",
        "chip": "has no build for NVIDIA V100",
        "reserved": "--hostname cannot be set here",
    }
    assert {name: text for name, text in refused.items() if expected[name] not in text} == {}


def test_vllm_omni_serves_the_pipelines_that_it_names_for_the_chip() -> None:
    """Its options are read by its own parser in ``tests/engine``."""
    for chip in ("nvidia-h800", "ascend-910b3"):
        compare(
            rendered("vllm_omni", IMAGE_SPEC, chip=chip, model=IMAGES),
            engine="vllm_omni",
            case=chip,
        )
    for chip, architecture, served in (
        ("nvidia-h800", "QwenImageTransformer2DModel", True),
        ("ascend-910c", "QwenImageTransformer2DModel", True),
        ("ascend-910c", "StableDiffusionXLPipeline", True),
        ("nvidia-h800", "FluxPipeline", True),
        ("ascend-910c", "FluxPipeline", False),
        ("nvidia-h800", "UNet2DConditionModel", False),
        ("nvidia-h800", "WanPipeline", True),
        ("ascend-910b3", "WanTransformer3DModel", True),
        ("nvidia-h800", "HunyuanVideo15Pipeline", True),
        ("ascend-910b3", "HunyuanVideo15Pipeline", False),
        ("nvidia-h800", "HunyuanVideoTransformer3DModel", False),
        ("nvidia-h800", "CogVideoXPipeline", False),
    ):
        model = replace(IMAGES, architecture=architecture)
        found = findings("vllm_omni", IMAGE_SPEC, chip=chip, model=model)
        assert (not found) is served, (chip, architecture, found)
    for field, value in (
        ("context_length", 4096),
        ("prefix_cache", "on"),
        ("parallel", {"data": 2}),
    ):
        assert findings("vllm_omni", {field: value}, model=IMAGES), field
    assert "kinds image, speech, video" in findings("vllm_omni", {})["model"]
    video = replace(IMAGES, architecture="WanPipeline")
    of_video, of_image = (
        rendered("vllm_omni", IMAGE_SPEC, chip="nvidia-h800", model=model)
        for model in (video, IMAGES)
    )
    assert of_video.roles == of_image.roles
