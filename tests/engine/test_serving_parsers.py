"""The parsers that vLLM and SGLang publish read what is rendered for them, and their own checks accept it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from controlplane.adapters.engines.tool_parsers import MIN_VERSIONS, ParserKind
from controlplane.adapters.engines.vllm_omni import (
    ASCEND_PIPELINES,
    NVIDIA_PIPELINES,
    NVIDIA_VIDEO_PIPELINES,
    SPEECH_ARCHITECTURES,
)
from controlplane.ports.adapter_registry import engine_by_name
from controlplane.ports.engines import ArgumentVerification, ServedAdapter
from controlplane.ports.launches import Launch, LaunchPlacement
from gateway.operations import FORMATS, RouteOperation
from tests.engine import published
from tests.unit.engines.serving_requests import (
    CHIPS,
    COMPRESSED,
    IMAGE_SPEC,
    IMAGES,
    MODELSLIM,
    PLAIN,
    SPECS,
    SPEECH,
    command_of,
    findings,
    rendered,
)

EMBEDDING = replace(PLAIN, files=frozenset({"modules.json"}))
#: Names have every character that a route's name may have.
ADAPTERS = (
    ServedAdapter(name="formal", input="adapter-1", rank=24),
    ServedAdapter(name="a-b_c", input="adapter-2", rank=8),
)
ADAPTER_FOLDERS = ["/inputs/adapter-1", "/inputs/adapter-2"]
#: The one package beside torch and transformers whose classes arguments are made of.
COMPILED = "msgspec==0.22.0"


def parsed(name: str, lines: Sequence[list[str]], *, version: str, python: Path) -> list[Any]:
    """What the engine's parser makes of each command line."""
    packages = [published.modules(f"{name}=={version}"), published.modules(COMPILED)]
    return published.read(python, "read_serving", name, packages=packages, asked=lines)


def command(launch: Launch) -> list[str]:
    """What the engine is started with, placeholders filled as a cluster fills them."""
    argv = command_of(launch)
    filled = {"{inputs}": "/inputs", "{port:http}": "8000", "{index}": "1", "{leader}": "10.0.0.1"}
    for placeholder, value in filled.items():
        argv = [each.replace(placeholder, value) for each in argv]
    return argv


def launches(name: str) -> Iterator[Launch]:
    """Of every spec on every chip that takes it, with plain and quantized weights, and of two nodes."""
    for chip in CHIPS:
        for spec in SPECS.values():
            if not findings(name, spec, chip=chip):
                yield rendered(name, spec, chip=chip)
        for model in (COMPRESSED, MODELSLIM):
            if not findings(name, {}, chip=chip, model=model):
                yield rendered(name, {"model_name": "assistant"}, chip=chip, model=model)
        if not findings(name, {}, chip=chip):
            yield rendered(name, {"model_name": "assistant"}, chip=chip, nodes=2)
            yield rendered(name, {"model_name": "assistant"}, chip=chip, model=EMBEDDING)
            reasons = {"model_name": "assistant", "reasoning_parser": "auto"}
            yield rendered(name, reasons, chip=chip)
            spec = {"model_name": "assistant"}
            yield rendered(name, spec, chip=chip, adapters=ADAPTERS)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("vllm", "0.23.0"),
        ("vllm", "0.33.0"),
        ("vllm_ascend", "0.23.0"),
    ],
)
def test_vllm_reads_every_command(name: str, version: str, engine_python: Path) -> None:
    assert engine_by_name(name).profile().flags is ArgumentVerification.PARSED
    lines = []
    for launch in launches(name):
        argv = command(launch)
        start = argv.index("serve") + 1
        # What a follower adds by itself.
        lines.append(argv[start:] + (["--headless"] if "--nnodes" in argv else []))
    read = parsed("vllm", lines, version=version, python=engine_python)
    assert len(read) >= 8
    for line, values in zip(lines, read, strict=True):
        assert values["model_tag"] == "/inputs/model"
        assert values["served_model_name"] == ["assistant"]
        assert values["port"] == 8000
        assert values["dtype"] == line[line.index("--dtype") + 1]
        assert values["api_key"] is None, "the key is in no argument"
        if values["enable_lora"]:
            assert (values["max_loras"], values["max_lora_rank"]) == (2, 32)
            modules = zip(ADAPTERS, ADAPTER_FOLDERS, values["lora_modules"], strict=True)
            for adapter, folder, module in modules:
                assert f"name={adapter.name!r}, path={folder!r}" in module
        else:
            assert values["lora_modules"] is None
    assert any(values["enable_lora"] for values in read)
    assert {values["max_model_len"] for values in read} == {None, 8192}
    assert {values["enable_prefix_caching"] for values in read} >= {None, True, False}
    assert {values["nnodes"] for values in read} == {1, 2}
    if name == "vllm_ascend":
        assert {values["quantization"] for values in read} == {None, "ascend"}


