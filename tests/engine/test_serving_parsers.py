"""The parsers that vLLM and SGLang publish read what is rendered for them, and their own checks accept it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from apps.models.selectors.catalog import catalog_model_facts, published_catalog
from controlplane.adapters.engines.tool_parsers import (
    MIN_VERSIONS,
    ParserKind,
    ParserNames,
    model_family,
)
from controlplane.adapters.engines.vllm_omni import (
    ASCEND_PIPELINES,
    NVIDIA_PIPELINES,
    NVIDIA_VIDEO_PIPELINES,
    SPEECH_ARCHITECTURES,
)
from controlplane.domain.serving.model_kinds import ModelKind
from controlplane.ports.adapter_registry import engine_by_name
from controlplane.ports.engines import ArgumentVerification, MultiNodeEngine, ServedAdapter
from controlplane.ports.launches import Launch, LaunchPlacement
from tests.engine import published
from tests.unit.engines.serving_requests import (
    CHIPS,
    COMPRESSED,
    IMAGE_SPEC,
    IMAGES,
    KINDS,
    MODELSLIM,
    PLAIN,
    SPECS,
    SPEECH,
    VIDEO,
    command_of,
    findings,
    kinds,
    rendered,
)

_XLM_ROBERTA = {
    "model_type": "xlm-roberta",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "max_position_embeddings": 8194,
    "position_embedding_type": "absolute",
    "vocab_size": 250_002,
    "pad_token_id": 1,
    "id2label": {"0": "LABEL_0"},
    "label2id": {"LABEL_0": 0},
}
#: Architecture → the rest of a ``config.json`` of such a model.
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "Qwen3ForCausalLM": {**PLAIN.config, "model_type": "qwen3"},
    "XLMRobertaModel": _XLM_ROBERTA,
    "XLMRobertaForSequenceClassification": _XLM_ROBERTA,
    "WhisperForConditionalGeneration": {
        "model_type": "whisper",
        "is_encoder_decoder": True,
        "d_model": 1280,
        "encoder_layers": 32,
        "decoder_layers": 4,
        "encoder_attention_heads": 20,
        "decoder_attention_heads": 20,
        "num_hidden_layers": 32,
    },
    "Qwen3ASRForConditionalGeneration": {"model_type": "qwen3_asr", "thinker_config": {}},
}
#: Names have every character that a route's name may have.
ADAPTERS = (
    ServedAdapter(name="formal", input="adapter-1", rank=24),
    ServedAdapter(name="a-b_c", input="adapter-2", rank=8),
)
ADAPTER_FOLDERS = ["/inputs/adapter-1", "/inputs/adapter-2"]
#: The one package beside torch and transformers whose classes arguments are made of.
COMPILED = "msgspec==0.22.0"


def parsed(name: str, lines: Sequence[list[str]], *, version: str, python: Path) -> list[Any]:
    """What the engine's parser makes of each command line; the test fails for one that it refuses."""
    packages = [published.modules(f"{name}=={version}"), published.modules(COMPILED)]
    return accepted(published.read(python, "read_serving", name, packages=packages, asked=lines))


def accepted(read: list[Any]) -> list[Any]:
    assert [values["refused"] for values in read if "refused" in values] == []
    return read


def refusals(name: str, lines: Sequence[list[str]], *, version: str, python: Path) -> list[str]:
    """Why the engine refuses each command line; empty for one that it does not refuse."""
    packages = [published.modules(f"{name}=={version}"), published.modules(COMPILED)]
    read = published.read(python, "read_serving", name, packages=packages, asked=lines)
    return [values.get("refused", "") for values in read]


