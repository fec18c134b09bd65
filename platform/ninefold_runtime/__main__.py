"""``python -m ninefold_runtime finetune | evaluate | quantize | script | serve | tiny-model``."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from ninefold_runtime import specs
from ninefold_runtime.exit_codes import ExitCode, InvalidTaskInput, StopSignalHandler, task_error_of
from ninefold_runtime.report import ReportAddress, Reporter
from ninefold_runtime.task_folders import TaskFolders


def main(arguments: list[str] | None = None) -> int:
    """The exit code of the task; a fault is one line on standard error."""
    options = _argument_parser().parse_args(arguments)
    work = Path()
    try:
        if options.task == "tiny-model":
            return _run_tiny_model(options)
        folders = TaskFolders.from_environment()
        work = folders.work
        return _TASKS[options.task](options, folders)
    except Exception as error:  # noqa: BLE001 - the last line of defence: it decides the exit code
        fault = task_error_of(error, work=work)
        if fault is None:
            traceback.print_exc()
            print(f"{options.task} failed: {type(error).__name__}: {error}", file=sys.stderr)
            return ExitCode.FAILED
        print(f"{options.task}: {fault}", file=sys.stderr, flush=True)
        return fault.code


def _argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ninefold_runtime")
    tasks = parser.add_subparsers(dest="task", required=True)
    for name in _TASKS:
        task = tasks.add_parser(name)
        task.add_argument("--spec", type=Path, required=True)
        if name == "serve":
            task.add_argument("--host", default=os.environ.get("NINEFOLD_LISTEN", "127.0.0.1"))
            task.add_argument("--port", type=int, required=True)
    tiny = tasks.add_parser("tiny-model", help="write a small model that can be trained anywhere")
    tiny.add_argument("name")
    tiny.add_argument(
        "--out", type=Path, help="the model's folder; by default the outputs of the job"
    )
    return parser


def _run_finetune(options: argparse.Namespace, folders: TaskFolders) -> int:
    spec = specs.load_spec(options.spec, specs.FinetuneSpec)
    stop = StopSignalHandler()
    stop.listen()
    with Reporter(ReportAddress.from_environment()) as reporter:
        reporter.message("loading the engine")
        from ninefold_runtime.finetune import finetune

        finetune(spec=spec, folders=folders, reporter=reporter, stop=stop)
    return ExitCode.FINISHED


def _run_evaluate(options: argparse.Namespace, folders: TaskFolders) -> int:
    spec = specs.load_spec(options.spec, specs.EvaluateSpec)
    StopSignalHandler().listen()
    with Reporter(ReportAddress.from_environment()) as reporter:
        reporter.message("loading the engine")
        from ninefold_runtime.evaluate import evaluate

        evaluate(spec=spec, folders=folders, reporter=reporter)
    return ExitCode.FINISHED


def _run_quantize(options: argparse.Namespace, folders: TaskFolders) -> int:
    spec = specs.load_spec(options.spec, specs.QuantizeSpec)
    StopSignalHandler().listen()
    with Reporter(ReportAddress.from_environment()) as reporter:
        reporter.message("loading the engine")
        from ninefold_runtime.quantize import quantize

        quantize(spec=spec, folders=folders, reporter=reporter)
    return ExitCode.FINISHED


def _run_user_script(options: argparse.Namespace, folders: TaskFolders) -> int:
    from ninefold_runtime.user_scripts import run_script

    spec = specs.load_spec(options.spec, specs.ScriptSpec)
    stop = StopSignalHandler()
    stop.listen()
    with Reporter(ReportAddress.from_environment()) as reporter:
        return run_script(spec=spec, folders=folders, reporter=reporter, stop=stop)


def _run_serve(options: argparse.Namespace, folders: TaskFolders) -> int:
    from ninefold_runtime.serving.server import serve_model

    spec = specs.load_spec(options.spec, specs.ServeSpec)
    serve_model(spec=spec, folders=folders, host=options.host, port=options.port)
    return ExitCode.FINISHED


def _run_tiny_model(options: argparse.Namespace) -> int:
    out = options.out or os.environ.get("NINEFOLD_OUTPUTS")
    if not out:
        raise InvalidTaskInput(
            "say where to write the model: --out FOLDER, or set NINEFOLD_OUTPUTS"
        )
    from ninefold_runtime.samples import tiny_models

    tiny_models.build_model(options.name, folder=Path(out))
    print(f"wrote {options.name}")
    return ExitCode.FINISHED


_TASKS: dict[str, Callable[[argparse.Namespace, TaskFolders], int]] = {
    "finetune": _run_finetune,
    "evaluate": _run_evaluate,
    "quantize": _run_quantize,
    "script": _run_user_script,
    "serve": _run_serve,
}


if __name__ == "__main__":
    sys.exit(main())