def test_sglang_reads_every_command(engine_python: Path) -> None:
    assert engine_by_name("sglang").profile().flags is ArgumentVerification.PARSED
    lines = [command(launch)[2:] for launch in launches("sglang")]
    read = parsed("sglang", lines, version="0.5.23", python=engine_python)
    assert len(read) >= 20
    for values in read:
        assert (values["model_path"], values["port"]) == ("/inputs/model", 8000)
        assert values["served_model_name"] == "assistant"
        assert values["enable_metrics"] is True
        assert values["api_key"] is None, "the key is in no argument"
    adapted = [values for values in read if values["enable_lora"]]
    assert {values["lora_backend"] for values in adapted} == {"csgmv", "ascend"}
    for values in adapted:
        assert (values["max_loras_per_batch"], values["max_lora_rank"]) == (3, 24)
        assert values["lora_paths"] == [
            f"{adapter.name}={folder}"
            for adapter, folder in zip(ADAPTERS, ADAPTER_FOLDERS, strict=True)
        ]
    assert {values["context_length"] for values in read} == {None, 8192}
    assert {values["device"] for values in read} == {"cuda", "npu"}
    assert {values["quantization"] for values in read} == {None, "modelslim"}
    assert {values["nnodes"] for values in read} == {1, 2}


def test_vllm_omni_reads_every_command_and_has_every_pipeline(engine_python: Path) -> None:
    """With vLLM 0.23.0, whose arguments it inherits: its own are in its package."""
    assert engine_by_name("vllm_omni").profile().flags is ArgumentVerification.PARSED
    package = published.modules("vllm-omni==0.28.0")
    packages = [package, *map(published.modules, ("vllm==0.23.0", COMPILED))]
    lines, speech = [], []
    for chip in ("nvidia-h800", "ascend-910b3"):
        for spec in ({"model_name": "assistant"}, IMAGE_SPEC):
            argv = command(rendered("vllm_omni", spec, chip=chip, model=IMAGES))
            lines.append(argv[argv.index("serve") + 1 :])
        card = (LaunchPlacement(node="n0", cards=(0,)),)
        spoken = command(
            rendered("vllm_omni", IMAGE_SPEC, chip=chip, model=SPEECH, placements=card)
        )
        speech.append(spoken[spoken.index("serve") + 1 :])
    speech_read = published.read(
        engine_python, "read_serving", "vllm_omni", packages=packages, asked=speech
    )
    for values in speech_read:
        assert (values["model_tag"], values["omni"], values["max_num_seqs"]) == (
            "/inputs/model",
            True,
            2,
        )
        assert values["trust_remote_code"] is not True
    read = published.read(
        engine_python, "read_serving", "vllm_omni", packages=packages, asked=lines
    )
    for values in read:
        assert (values["model_tag"], values["omni"]) == ("/inputs/model", True)
        assert (values["served_model_name"], values["port"]) == (["assistant"], 8000)
        assert (values["tensor_parallel_size"], values["dtype"]) == (4, "bfloat16")
        assert values["api_key"] is None, "the key is in no argument"
    assert {values["max_num_seqs"] for values in read} == {None, 2}
    registry = (package / "vllm_omni" / "diffusion" / "registry.py").read_text(encoding="utf-8")
    known = set(re.findall(r'^    "(.+)": \($', registry, re.M))
    assert {*NVIDIA_PIPELINES, *ASCEND_PIPELINES, *NVIDIA_VIDEO_PIPELINES} <= known
    server = (package / "vllm_omni" / "entrypoints" / "openai" / "api_server.py").read_text()
    for operation in (RouteOperation.VIDEOS, RouteOperation.SPEECH):
        assert f'@router.post(\n    "{FORMATS[operation].path}"' in server
    models = (package / "vllm_omni/model_executor/models/registry.py").read_text(encoding="utf-8")
    assert set(re.findall(r'^    "(\w+)": \($', models, re.M)) >= SPEECH_ARCHITECTURES


