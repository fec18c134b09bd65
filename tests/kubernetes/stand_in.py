"""Stand-in for the programs of an engine's image: checks the rules of the image, then imitates the program.

It is part of the images that ``stand_in_images`` describes and uses the standard library only. A violated rule
ends the process with the exit code 64 and a line with the rule's name. The variable ``STAND_IN_CHANGED`` names one
rule whose value is replaced by its ``changed`` value, so that a test can show that the rule is enforced.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

RULES = Path("/stand-in/rules.json")
CHANGED = "STAND_IN_CHANGED"
_VIOLATED = 64
#: What launchers of distributed training read from the environment and pass on as arguments.
_GANG = ("NNODES", "NODE_RANK", "NPROC_PER_NODE", "MASTER_ADDR", "MASTER_PORT")
_PLACEHOLDER = re.compile(r"\{([^}]+)\}")


class RuleViolation(Exception):
    """The process does not satisfy a rule; the message has the value that was found."""


def main(program: str, arguments: Sequence[str]) -> int:
    """The exit code of the program, or 64 if a rule is violated."""
    for rule in _rules(program):
        try:
            _CHECKS[rule["kind"]](rule["value"], arguments)
        except (RuleViolation, OSError, LookupError, ValueError) as error:
            found = f"{type(error).__name__}: {error}"
            print(f"{program} violates rule {rule['name']}: {found}", file=sys.stderr, flush=True)
            return _VIOLATED
    return _PROGRAMS[program](list(arguments))


def _rules(program: str) -> Iterator[Mapping[str, Any]]:
    """The rules of the program, with the changed value for the rule that ``STAND_IN_CHANGED`` names."""
    for rule in json.loads(RULES.read_text(encoding="utf-8")):
        if rule["program"] == program:
            value = rule["changed"] if os.environ.get(CHANGED) == rule["name"] else rule["value"]
            yield {**rule, "value": value}


# -- Checks, one for each kind of rule: they take the rule's value and the program's arguments --


def _account(pattern: str, _arguments: Sequence[str]) -> None:
    """``getpass.getuser`` returns a name that matches the pattern."""
    _match("getpass.getuser()", getpass.getuser(), pattern)


def _group(number: int, _arguments: Sequence[str]) -> None:
    """The process belongs to the group of that number."""
    groups = {*os.getgroups(), os.getegid()}
    if number not in groups:
        raise RuleViolation(f"the groups of the process are {sorted(groups)}, without {number}")


def _writable(folder: str, arguments: Sequence[str]) -> None:
    """A file can be created in the folder, which is created if it does not exist."""
    path = _path(folder, arguments)
    path.mkdir(parents=True, exist_ok=True)
    probe = path / f".stand-in-{os.getpid()}"
    probe.write_text("x", encoding="utf-8")
    probe.unlink()


def _readable(file: str, arguments: Sequence[str]) -> None:
    """The file exists and can be read."""
    _path(file, arguments).read_bytes()


def _variables(patterns: Mapping[str, str], _arguments: Sequence[str]) -> None:
    """Each variable matches its pattern; a variable that is not set is empty."""
    for name, pattern in patterns.items():
        _match(name, os.environ.get(name, ""), pattern)


def _options(patterns: Mapping[str, str], arguments: Sequence[str]) -> None:
    """The value of each option matches its pattern; the name ``""`` is the first argument."""
    for name, pattern in patterns.items():
        _match(name or "the command", _option(arguments, name) if name else arguments[0], pattern)


def _without(text: str, arguments: Sequence[str]) -> None:
    """No argument contains the text."""
    for argument in arguments:
        if text in argument:
            raise RuleViolation(f"the argument {argument!r} contains {text!r}")


def _hidden(name: str, arguments: Sequence[str]) -> None:
    """The value of a variable or option is not among the arguments of any process of the pod."""
    secret = _option(arguments, name) if name.startswith("--") else os.environ[name]
    for command_line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            shown = command_line.read_bytes()
        except OSError:
            continue
        if secret.encode() in shown:
            raise RuleViolation(f"{command_line} contains the value of {name}")


def _private(expected: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Each file has the octal mode and belongs to the account of the process."""
    for file, mode in expected.items():
        path = _path(file, arguments)
        _match(f"the mode of {path}", f"{stat.S_IMODE(path.stat().st_mode):o}", mode)
        _check_owner(path)


def _inputs_owner(waiver: Mapping[str, str], arguments: Sequence[str]) -> None:
    """The weights belong to the account of the process, unless each variable has the value given."""
    if all(os.environ.get(name) == value for name, value in waiver.items()):
        return
    weights = Path(_setting(_configuration(arguments), _WEIGHTS))
    for path in (weights, weights / "config.json"):
        _check_owner(path)