def command(launch: Launch, *, model: Path | None = None, index: int = 0) -> list[str]:
    """What the engine is started with, placeholders filled as a cluster fills them.

    :param model: the folder of the model, which gets the files of the launch; ``/inputs/model`` otherwise.
    :param index: the node of a replica on several.
    """
    argv = command_of(launch)
    filled = {"{port:http}": "8000", "{index}": str(index), "{leader}": "10.0.0.1"}
    if model is not None:
        filled |= {"{inputs}/model": str(model), "{work}": str(model)}
        for path, content in launch.files.items():
            (model / path).write_text(content, encoding="utf-8")
    filled["{inputs}"] = "/inputs"
    for placeholder, value in filled.items():
        argv = [each.replace(placeholder, value) for each in argv]
    return argv


def model_folders(folder: Path) -> dict[str, Path]:
    """Folders with a ``config.json``, by architecture."""
    folders = {}
    for architecture, config in CONFIGS.items():
        folders[architecture] = folder / architecture
        folders[architecture].mkdir()
        text = json.dumps({**config, "architectures": [architecture]})
        (folders[architecture] / "config.json").write_text(text, encoding="utf-8")
    return folders


def launches(name: str) -> Iterator[Launch]:
    """Of a text model: every spec on every chip that takes it, quantized weights, two nodes, adapters."""
    for chip in CHIPS:
        for spec in SPECS.values():
            if not findings(name, spec, chip=chip):
                yield rendered(name, spec, chip=chip)
        for model in (COMPRESSED, MODELSLIM):
            if not findings(name, {}, chip=chip, model=model):
                yield rendered(name, {"model_name": "assistant"}, chip=chip, model=model)
        if not findings(name, {}, chip=chip):
            yield from launches_across_nodes(name, chip)
            reasons = {"model_name": "assistant", "reasoning_parser": "auto"}
            yield rendered(name, reasons, chip=chip)
        for spec in SPECS.values():
            if not findings(name, spec, chip=chip):
                yield rendered(name, spec, chip=chip, adapters=ADAPTERS)


HOMES = {"vllm": "nvidia-h800", "vllm_ascend": "ascend-910b3", "sglang": "nvidia-h800"}
OF_NO_FAMILY = replace(PLAIN, catalog_key="", chat_template="{{ messages }}")
#: Parallel plans of eight cards on two nodes: the engine's own, more stages than nodes, copies, one of all cards.
PLANS_ACROSS_NODES: tuple[Mapping[str, int], ...] = (
    {},
    {"pipeline": 4},
    {"data": 2},
    {"data": 2, "pipeline": 2},
    {"tensor": 8},
)


def family_launches(name: str, version: str) -> Iterator[tuple[ParserNames, Launch]]:
    """Of text models on the engine's first chip, with the parsers that are expected in the command.

    One model of each architecture of each family in the catalog, with the parsers that the plug-in chooses; and
    every parser of the release by its name.
    """
    chip, engine = HOMES[name], "vllm" if name == "vllm_ascend" else name
    spec = {"model_name": "assistant", "reasoning_parser": "auto", "engine_version": version}
    seen = set()
    for entry in published_catalog().entries.values():
        model = catalog_model_facts(entry)
        family = model_family(model)
        key = (entry.family, model.architecture, family and getattr(family, engine))
        if key in seen or model.kind is not ModelKind.TEXT:
            continue
        if not findings(name, spec, chip=chip, model=model):
            seen.add(key)
            names = ParserNames(*getattr(family, engine)) if family else ParserNames()
            yield names, rendered(name, spec, chip=chip, model=model)
    for kind, releases in MIN_VERSIONS[engine].items():
        for parser, first in releases.items():
            named = {"model_name": "assistant", "engine_version": version, kind: parser}
            if Version(first) <= Version(version):
                launch = rendered(name, named, chip=chip, model=OF_NO_FAMILY)
                tools = kind is ParserKind.TOOLS
                yield ParserNames(*((parser, "") if tools else ("", parser))), launch
    assert len({family for family, *_ in seen}) > 30