@pytest.mark.parametrize("version", ["0.5.14", "0.5.23"])
def test_sglang_has_the_route_and_the_models_of_transcription(version: str) -> None:
    root = published.modules(f"sglang=={version}") / "sglang" / "srt"
    server = (root / "entrypoints/http_server.py").read_text(encoding="utf-8")
    assert f'@app.post("{FORMATS[RouteOperation.TRANSCRIPTIONS].path}")' in server
    for file, model in (
        ("whisper", "WhisperForConditionalGeneration"),
        ("qwen3_asr", "Qwen3ASRForConditionalGeneration"),
    ):
        assert f"class {model}" in (root / f"models/{file}.py").read_text(encoding="utf-8")
        assert (root / f"entrypoints/openai/transcription_adapters/{file}.py").is_file()


#: Published parsers that the table lacks on purpose: vLLM removed this one, of MiniMax-M1, before 0.33.0.
NOT_IN_TABLE = {"vllm": {"minimax"}}


def check_parsers(engine: str, version: str, published_names: dict[ParserKind, set[str]]) -> None:
    """The package has the parsers of its release and of earlier ones, none of later ones, and no others."""
    for kind, releases in MIN_VERSIONS[engine].items():
        expected = {name for name, first in releases.items() if Version(first) <= Version(version)}
        published_here = published_names[kind] - NOT_IN_TABLE.get(engine, set())
        assert published_here == expected, (engine, kind)


@pytest.mark.parametrize("version", ["0.23.0", "0.33.0"])
def test_vllm_has_the_parsers_of_its_release(version: str) -> None:
    root = published.modules(f"vllm=={version}") / "vllm"
    files = {
        ParserKind.TOOLS: root / "tool_parsers/__init__.py",
        ParserKind.REASONING: root / "reasoning/__init__.py",
    }
    names = {
        kind: set(re.findall(r'^    "(.+)": \(', file.read_text(), re.M))
        for kind, file in files.items()
    }
    check_parsers("vllm", version, names)


@pytest.mark.parametrize("version", ["0.5.14", "0.5.17", "0.5.23"])
def test_sglang_has_the_parsers_of_its_release(version: str) -> None:
    root = published.modules(f"sglang=={version}") / "sglang" / "srt"
    files = {
        ParserKind.TOOLS: root / "function_call/function_call_parser.py",
        ParserKind.REASONING: root / "parser/reasoning_parser.py",
    }
    names = {
        kind: set(re.findall(r'^        "(.+)": \w+Detector', file.read_text(), re.M))
        for kind, file in files.items()
    }
    check_parsers("sglang", version, names)


def test_the_older_sglang_of_ascends_image_has_every_option_too() -> None:
    """Its parser needs kernels when it is imported, so its fields are read as text."""
    source = published.modules("sglang==0.5.14") / "sglang" / "srt" / "server_args.py"
    (declared,) = (
        each
        for each in ast.parse(source.read_text(encoding="utf-8")).body
        if isinstance(each, ast.ClassDef) and each.name == "ServerArgs"
    )
    options = {
        "--" + each.target.id.replace("_", "-")
        for each in declared.body
        if isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and "no_cli=True" not in ast.unparse(each.annotation)
    }
    assert len(options) > 100
    used = {
        argument
        for launch in launches("sglang")
        for argument in command(launch)
        if argument.startswith("--")
    }
    assert used - options == set()


def test_an_option_that_vllm_does_not_have_is_refused(engine_python: Path) -> None:
    """So that a test above can fail."""
    with pytest.raises(AssertionError, match="unrecognized arguments: --no-such-option"):
        parsed(
            "vllm",
            [["/inputs/model", "--no-such-option"]],
            version="0.23.0",
            python=engine_python,
        )


@pytest.mark.parametrize(
    ("name", "version", "arguments", "reason"),
    [
        (
            "vllm",
            "0.33.0",
            "/inputs/model --enable-auto-tool-choice",
            "requires --tool-call-parser",
        ),
        (
            "sglang",
            "0.5.23",
            "--model-path /inputs/model --tp-size 2 --dp-size 2 --nnodes 2 --node-rank 0",
            "multi-node data-parallel replicas are not supported",
        ),
    ],
)
def test_what_an_engine_refuses_after_it_has_read_it_is_refused(
    name: str, version: str, arguments: str, reason: str, engine_python: Path
) -> None:
    """So that a test above can fail for what the parser lets through."""
    with pytest.raises(AssertionError, match=reason):
        parsed(name, [arguments.split()], version=version, python=engine_python)
