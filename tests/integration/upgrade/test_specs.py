"""Spec files that the earlier version wrote for its runtime, read by the present one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ninefold_runtime import specs
from ninefold_runtime.burnin.specs import BurninSpec
from tests.integration.upgrade.recorded import FIXTURE, ROOT, read

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_KINDS: Mapping[str, type[DataclassInstance]] = {
    "burnin": BurninSpec,
    "evaluate": specs.EvaluateSpec,
    "finetune": specs.FinetuneSpec,
    "quantize": specs.QuantizeSpec,
    "script": specs.ScriptSpec,
    "serve": specs.ServeSpec,
}


def test_every_spec_is_read_with_all_its_values() -> None:
    files = sorted((FIXTURE / "specs").glob("*.json"))
    assert [file.stem for file in files] == sorted(_KINDS)
    for file in files:
        spec = specs.load_spec(file, _KINDS[file.stem])
        # Whatever a field is called now, its value arrives.
        assert not Counter(_values(read(f"specs/{file.name}"))) - Counter(_values(asdict(spec)))


def _values(content: Any) -> Iterator[str]:
    """Every value below, as JSON; whole numbers as the numbers that they are read as."""
    if isinstance(content, dict):
        for value in content.values():
            yield from _values(value)
    elif isinstance(content, int) and not isinstance(content, bool):
        yield json.dumps(float(content))
    else:
        yield json.dumps(content)


def test_a_script_runs_by_the_command_line_of_its_launch(tmp_path: Path) -> None:
    for name in ("work", "inputs"):
        (tmp_path / name).mkdir()
    spec = FIXTURE / "specs" / "script.json"
    done = subprocess.run(
        [sys.executable, "-m", "ninefold_runtime", "script", "--spec", str(spec)],
        env={
            "PYTHONPATH": str(ROOT / "platform"),
            "NINEFOLD_WORK": str(tmp_path / "work"),
            "NINEFOLD_INPUTS": str(tmp_path / "inputs"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "work" / "outputs" / "count.txt").read_text() == "42"