def launches_across_nodes(name: str, chip: str) -> Iterator[Launch]:
    """Of a text model on two nodes: every plan that the engine takes."""
    engine = engine_by_name(name)
    assert isinstance(engine, MultiNodeEngine)
    for plan in PLANS_ACROSS_NODES:
        spec = {"model_name": "assistant", "parallel": plan}
        if not engine.check_nodes(spec, nodes=2, model=PLAIN):
            yield rendered(name, spec, chip=chip, nodes=2)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("vllm", "0.23.0"),
        ("vllm", "0.33.0"),
        ("vllm_ascend", "0.23.0"),
    ],
)
def test_vllm_reads_every_command(
    name: str, version: str, engine_python: Path, tmp_path: Path
) -> None:
    """The commands of plain weights with vLLM's whole configuration of the model and the engine."""
    folders = model_folders(tmp_path)
    assert engine_by_name(name).profile().flags is ArgumentVerification.PARSED
    lines, of_kinds = [], []
    families: list[ParserNames] = []
    for names, launch in family_launches(name, version):
        families.append(names)
        lines.append(served(command(launch)))
    for launch in launches(name):
        for index in (0, 1) if "--nnodes" in command(launch) else (0,):
            argv = command(launch, index=index)
            # vLLM Ascend adds its quantization to vLLM, and a parser of reasoning asks the tokenizer.
            if not {"--quantization", "--reasoning-parser"} & set(argv):
                argv = command(launch, model=folders[PLAIN.architecture], index=index)
            # What a follower adds by itself.
            lines.append(served(argv) + ["--headless"] * index)
    for kind, launch in kinds(name):
        lines.append(served(command(launch, model=folders[KINDS[kind].architecture])))
        of_kinds.append(kind)
    read = parsed("vllm", lines, version=version, python=engine_python)
    check_vllm_kinds(name, dict(zip(of_kinds, read[-len(of_kinds) :], strict=True)))
    check_vllm_parsers(families, read[: len(families)])
    check_vllm_nodes([values for values in read if values["nnodes"] == 2])
    for line, values in zip(lines, read, strict=True):
        assert values["model_tag"] == line[0]
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
    # An encoder-decoder has neither, whatever is asked for.
    assert {values.get("derived_prefix_caching") for values in read} >= {True, False}
    assert {values["max_model_len"] for values in read} == {None, 8192}
    assert {values["enable_prefix_caching"] for values in read} >= {None, True, False}
    assert {values["nnodes"] for values in read} == {1, 2}
    if name == "vllm_ascend":
        assert {values["quantization"] for values in read} == {None, "ascend"}


def served(argv: list[str]) -> list[str]:
    """The arguments of ``vllm serve``."""
    return argv[argv.index("serve") + 1 :]


def check_vllm_parsers(expected: Sequence[ParserNames], read: Sequence[Mapping[str, Any]]) -> None:
    """The engine has imported the class of every parser."""
    for names, values in zip(expected, read, strict=True):
        tools, reasoning = names
        assert (values["tool_call_parser"] or "", values["reasoning_parser"]) == (tools, reasoning)
        assert values["enable_auto_tool_choice"] is bool(tools)
        assert ("derived_tools_parser" in values) is bool(tools)
        assert ("derived_reasoning_parser" in values) is bool(reasoning)


def check_vllm_nodes(read: Sequence[Mapping[str, Any]]) -> None:
    """How vLLM lays out two nodes: whole copies of a model, or one copy on both."""
    laid_out = {
        (
            values["tensor_parallel_size"],
            values["pipeline_parallel_size"],
            values["data_parallel_size"],
            values["node_rank"],
        ): (values["derived_nodes_of_a_copy"], values["derived_copy"])
        for values in read
    }
    assert laid_out == {
        **{(4, 2, 1, index): (2, 0) for index in (0, 1)},
        **{(2, 4, 1, index): (2, 0) for index in (0, 1)},
        **{(8, 1, 1, index): (2, 0) for index in (0, 1)},
        **{(4, 1, 2, index): (1, index) for index in (0, 1)},
        **{(2, 2, 2, index): (1, index) for index in (0, 1)},
    }


