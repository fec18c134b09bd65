"""Runs the steps of ``steps.json`` one after the other; the first that fails ends the process with its code.

No shell reads anything: a step is a list of arguments. The working folder is the one of this file, so that
arguments can be relative and an engine that divides its arguments at spaces never meets one of a folder's name.

::

    {"replicas": [{…}, {…}],               variables of each replica, by NODE_RANK
     "steps": [{"run": [...],              what to run
                "newest": "a-*/done",      a pattern; the newest match's folder is {newest} in arguments
                "resumed": [...],          what to run instead if there is a match
                "folder": "source",        where to run it
                "leader_only": true},      not on other replicas
               {"collect": "merged", "into": "outputs"}]}     files of a model, and nothing else

An argument that is ``$`` and one of the five names of a gang becomes its value, and ``$@`` the arguments of this
program, which may differ between replicas. Scripts that ``NINEFOLD_SET_ENV``
names, divided by colons, set variables of the image's libraries first.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

#: The files of a model; optimizer states, logs and training arguments are not copied.
MODEL_FILES = (
    "*.safetensors",
    "*.safetensors.index.json",
    "config.json",
    "generation_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template*",
    "vocab*",
    "merges.txt",
    "*.model",
    "*processor_config.json",
)
_ADAPTER = "adapter_*"
_NAMES = frozenset({"NNODES", "NODE_RANK", "NPROC_PER_NODE", "MASTER_ADDR", "MASTER_PORT"})
#: The shell's exit code of a process that a signal ended.
_SIGNALLED = 128


class CommandStepFailed(Exception):
    """A step could not be done; the message is the last line of the log."""


class StepRunner:
    """The steps of one replica."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._stopped_by = 0

    def run(self, plan: dict[str, Any], *, rank: int) -> int:
        """The exit code: 0, or that of the first step that failed."""
        os.environ.update(plan["replicas"][rank])
        signal.signal(signal.SIGTERM, self._handle_stop_signal)
        signal.signal(signal.SIGINT, self._handle_stop_signal)
        for step in plan["steps"]:
            if step.get("leader_only") and rank:
                continue
            code = self._run_step(step)
            if code:
                return code
        return 0

    def _run_step(self, step: dict[str, Any]) -> int:
        found = newest_match(step["newest"]) if "newest" in step else None
        if "newest" in step and found is None and "resumed" not in step:
            raise CommandStepFailed(
                f"nothing matches {step['newest']}; the step before left no result"
            )
        if "collect" in step:
            copy_model_files(Path(fill_placeholder(step["collect"], found)), Path(step["into"]))
            return 0
        arguments = step["resumed"] if found is not None and "resumed" in step else step["run"]
        arguments = [
            filled
            for argument in arguments
            for filled in (
                sys.argv[1:] if argument == "$@" else [fill_placeholder(argument, found)]
            )
        ]
        return self._run_command(arguments, folder=step.get("folder", "."))

    def _run_command(self, arguments: list[str], *, folder: str) -> int:
        if self._stopped_by:
            return _SIGNALLED + self._stopped_by
        print("step:", " ".join(arguments), flush=True)
        try:
            self._child = subprocess.Popen(arguments, cwd=folder)
        except OSError as error:
            raise CommandStepFailed(f"{arguments[0]} cannot be run: {error}") from error
        if self._stopped_by:
            self._child.send_signal(self._stopped_by)
        code = self._child.wait()
        if self._stopped_by:
            return _SIGNALLED + self._stopped_by
        return code if code >= 0 else _SIGNALLED - code

    def _handle_stop_signal(self, number: int, _frame: object) -> None:
        self._stopped_by = number
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)


def newest_match(pattern: str) -> Path | None:
    """The folder of the match with the greatest number in its name; None if nothing matches."""
    folders = [match.parent for match in Path().glob(pattern)]
    return max(folders, key=_numbers_in_name, default=None)


def fill_placeholder(text: str, found: Path | None) -> str:
    if text[:1] == "$" and text[1:] in _NAMES:
        return os.environ[text[1:]]
    return text.replace("{newest}", str(found)) if found is not None else text


def environment_after_script(script: str) -> dict[str, str]:
    """The environment after a script of the image; as it is now where the image has no such script."""
    if not Path(script).is_file():
        return dict(os.environ)
    command = ["bash", "-c", 'source "$0" >/dev/null && env -0', script]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    pairs = (entry.partition(b"=") for entry in done.stdout.split(b"\0") if entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def copy_model_files(source: Path, target: Path) -> None:
    """Copy the files of a model.

    :raises CommandStepFailed: if there is no model, or only an adapter.
    """
    names = [
        path for path in sorted(source.glob("*")) if path.is_file() and _is_model_file(path.name)
    ]
    if not any(path.suffix == ".safetensors" for path in names):
        raise CommandStepFailed(f"{source} has no *.safetensors file of a whole model")
    if not (source / "config.json").is_file():
        raise CommandStepFailed(f"{source} has no config.json")
    target.mkdir(parents=True, exist_ok=True)
    for path in names:
        shutil.copyfile(path, target / path.name)
    print(f"{len(names)} files of the model are in {target}", flush=True)


def _is_model_file(name: str) -> bool:
    return any(fnmatch(name, each) for each in MODEL_FILES) and not fnmatch(name, _ADAPTER)


def _numbers_in_name(folder: Path) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", folder.name))


def main() -> int:
    os.chdir(Path(__file__).resolve().parent)
    plan = json.loads(Path("steps.json").read_text(encoding="utf-8"))
    try:
        for script in filter(None, os.environ.get("NINEFOLD_SET_ENV", "").split(":")):
            os.environ.update(environment_after_script(script))
        return StepRunner().run(plan, rank=int(os.environ.get("NODE_RANK", "0")))
    except (CommandStepFailed, subprocess.CalledProcessError) as failure:
        print(f"failed: {failure}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
