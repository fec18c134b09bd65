"""The engine's Python, a tiny model, and runs of the runtime as a process."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import ninefold_runtime
from controlplane.adapters.engines.transformers import TransformersEngine
from controlplane.adapters.engines.transformers.engine import runtime_spec
from controlplane.ports.engines import EngineTask
from ninefold_runtime.samples import tiny_models
from tests import sample_addresses as addresses
from tests.engine.preloaded_runtime import ForkedRuntime, start_runtime

PROJECT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 600.0

#: Small and quick; each test changes what it is about.
SMALL: Mapping[str, Any] = {
    "learning_rate": 2e-3,
    "batch_size": 8,
    "max_length": 128,
    "log_every_steps": 5,
    "checkpoint_every_steps": 10,
    "validation_split": None,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="module", autouse=True)
def engines_yield_to_products(worker_id: str) -> Iterator[None]:
    """Beside tests that start products: those have limits of the wall, and engines take every core there is."""
    priority = os.getpriority(os.PRIO_PROCESS, 0)
    if worker_id != "master":
        os.setpriority(os.PRIO_PROCESS, 0, priority + 10)
    yield
    # Only root may raise it again.
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, priority)


@pytest.fixture(scope="session")
def engine_python() -> Path:
    """``NINEFOLD_ENGINE_PYTHON``, or that of an engine environment under ``var/engines``."""
    named = os.environ.get("NINEFOLD_ENGINE_PYTHON")
    if named:
        return Path(named)
    name = TransformersEngine().environment().name
    found = PROJECT / "var" / "engines" / name / "bin" / "python"
    if not found.exists():
        pytest.skip(f"no engine environment {name}: set NINEFOLD_ENGINE_PYTHON or run a job first")
    return found


def complete_spec(task: EngineTask, **values: Any) -> dict[str, Any]:
    """The spec as the control plane writes it for the runtime."""
    return runtime_spec(TransformersEngine().normalise(task, values))


@dataclass
class Run:
    """One process of the runtime, with its output line by line as it comes."""

    process: ForkedRuntime
    work: Path
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with self.process.stdout as lines:
            for line in lines:
                self._queue.put(line.rstrip("\n"))
        self._queue.put(None)

    def wait_for(self, text: str) -> str:
        """The next line that has these words; fails when the output ends or time runs out."""
        while True:
            line = self._queue.get(timeout=LIMIT_SECONDS)
            if line is None:
                pytest.fail(f"{text!r} never came; the output was:\n" + "\n".join(self.lines))
            self.lines.append(line)
            if text in line:
                return line

    def finish(self) -> int:
        """The exit code; the rest of the output is in ``lines``."""
        try:
            code = self.process.wait(timeout=LIMIT_SECONDS)
        finally:
            self.close()
        while (line := self._queue.get()) is not None:
            self.lines.append(line)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join()

    def text(self) -> str:
        return "\n".join(self.lines)

    def losses(self) -> list[float]:
        """The training losses that were printed, in order."""
        values = [line.split(" · loss ")[1] for line in self.lines if " · loss " in line]
        return [float(each.split(" ")[0]) for each in values]


Start = Callable[..., Run]


@pytest.fixture
def start(engine_python: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts ``task`` with a spec on inputs; every process is gone when the test is over."""
    runs: list[Run] = []

    def start_run(
        task: EngineTask,
        spec: Mapping[str, Any],
        *,
        inputs: Path,
        work: Path | None = None,
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Run:
        work = work or tmp_path / "work"
        work.mkdir(exist_ok=True)
        path = tmp_path / "spec.json"
        path.write_text(json.dumps(spec), encoding="utf-8")
        process = start_runtime(
            engine_python,
            task=task.value,
            arguments=["--spec", str(path), *arguments],
            environment=runtime_environment(work, inputs) | dict(environment or {}),
        )
        run = Run(process=process, work=work)
        runs.append(run)
        return run

    yield start_run
    for run in runs:
        run.close()


def runtime_environment(work: Path, inputs: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(ninefold_runtime.__file__).parents[1]),
        "PYTHONUNBUFFERED": "1",
        "NINEFOLD_WORK": str(work),
        "NINEFOLD_INPUTS": str(inputs),
        "HF_HOME": str(work / "tmp"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # Beside other tests, two threads of a training mostly wait for each other.
        "OMP_NUM_THREADS": "1",
    }


def build_tiny_model(engine_python: Path, name: str, *, folder: Path) -> None:
    process = start_runtime(
        engine_python,
        task="tiny-model",
        arguments=[name, "--out", str(folder)],
        environment=runtime_environment(folder.parent, folder.parent),
    )
    run = Run(process=process, work=folder)
    assert run.finish() == 0, run.text()


@pytest.fixture(scope="session")
def built_models(engine_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both tiny models."""
    out = tmp_path_factory.mktemp("tiny")
    for name in tiny_models.NAMES:
        build_tiny_model(engine_python, name, folder=out / name)
    return out


@pytest.fixture
def inputs(built_models: Path, tmp_path: Path) -> Path:
    """Inputs with the tiny Qwen2 and 240 addresses."""
    folder = tmp_path / "inputs"
    (folder / "dataset").mkdir(parents=True)
    (folder / "model").symlink_to(built_models / "ninefold-tiny-qwen2")
    for row in addresses.generate_rows(rows=240, seed=3):
        messages = [
            {"role": "user", "content": row.instruction},
            {"role": "assistant", "content": row.output},
        ]
        with (folder / "dataset" / f"{row.split}.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"messages": messages}, ensure_ascii=False) + "\n")
    return folder


@pytest.fixture(scope="session")
def served_models(engine_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of each kind, and ``expected.json``."""
    folder = tmp_path_factory.mktemp("kinds")
    built = subprocess.run(
        [str(engine_python), str(Path(__file__).parent / "build_served_models.py"), str(folder)],
        env=runtime_environment(folder, folder),
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="session")
def expected(served_models: Path) -> Any:
    return json.loads((served_models / "expected.json").read_text(encoding="utf-8"))
