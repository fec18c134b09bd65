"""What the published packages of engines declare: routes, parsers, models and what they support of these."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

import pytest
from packaging.version import Version

from controlplane.adapters.engines.sglang import CROSS_ENCODERS, PIPELINE_ARCHITECTURES
from controlplane.adapters.engines.tool_parsers import MIN_VERSIONS, ParserKind
from controlplane.adapters.engines.vllm import LAST_RELEASES, supports_pipeline
from controlplane.ports.adapter_registry import engine_by_name
from gateway.operations import FORMATS, RouteOperation
from tests.engine import published
from tests.unit.engines.serving_requests import PLAIN, findings


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


def releases(engine: str, *read: str) -> list[Any]:
    """The releases in which the engine got parsers; those that no other test reads take a download each."""
    first = {each for names in MIN_VERSIONS[engine].values() for each in names.values()}
    others = sorted(first - set(read), key=Version)
    return [*read, *(pytest.param(each, marks=pytest.mark.full) for each in others)]


@pytest.mark.parametrize("version", releases("vllm", "0.23.0", "0.30.0", "0.33.0"))
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


@pytest.mark.parametrize("version", releases("sglang", "0.5.14", "0.5.17", "0.5.23"))
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


def test_vllm_has_removed_the_architectures_that_later_releases_refuse() -> None:
    """By the table from which vLLM says itself that it does not serve a model any more."""
    path = "vllm/model_executor/models/registry.py"
    removed = {}
    for version in ("0.23.0", "0.33.0"):
        source = (published.modules(f"vllm=={version}") / path).read_text(encoding="utf-8")
        table = re.search(r"^_PREVIOUSLY_SUPPORTED_MODELS = (\{.+?^\})", source, re.M | re.DOTALL)
        assert table is not None
        removed[version] = ast.literal_eval(table[1])
        assert removed[version].keys() & VllmSources(version).registered().keys() == set()
    assert removed["0.23.0"].items() <= removed["0.33.0"].items()
    # What is not registered may run as the class of transformers; 0.33.0 needs 5.16.1 of it or later.
    models = published.modules("transformers==5.17.0") / "transformers" / "models"
    sources = [path.read_text(encoding="utf-8") for path in models.rglob("modeling_*.py")]
    classes = set(re.findall(r"^class (\w+)\(", "\n".join(sources), re.MULTILINE))
    assert {"MllamaForConditionalGeneration", "LlamaForCausalLM"} <= classes
    assert {
        each: last for each, last in removed["0.33.0"].items() if each not in classes
    } == LAST_RELEASES
    mllama = replace(PLAIN, architecture="MllamaForConditionalGeneration")
    assert findings("vllm", {"engine_version": "0.33.0"}, model=mllama) == {}
    baichuan = replace(PLAIN, architecture="BaichuanForCausalLM")
    for served in ({}, {"engine_version": "0.23.0.post1"}):
        assert findings("vllm", served, model=baichuan) == {}
    assert findings("vllm", {"engine_version": "0.33.0"}, model=baichuan) == {
        "engine_version": "vLLM 0.33.0 does not serve BaichuanForCausalLM; the last version that does is 0.23.0"
    }