def _settings(patterns: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Each value of the configuration file, by its dotted path, matches its pattern."""
    configuration = _configuration(arguments)
    for path, pattern in patterns.items():
        _match(path, str(_setting(configuration, path)), pattern)


def _shared_memory(least: int, _arguments: Sequence[str]) -> None:
    """``/dev/shm`` has at least so many bytes."""
    found = os.statvfs("/dev/shm")
    if found.f_blocks * found.f_frsize < least:
        raise RuleViolation(f"/dev/shm has {found.f_blocks * found.f_frsize} bytes, not {least}")


def _output(_name: str, _arguments: Sequence[str]) -> None:
    """The program that merges the model writes its weights under this name; later steps depend on it."""


_CHECKS: Mapping[str, Callable[[Any, Sequence[str]], None]] = {
    "account": _account,
    "group": _group,
    "hidden": _hidden,
    "inputs_owner": _inputs_owner,
    "options": _options,
    "output": _output,
    "private": _private,
    "readable": _readable,
    "settings": _settings,
    "shared_memory": _shared_memory,
    "variables": _variables,
    "without": _without,
    "writable": _writable,
}


# -- Imitations of the programs --


def _server(arguments: list[str]) -> int:
    """vLLM, vLLM-Omni and SGLang: one port, which answers ``/health``; none for the headless processes of vLLM."""
    if "--nnodes" in arguments:
        place = [_option(arguments, name) for name in ("--node-rank", "--nnodes")]
        address = arguments[_index_of(arguments, "--master-addr", "--dist-init-addr") + 1]
        print(f"process {place[0]} of {place[1]} meets the others at {address}", flush=True)
    if "--headless" in arguments:
        threading.Event().wait()
    return _serve((_option(arguments, "--host"), int(_option(arguments, "--port"))), "/health")


def _tei(arguments: list[str]) -> int:
    """Text Embeddings Inference: metrics have a port of their own."""
    address = _option(arguments, "--hostname")
    metrics = (address, int(_option(arguments, "--prometheus-port")))
    exporter = ThreadingHTTPServer(metrics, _handler("/metrics"))
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    return _serve((address, int(_option(arguments, "--port"))), "/health")


def _xllm(arguments: list[str]) -> int:
    """One process of each card; the first answers requests, each on its own port of every address."""
    is_first = _option(arguments, "--node_rank") == "0"
    return _serve(("", int(_option(arguments, "--port"))), "/health" if is_first else "")


def _mindie(arguments: list[str]) -> int:
    """Health is answered at the management port; the HTTP port knows it only if both are the same."""
    server = _configuration(arguments)["ServerConfig"]
    address = os.environ.get("MIES_CONTAINER_IP") or server["ipAddress"]
    if server["port"] != server["managementPort"]:
        business = ThreadingHTTPServer((address, server["port"]), _handler(""))
        threading.Thread(target=business.serve_forever, daemon=True).start()
    return _serve((server["managementIpAddress"], server["managementPort"]), "/v2/health/ready")


def _torchrun(arguments: list[str]) -> int:
    """One process, of rank 0, in place of all processes of the node."""
    options: dict[str, str] = {}
    while arguments[0].startswith("--"):
        name, value, *arguments = arguments
        options[name] = value
    processes = int(options["--nproc_per_node"])
    environment = {
        "RANK": str(int(options["--node_rank"]) * processes),
        "LOCAL_RANK": "0",
        "WORLD_SIZE": str(int(options["--nnodes"]) * processes),
        "MASTER_ADDR": options["--master_addr"],
        "MASTER_PORT": options["--master_port"],
    }
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=False, env=os.environ | environment).returncode


def _llamafactory(arguments: list[str]) -> int:
    command, settings = arguments[0], _configuration(arguments)
    if command == "export":
        _read(Path(settings["adapter_name_or_path"]) / "adapter_model.safetensors")
        return _write_model(Path(settings["export_dir"]), program="llamafactory-cli")
    if "RANK" not in os.environ:
        # The launcher formats one text and splits it at white space.
        launched = ["torchrun", *_gang_options(), sys.argv[0], *arguments]
        return subprocess.run(" ".join(launched).split(), check=False).returncode
    folder = Path(settings["dataset_dir"])
    for dataset in json.loads((folder / "dataset_info.json").read_text(encoding="utf-8")).values():
        _read(folder / dataset["file_name"])
    return _write_adapter(Path(settings["output_dir"]))


def _swift(arguments: list[str]) -> int:
    if arguments[0] == "export":
        _read(Path(_option(arguments, "--adapters")) / "adapter_model.safetensors")
        return _write_model(Path(_option(arguments, "--output_dir")), program="swift")
    if "RANK" in os.environ:
        for option in ("--dataset", "--val_dataset"):
            if option in arguments:
                _read(Path(_option(arguments, option)))
        return _write_adapter(Path(_option(arguments, "--output_dir")) / "checkpoint-1")
    command, _, *rest = arguments
    for name, value in _configuration(arguments).items():
        values = value if isinstance(value, list) else [value]
        rest += [f"--{name}", *map(str, values)]
    launcher = [sys.executable, "-m", "torch.distributed.run", *_gang_options()]
    return subprocess.run([*launcher, sys.argv[0], command, *rest], check=False).returncode


def _mindspeed_train(arguments: list[str]) -> int:
    """Compile helpers, convert rows and weights, and write a checkpoint."""
    source = Path(sys.argv[0]).resolve().parent
    (source / "megatron/core/datasets/helpers_cpp.so").write_text("", encoding="utf-8")
    prefix = _option(arguments, "--output-prefix")
    rows = ["--input", _option(arguments, "--data-path"), "--output-prefix", prefix]
    preprocess = [sys.executable, str(Path("preprocess_data.py").absolute()), *rows]
    subprocess.run(preprocess, check=True)
    _read(Path(f"{prefix}.idx"))
    for option in ("--mg-save-dir", "--save"):
        folder = Path(_option(arguments, option))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "latest_checkpointed_iteration.txt").write_text("1", encoding="utf-8")
    return 0


def _mindspeed_preprocess(arguments: list[str]) -> int:
    _read(Path(_option(arguments, "--input")))
    prefix = Path(_option(arguments, "--output-prefix"))
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for ending in ("idx", "bin"):
        Path(f"{prefix}.{ending}").write_text("", encoding="utf-8")
    return 0


def _mindspeed_convert(arguments: list[str]) -> int:
    for option in ("--load-dir", "--lora-load"):
        _read(Path(_option(arguments, option)) / "latest_checkpointed_iteration.txt")
    return _write_model(Path(_option(arguments, "--save-dir")), program="convert_ckpt_v2.py")


_PROGRAMS: Mapping[str, Callable[[list[str]], int]] = {
    "convert_ckpt_v2.py": _mindspeed_convert,
    "llamafactory-cli": _llamafactory,
    "mindieservice_daemon": _mindie,
    "posttrain_gpt.py": _mindspeed_train,
    "preprocess_data.py": _mindspeed_preprocess,
    "sglang.launch_server": _server,
    "swift": _swift,
    "tei": _tei,
    "torchrun": _torchrun,
    "vllm": _server,
    "xllm": _xllm,
}


# -- Shared by checks and programs --

#: Path of the setting with the folder of weights, in MindIE's configuration.
_WEIGHTS = "BackendConfig.ModelDeployConfig.ModelConfig.0.modelWeightPath"


def _serve(address: tuple[str, int], path: str) -> int:
    ThreadingHTTPServer(address, _handler(path)).serve_forever()
    return 0


def _handler(path: str) -> type[BaseHTTPRequestHandler]:
    """Answers 200 at the path and 404 at every other."""

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == path else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Requests of probes are not logged."""

    return Health


def _gang_options() -> list[str]:
    return [word for name in _GANG for word in (f"--{name.lower()}", os.environ[name])]


def _configuration(arguments: Sequence[str]) -> Any:
    """The configuration file of MindIE, or the first argument that is JSON or one ``name: value`` a line."""
    name = os.environ.get("MIES_CONFIG_JSON_PATH") or next(
        each for each in arguments if each.endswith((".json", ".yaml"))
    )
    text = Path(name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        return json.loads(text)
    pairs = (line.partition(": ") for line in text.splitlines())
    return {key: json.loads(value) for key, _, value in pairs}


def _setting(configuration: Any, path: str) -> Any:
    for part in path.split("."):
        configuration = configuration[int(part) if part.isdigit() else part]
    return configuration


def _path(template: str, arguments: Sequence[str]) -> Path:
    """``{HOME}`` is a variable, ``{--save}`` an option, ``{1}`` an argument, ``{program}`` its folder."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name == "program":
            return str(Path(sys.argv[0]).resolve().parent)
        if name.startswith("--"):
            return _option(arguments, name)
        return arguments[int(name)] if name.isdigit() else os.environ[name]

    return Path(_PLACEHOLDER.sub(value, template))


def _option(arguments: Sequence[str], name: str) -> str:
    """The value after ``--name=``, or the next argument."""
    for argument in arguments:
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    try:
        return arguments[arguments.index(name) + 1]
    except (ValueError, IndexError):
        raise RuleViolation(f"the option {name} is missing") from None


def _index_of(arguments: Sequence[str], *names: str) -> int:
    found = [arguments.index(name) for name in names if name in arguments]
    if not found:
        raise RuleViolation(f"none of the options {', '.join(names)} is given")
    return found[0]


def _match(what: str, found: str, pattern: str) -> None:
    if not re.fullmatch(pattern, found):
        raise RuleViolation(f"{what} is {found!r}, which does not match {pattern!r}")


def _check_owner(path: Path) -> None:
    owner = path.stat().st_uid
    if owner != os.getuid():
        raise RuleViolation(f"{path} belongs to {owner}, and the process runs as {os.getuid()}")


def _read(path: Path) -> None:
    path.read_bytes()


def _write_adapter(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("adapter_model.safetensors", "adapter_config.json", "trainer_state.json"):
        (folder / name).write_text("{}", encoding="utf-8")
    return 0


def _write_model(folder: Path, *, program: str) -> int:
    rule = next(rule for rule in _rules(program) if rule["kind"] == "output")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json", rule["value"]):
        (folder / name).write_text("{}", encoding="utf-8")
    print(f"{program} wrote {rule['value']}, as rule {rule['name']} says", flush=True)
    return 0
