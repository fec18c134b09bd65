"""The parsers that vLLM and SGLang publish read what is rendered for them, and their own checks accept it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from controlplane.adapters.engines.sglang import CROSS_ENCODERS, PIPELINE_ARCHITECTURES
from controlplane.adapters.engines.tool_parsers import MIN_VERSIONS, ParserKind
from controlplane.adapters.engines.vllm import supports_pipeline
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
    """What the engine's parser makes of each command line."""
    packages = [published.modules(f"{name}=={version}"), published.modules(COMPILED)]
    return published.read(python, "read_serving", name, packages=packages, asked=lines)


def command(launch: Launch, *, model: Path | None = None) -> list[str]:
    """What the engine is started with, placeholders filled as a cluster fills them.

    :param model: the folder of the model, which gets the files of the launch; ``/inputs/model`` otherwise.
    """
    argv = command_of(launch)
    filled = {"{port:http}": "8000", "{index}": "1", "{leader}": "10.0.0.1"}
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
            yield rendered(name, {"model_name": "assistant"}, chip=chip, nodes=2)
            reasons = {"model_name": "assistant", "reasoning_parser": "auto"}
            yield rendered(name, reasons, chip=chip)
        for spec in SPECS.values():
            if not findings(name, spec, chip=chip):
                yield rendered(name, spec, chip=chip, adapters=ADAPTERS)


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
    for launch in launches(name):
        argv = command(launch)
        # vLLM Ascend adds its quantization to vLLM, and a parser of reasoning asks the tokenizer.
        if not {"--quantization", "--reasoning-parser"} & set(argv):
            argv = command(launch, model=folders[PLAIN.architecture])
        start = argv.index("serve") + 1
        # What a follower adds by itself.
        lines.append(argv[start:] + (["--headless"] if "--nnodes" in argv else []))
    for kind, launch in kinds(name):
        argv = command(launch, model=folders[KINDS[kind].architecture])
        lines.append(argv[argv.index("serve") + 1 :])
        of_kinds.append(kind)
    read = parsed("vllm", lines, version=version, python=engine_python)
    check_vllm_kinds(name, dict(zip(of_kinds, read[-len(of_kinds) :], strict=True)))
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
    lines = [command(launch)[2:] for launch in launches("sglang")]
    kinds_of_lines = []
    for kind, launch in kinds("sglang"):
        lines.append(command(launch)[2:])
        kinds_of_lines.append(kind)
    read = parsed("sglang", lines, version="0.5.23", python=engine_python)
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
    models = (package / "vllm_omni/model_executor/models/registry.py").read_text(encoding="utf-8")
    assert set(re.findall(r'^    "(\w+)": \($', models, re.M)) >= SPEECH_ARCHITECTURES


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("vllm", "vllm==0.23.0"),
        ("vllm", "vllm==0.33.0"),
        ("sglang", "sglang==0.5.14"),
        ("sglang", "sglang==0.5.23"),
        ("vllm_omni", "vllm-omni==0.28.0"),
        ("vllm_omni", "vllm-omni==0.30.0"),
    ],
)
def test_an_engine_has_a_route_of_every_operation_that_it_offers(name: str, package: str) -> None:
    folder = published.modules(package) / package.partition("==")[0].replace("-", "_")
    sources = [
        path.read_text(encoding="utf-8")
        for path in folder.rglob("entrypoints/**/*.py")
        if path.name.endswith(("router.py", "server.py"))
    ]
    routes = set(re.findall(r'\.(?:post|api_route)\(\s*"([^"]+)"', "\n".join(sources)))
    offered = set().union(*engine_by_name(name).profile().operations.values())
    assert len(offered) >= 3
    assert {FORMATS[RouteOperation(each)].path for each in offered} - routes == set()


@pytest.mark.parametrize("version", ["0.5.14", "0.5.23"])
def test_sglang_has_the_models_of_transcription_and_pairs_the_texts_of_rerankers(
    version: str,
) -> None:
    root = published.modules(f"sglang=={version}") / "sglang" / "srt"
    text = (root / "configs/model_config.py").read_text(encoding="utf-8")
    (paired,) = re.findall(r"_cross_encoding_pooler_archs = (\[.+?\])", text, re.DOTALL)
    assert set(ast.literal_eval(paired)) == CROSS_ENCODERS
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
        for launch in [*launches("sglang"), *(launch for _, launch in kinds("sglang"))]
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


