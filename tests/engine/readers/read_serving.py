"""What vLLM's, SGLang's and vLLM-Omni's parsers make of command lines: a JSON list in, a JSON list out.

``read_serving.py vllm|sglang|vllm_omni``; an entry on stdin is ``[ARGUMENT…]``. What the engines import beside
torch and transformers (HTTP clients, kernels, image libraries) has nothing to do with arguments: stand-ins take
their place. Parser, defaults, choices and types are the engine's.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import io
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: What the engines import on the way to their arguments and what has no part in them.
_STOOD_IN_FOR = frozenset(
    [
        "IPython",
        "PIL",
        "aiohttp",
        "cachetools",
        "cbor2",
        "cloudpickle",
        "cohere_melody",
        "cpuinfo",
        "fastapi",
        "gguf",
        "ijson",
        "mistral_common",
        "openai",
        "openai_harmony",
        "orjson",
        "partial_json_parser",
        "prometheus_client",
        "pybase64",
        "requests",
        "starlette",
        "torchvision",
        "urllib3",
        "uvloop",
        "llguidance",
        "xgrammar",
        "zmq",
    ]
)


class _StandInType(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn

    def __or__(cls, other: Any) -> Any:
        return cls

    def __ror__(cls, other: Any) -> Any:
        return cls


class StandIn(metaclass=_StandInType):
    """A name of a package that is not installed: a class, a decorator or a function, whatever is made of it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) else StandIn()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()

    def __class_getitem__(cls, key: Any) -> Any:
        return cls

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return importlib.import_module("pydantic_core").core_schema.any_schema()


class _StandInModule(types.ModuleType):
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn


#: By the engine's name: kernels, where it imports them so early; torch looks for them too.
_KERNELS = {
    "vllm": frozenset({"einops"}),
    "sglang": frozenset({"triton"}),
    "vllm_omni": frozenset(
        {
            "av",
            "cache_dit",
            "diffusers",
            "einops",
            "janus",
            "msgpack",
            "omegaconf",
            "prettytable",
            "soundfile",
            "soxr",
            "websockets",
        }
    ),
}


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the packages above, whether or not they are installed."""

    def __init__(self, packages: frozenset[str]) -> None:
        self._packages = packages

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname.partition(".")[0] not in self._packages:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = _StandInModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing in it."""


def _vllm_arguments() -> Any:
    try:
        return importlib.import_module("vllm.entrypoints.common.cli_args")
    except ModuleNotFoundError:
        return importlib.import_module("vllm.entrypoints.openai.cli_args")


def vllm_parser() -> Any:
    """That of ``vllm serve``, told that it is on a processor: without a device it makes no parser."""
    platforms = importlib.import_module("vllm.platforms")
    vars(platforms)["_current_platform"] = importlib.import_module(
        "vllm.platforms.cpu"
    ).CpuPlatform()
    parsing = importlib.import_module("vllm.utils.argparse_utils")
    return _vllm_arguments().make_arg_parser(parsing.FlexibleArgumentParser(prog="vllm serve"))


def vllm_omni_parser() -> Any:
    """That of ``vllm serve --omni``; the server, which imports every model, has a stand-in."""
    platforms = importlib.import_module("vllm.platforms")
    vars(platforms)["_current_platform"] = importlib.import_module(
        "vllm.platforms.cpu"
    ).CpuPlatform()
    for package in ("vllm_omni", "vllm_omni.entrypoints"):
        bare = types.ModuleType(package)
        bare.__path__ = [
            f"{each}/{package.replace('.', '/')}" for each in sys.path if "vllm-omni" in each
        ]
        sys.modules[package] = bare
    for name in ("vllm_omni.entrypoints.openai", "vllm_omni.entrypoints.openai.api_server"):
        stand_in = _StandInModule(name)
        stand_in.__path__ = []
        sys.modules[name] = stand_in
    command = importlib.import_module("vllm_omni.entrypoints.cli.serve").OmniServeCommand()
    parser = importlib.import_module("vllm_omni.utils.tracking_parser").TrackingArgumentParser()
    return command.subparser_init(parser.add_subparsers())


def sglang_parser() -> Any:
    """That of ``python -m sglang.launch_server``."""
    # SGLang adds configurations that the installed transformers has by now.
    known = importlib.import_module("transformers").AutoConfig
    register = known.register
    known.register = lambda name, config, exist_ok=True: register(name, config, exist_ok=True)
    arguments = importlib.import_module("sglang.srt.server_args")
    parser = argparse.ArgumentParser(prog="sglang.launch_server")
    arguments.ServerArgs.add_cli_args(parser)
    return parser