def check_vllm_kinds(name: str, read: Mapping[str, Any]) -> None:
    """What vLLM derives from a model of each kind."""
    expected = {
        "embedding": ("Qwen3ForCausalLM", "pooling", "embed"),
        "encoder": ("XLMRobertaModel", "pooling", "none"),
        "reranker": ("XLMRobertaForSequenceClassification", "pooling", "none"),
        "causal-reranker": ("Qwen3ForSequenceClassification", "pooling", "classify"),
        "whisper": ("WhisperForConditionalGeneration", "generate", "none"),
        "asr": ("Qwen3ASRForConditionalGeneration", "generate", "none"),
    }
    if name == "vllm_ascend":
        del expected["whisper"]
    assert {
        kind: (values["derived_architecture"], values["derived_runner"], values["derived_task"])
        for kind, values in read.items()
    } == expected
    template = Path(read["causal-reranker"]["chat_template"])
    assert "Judge whether the Document" in template.read_text(encoding="utf-8")


def test_sglang_reads_every_command(engine_python: Path) -> None:
    assert engine_by_name("sglang").profile().flags is ArgumentVerification.PARSED
    families = list(family_launches("sglang", "0.5.23"))
    lines = [command(launch)[2:] for _, launch in families]
    for launch in launches("sglang"):
        for index in (0, 1) if "--nnodes" in command(launch) else (0,):
            lines.append(command(launch, index=index)[2:])
    kinds_of_lines = []
    for kind, launch in kinds("sglang"):
        lines.append(command(launch)[2:])
        kinds_of_lines.append(kind)
    read = parsed("sglang", lines, version="0.5.23", python=engine_python)
    for (names, _), values in zip(families, read[: len(families)], strict=True):
        parsers = (values["tool_call_parser"] or "", values["reasoning_parser"] or "")
        assert parsers == names, "its parser refuses a name that it does not have"
    across = [values for values in read if values["nnodes"] == 2]
    assert {(each["tp_size"], each["pp_size"], each["node_rank"]) for each in across} == {
        (tensor, pipeline, index)
        for tensor, pipeline in ((4, 2), (2, 4), (8, 1))
        for index in (0, 1)
    }
    assert set(kinds_of_lines) == {"embedding", "encoder", "reranker", "whisper", "asr"}
    for kind, values in zip(kinds_of_lines, read[-len(kinds_of_lines) :], strict=True):
        assert values["is_embedding"] is (kind in ("embedding", "encoder", "reranker"))
        if kind in ("encoder", "reranker"):
            assert (values["disable_radix_cache"], values["chunked_prefill_size"]) == (True, -1)
            backend = {"cuda": "triton", "npu": "ascend"}[values["device"]]
            assert values["attention_backend"] == backend
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