def test_what_vllm_refuses_for_the_model_is_refused(engine_python: Path, tmp_path: Path) -> None:
    """So that a test above can fail for what only the whole configuration shows; the plug-in refuses it, too."""
    reranker = KINDS["reranker"]
    folder = model_folders(tmp_path)[reranker.architecture]
    line = [str(folder), "--runner", "pooling", "--pipeline-parallel-size", "2"]
    with pytest.raises(AssertionError, match="Pipeline parallelism is not supported"):
        parsed("vllm", [line], version="0.33.0", python=engine_python)
    for name, model in (("vllm", reranker), ("vllm", KINDS["whisper"]), ("sglang", KINDS["asr"])):
        found = findings(name, {"parallel": {"pipeline": 2}}, model=model)
        assert "no pipeline parallelism" in found["parallel.pipeline"]


@pytest.mark.parametrize("version", ["0.5.14", "0.5.23"])
def test_sglang_divides_the_layers_of_the_stored_architectures(version: str) -> None:
    """By the signature that SGLang asks itself, read from its sources."""
    folder = published.modules(f"sglang=={version}") / "sglang" / "srt" / "models"
    classes = {
        node.name: node
        for path in folder.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8-sig")).body
        if isinstance(node, ast.ClassDef)
    }

    def is_divided(name: str) -> bool:
        node = classes.get(name)
        if node is None:
            return False
        for each in node.body:
            if isinstance(each, ast.FunctionDef) and each.name == "forward":
                return "pp_proxy_tensors" in {argument.arg for argument in each.args.args}
        return any(is_divided(base.id) for base in node.bases if isinstance(base, ast.Name))

    assert {name for name in PIPELINE_ARCHITECTURES if not is_divided(name)} == set()
    assert not is_divided("Qwen3NextForCausalLM")


class VllmSources:
    """The classes of vLLM's models and their bases, read as text: to import them takes their kernels.

    By regular expressions, because a syntax tree of all models takes ten times as long.
    """

    _CLASS = re.compile(r"^class (\w+)(?:\(([^)]*)\))?:", re.M)
    _IMPORT = re.compile(r"^ *from (\.*)([\w.]*) import (\([^)]*\)|[^\n]+)", re.M)
    _MODELS = "vllm.model_executor.models"

    def __init__(self, version: str) -> None:
        self._root = published.modules(f"vllm=={version}")
        self._read: dict[str, tuple[dict[str, list[str]], dict[str, list[tuple[str, str]]]]] = {}

    def registered(self) -> dict[str, tuple[str, str]]:
        """Architecture → module and class, without the drafts of speculative decoding."""
        path = self._root / self._MODELS.replace(".", "/") / "registry.py"
        found: dict[str, tuple[str, str]] = {}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Dict):
                continue
            if "SPECULATIVE" in ast.unparse(node.targets[0]):
                continue
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Tuple):
                    module, name = ast.literal_eval(value)[:2]
                    if not module.startswith("vllm."):
                        module = f"{self._MODELS}.{module}"
                    found[str(key.value)] = (module, name)
        return found

    def inherits(self, module: str, name: str, base: str) -> bool:
        """Whether a class has the base; where modules have one for each platform, whether any has."""
        if name == base:
            return True
        classes, imported = self._names(module)
        if name in classes:
            return any(self.inherits(module, each, base) for each in classes[name])
        return any(
            self.inherits(source, original, base) for source, original in imported.get(name, ())
        )

    def _names(self, module: str) -> tuple[dict[str, list[str]], dict[str, list[tuple[str, str]]]]:
        """Class → bases, and imported name → module and name there."""
        if module in self._read:
            return self._read[module]
        path = self._root / module.replace(".", "/")
        package = path.is_dir()
        file = path / "__init__.py" if package else path.with_suffix(".py")
        # What is not of vLLM has no part in it.
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        text = re.sub(r"#.*", "", text)
        classes = {name: re.findall(r"\w+", bases) for name, bases in self._CLASS.findall(text)}
        parts = module.split(".") + ["__init__"] * package
        imported: dict[str, list[tuple[str, str]]] = {}
        for dots, source, names in self._IMPORT.findall(text):
            start = [".".join(parts[: -len(dots)])] if dots else []
            target = ".".join([*start, *([source] if source else [])])
            for name, alias in re.findall(r"(\w+)(?: as (\w+))?", names):
                imported.setdefault(alias or name, []).append((target, name))
        self._read[module] = classes, imported
        return classes, imported


@pytest.mark.parametrize("version", ["0.23.0", "0.33.0"])
def test_vllm_divides_the_layers_of_the_architectures_that_are_not_refused(version: str) -> None:
    """By the base class that vLLM asks itself, for every architecture of its registry."""
    sources = VllmSources(version)
    registered = sources.registered()
    assert len(registered) > 300
    divided = {
        architecture: sources.inherits(module, name, "SupportsPP")
        for architecture, (module, name) in registered.items()
    }
    assert {each for each in divided if divided[each] != supports_pipeline(each)} == set()
    assert len({each for each in divided if not divided[each]}) > 50