def vllm_parsers(arguments: argparse.Namespace) -> dict[str, str]:
    """The classes of the named parsers of tool calls and reasoning, as the server finds and imports them.

    :raises KeyError: if vLLM has no parser of that name.
    """
    found = {}
    if arguments.tool_call_parser:
        tools = importlib.import_module("vllm.tool_parsers").ToolParserManager
        found["tools"] = tools.get_tool_parser(arguments.tool_call_parser)
    if arguments.reasoning_parser:
        reasoning = importlib.import_module("vllm.reasoning").ReasoningParserManager
        found["reasoning"] = reasoning.get_reasoning_parser(arguments.reasoning_parser)
    return {f"derived_{kind}_parser": each.__name__ for kind, each in found.items()}


def check_vllm(arguments: argparse.Namespace) -> dict[str, Any]:
    """What ``vllm serve`` looks at before it loads anything.

    Where the model has a ``config.json``, all of the engine's configuration is created, with vLLM's own checks of
    model, task, parallelism and cache; what vLLM derives from the model is returned.
    """
    parsers = vllm_parsers(arguments)
    _vllm_arguments().validate_parsed_serve_args(
        argparse.Namespace(**vars(arguments), subparser="serve")
    )
    # Offline it would look for the model's files, and there are none.
    vars(importlib.import_module("huggingface_hub.constants"))["HF_HUB_OFFLINE"] = False
    arguments.model = arguments.model_tag
    engine = importlib.import_module("vllm.engine.arg_utils").AsyncEngineArgs
    checked = engine.from_cli_args(arguments)
    if not Path(arguments.model, "config.json").exists():
        return parsers
    # It would import a model's code in another process, which has no stand-ins.
    registry = importlib.import_module("vllm.model_executor.models.registry")
    vars(registry)["_run_in_subprocess"] = lambda inspect: inspect()
    created = checked.create_engine_config(headless=arguments.headless)
    return {
        **parsers,
        "derived_copy": created.parallel_config.data_parallel_rank,
        "derived_nodes_of_a_copy": created.parallel_config.nnodes_within_dp,
        "derived_architecture": created.model_config.architecture,
        "derived_runner": created.model_config.runner_type,
        "derived_task": created.model_config.convert_type,
        "derived_prefix_caching": created.cache_config.enable_prefix_caching,
    }


#: What SGLang settles by the card's memory and the model, and then compares with the arguments.
_SETTLED = {"chunked_prefill_size": 8192, "page_size": 1, "device": "cuda"}


def check_sglang(arguments: argparse.Namespace) -> None:
    """``check_server_args``, which SGLang runs on its arguments once these are settled."""
    kind = importlib.import_module("sglang.srt.server_args").ServerArgs
    settled = {**vars(arguments), "disable_overlap_schedule": arguments.pp_size > 1}
    for name, value in {**_SETTLED, "served_model_name": arguments.model_path}.items():
        if settled.get(name) is None:
            settled[name] = value
    checked = object.__new__(kind) if not hasattr(kind, "__struct_fields__") else kind("model")
    for name, value in settled.items():
        setattr(checked, name, value)
    checked.check_server_args()


def parsed(
    parser: Any,
    command: list[str],
    check: Callable[[argparse.Namespace], dict[str, Any] | None],
) -> Any:
    """The values of a command line, or ``refused`` with the engine's own message."""
    message = io.StringIO()
    try:
        with contextlib.redirect_stderr(message):
            arguments = parser.parse_args(command)
            values = dict(vars(arguments))
            values |= check(arguments) or {}
    except (
        SystemExit,
        ValueError,
        TypeError,
        AssertionError,
        NotImplementedError,
        KeyError,
        ImportError,
    ) as refusal:
        # argparse writes its message and exits.
        return {"refused": f"{' '.join(command)}: {message.getvalue()[-2000:]} {refusal}"}
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


def main() -> None:
    engine = sys.argv[1]
    sys.meta_path.insert(0, _StandIns(_STOOD_IN_FOR | _KERNELS[engine]))
    make, check = {
        "vllm": (vllm_parser, check_vllm),
        "sglang": (sglang_parser, check_sglang),
        # What it checks besides are files of the model, which are not there.
        "vllm_omni": (vllm_omni_parser, lambda _arguments: None),
    }[engine]
    parser = make()
    answers = [parsed(parser, command, check) for command in json.load(sys.stdin)]
    sys.stdout.write(f"\n{json.dumps(answers)}")


if __name__ == "__main__":
    main()