@pytest.mark.parametrize(("version", "vllm"), [("0.28.0", "0.23.0"), ("0.30.0", "0.30.0")])
def test_vllm_omni_reads_every_command_and_has_every_pipeline(
    version: str, vllm: str, engine_python: Path
) -> None:
    """Its own arguments are in its package; those that it inherits are of a vLLM that it can be installed with."""
    assert engine_by_name("vllm_omni").profile().flags is ArgumentVerification.PARSED
    package = published.modules(f"vllm-omni=={version}")
    packages = [package, *map(published.modules, (f"vllm=={vllm}", COMPILED))]
    lines, speech = [], []
    for chip in ("nvidia-h800", "ascend-910b3", "ascend-910c"):
        for spec, model in product(({"model_name": "assistant"}, IMAGE_SPEC), (IMAGES, VIDEO)):
            assert findings("vllm_omni", spec, chip=chip, model=model) == {}
            argv = command(rendered("vllm_omni", spec, chip=chip, model=model))
            lines.append(argv[argv.index("serve") + 1 :])
        card = (LaunchPlacement(node="n0", cards=(0,)),)
        spoken = command(
            rendered("vllm_omni", IMAGE_SPEC, chip=chip, model=SPEECH, placements=card)
        )
        speech.append(spoken[spoken.index("serve") + 1 :])
    read = accepted(
        published.read(
            engine_python, "read_serving", "vllm_omni", packages=packages, asked=speech + lines
        )
    )
    speech_read, read = read[: len(speech)], read[len(speech) :]
    for values in speech_read:
        assert (values["model_tag"], values["omni"], values["max_num_seqs"]) == (
            "/inputs/model",
            True,
            2,
        )
        assert values["trust_remote_code"] is not True
    for values in read:
        assert (values["model_tag"], values["omni"]) == ("/inputs/model", True)
        assert (values["served_model_name"], values["port"]) == (["assistant"], 8000)
        assert (values["tensor_parallel_size"], values["dtype"]) == (4, "bfloat16")
        assert values["api_key"] is None, "the key is in no argument"
    assert {values["max_num_seqs"] for values in read} == {None, 2}
    registry = (package / "vllm_omni" / "diffusion" / "registry.py").read_text(encoding="utf-8")
    known = set(re.findall(r'^    "(.+)": \($', registry, re.M))
    assert {*NVIDIA_PIPELINES, *ASCEND_PIPELINES, *NVIDIA_VIDEO_PIPELINES} <= known
    models = (package / "vllm_omni/model_executor/models/registry.py").read_text(encoding="utf-8")
    assert set(re.findall(r'^    "(\w+)": \($', models, re.M)) >= SPEECH_ARCHITECTURES


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
        for launch in [*launches("sglang"), *(launch for _, launch in kinds("sglang"))]
        for argument in command(launch)
        if argument.startswith("--")
    }
    assert used - options == set()


def test_what_vllm_does_not_have_or_support_is_refused(engine_python: Path, tmp_path: Path) -> None:
    """So that a test above can fail: for an option, for a parser of a later release, and after the parsing."""
    reranker = KINDS["reranker"]
    folder = model_folders(tmp_path)[reranker.architecture]
    refused = {
        "--no-such-option": "unrecognized arguments: --no-such-option",
        "--enable-auto-tool-choice": "requires --tool-call-parser",
        "--enable-auto-tool-choice --tool-call-parser kimi_k3": "'kimi_k3' not found",
        "--reasoning-parser kimi_k3": "'kimi_k3' not found",
    }
    lines = [["/inputs/model", *arguments.split()] for arguments in refused]
    # What only the whole configuration shows; the plug-in refuses it, too.
    lines.append([str(folder), "--runner", "pooling", "--pipeline-parallel-size", "2"])
    expected = [*refused.values(), "Pipeline parallelism is not supported"]
    found = refusals("vllm", lines, version="0.23.0", python=engine_python)
    for reason, message in zip(expected, found, strict=True):
        assert reason in message
    for name, model in (("vllm", reranker), ("vllm", KINDS["whisper"]), ("sglang", KINDS["asr"])):
        wrong = findings(name, {"parallel": {"pipeline": 2}}, model=model)
        assert "no pipeline parallelism" in wrong["parallel.pipeline"]


def test_what_sglang_does_not_have_or_support_is_refused(engine_python: Path) -> None:
    """So that a test above can fail."""
    refused = {
        "--tool-call-parser no_such": "invalid choice: 'no_such'",
        "--reasoning-parser no_such": "invalid choice: 'no_such'",
        "--tp-size 2 --dp-size 2 --nnodes 2 --node-rank 0": "multi-node data-parallel replicas are not supported",
    }
    lines = [["--model-path", "/inputs/model", *arguments.split()] for arguments in refused]
    found = refusals("sglang", lines, version="0.5.23", python=engine_python)
    for reason, message in zip(refused.values(), found, strict=True):
        assert reason in message
