"""``python -m ninefold_runtime.burnin SPEC``: test the cards, say what was found, end with 0 if all is well."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import time
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ninefold_runtime import specs
from ninefold_runtime.burnin import card_processes, outcomes
from ninefold_runtime.burnin.specs import BurninSpec
from ninefold_runtime.exit_codes import ExitCode, InvalidTaskInput, StopSignalHandler, task_error_of
from ninefold_runtime.report import ReportAddress, Reporter

#: Prefix of the result on one line of the log: for a burn-in started without a report address.
RESULT = "RESULT "


def main(arguments: list[str] | None = None) -> int:
    """0 if every card passed, ``ExitCode.UNFIT`` if one did not; else the code of the fault."""
    options = _argument_parser().parse_args(arguments)
    work = Path(os.environ.get("NINEFOLD_WORK") or ".").absolute()
    try:
        spec = specs.load_spec(options.spec, BurninSpec)
        spec.check()
        _require_torch()
        if options.card is None:
            return _test_all_cards(spec, path=options.spec, work=work)
        return _test_one_card(spec, options)
    except Exception as error:  # noqa: BLE001 - the last line of defence: it decides the exit code
        fault = task_error_of(error, work=work)
        if fault is None:
            traceback.print_exc()
            print(f"burn-in failed: {type(error).__name__}: {error}", file=sys.stderr)
            return ExitCode.FAILED
        print(f"burn-in: {fault}", file=sys.stderr, flush=True)
        return fault.code


def _argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ninefold_runtime.burnin")
    parser.add_argument("spec", type=Path)
    alone = parser.add_argument_group("what the process of one card is told")
    alone.add_argument("--card", type=int)
    alone.add_argument("--meeting", type=Path)
    alone.add_argument("--out", type=Path)
    return parser


def _require_torch() -> None:
    """:raises InvalidTaskInput: if there is none."""
    if importlib.util.find_spec("torch") is None:
        raise InvalidTaskInput(
            f"{sys.executable} has no torch; run the burn-in in the environment or image of an engine that "
            "has the build for these cards"
        )


def _test_all_cards(spec: BurninSpec, *, path: Path, work: Path) -> int:
    StopSignalHandler().listen()
    folder, scratch = work / "result", work / "cards"
    for each in (folder, scratch):
        each.mkdir(parents=True, exist_ok=True)
    with Reporter(ReportAddress.from_environment()) as reporter:
        began = time.monotonic()
        reporter.message(f"burn-in of {spec.cards} × {spec.device}, {spec.seconds} s")
        found = card_processes.run_card_processes(spec, path=path, folder=scratch)
        about = {
            "seconds": round(time.monotonic() - began, 1),
            "node": platform.node(),
            "torch": version("torch"),
        }
        result = outcomes.burnin_result(found, device=spec.device, about=about)
        for outcome in found:
            reporter.message(_format_burnin_outcome(outcome))
        text = json.dumps(result, ensure_ascii=False, indent=2, allow_nan=False)
        (folder / "burnin.json").write_text(f"{text}\n", encoding="utf-8")
        reporter.message(RESULT + json.dumps(result, ensure_ascii=False, allow_nan=False))
        reporter.deliver(folder, kind="report", metrics=_worst_value_per_test(found))
    return ExitCode.FINISHED if result["passed"] else ExitCode.UNFIT


def _test_one_card(spec: BurninSpec, options: argparse.Namespace) -> int:
    from ninefold_runtime.burnin import card_tests

    card_tests.run_card_tests(spec, index=options.card, meeting=options.meeting, out=options.out)
    return ExitCode.FINISHED


def _worst_value_per_test(found: list[outcomes.BurninOutcome]) -> dict[str, Any]:
    """The worst value of each test."""
    metrics: dict[str, float] = {}
    for outcome in found:
        if outcome.measured is not None:
            worst = metrics.get(outcome.test, outcome.measured)
            metrics[outcome.test] = min(worst, outcome.measured)
    return metrics


def _format_burnin_outcome(outcome: outcomes.BurninOutcome) -> str:
    measured = "" if outcome.measured is None else f"{outcome.measured:.4g} {outcome.unit}, "
    return f"card {outcome.card}, {outcome.test} {outcome.verdict}: {measured}{outcome.message}"


if __name__ == "__main__":
    sys.exit(main())
