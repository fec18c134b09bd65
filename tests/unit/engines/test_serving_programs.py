"""The programs that come along with a replica: SGLang's start, vLLM's followers, calibration rows."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane.adapters.engines import container_commands

KEY = "k3y-of-the-replica"
SECONDS = 120.0


def wait_until(true: Callable[[], bool], *, what: str) -> None:
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end, f"{what} did not happen within {SECONDS:g} s"
        time.sleep(0.05)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name in ("start_sglang", "start_xllm", "follow", "calibration_rows"):
        (tmp_path / f"{name}.py").write_text(
            container_commands.read_bundled_program(name), encoding="utf-8"
        )
    return tmp_path


@pytest.fixture
def sglang(programs: Path) -> Path:
    """A package of that name that shows what it was given."""
    package = programs / "sglang"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "launch_server.py").write_text(
        "import json, logging, sys\n"
        "logging.basicConfig(level=logging.INFO, stream=sys.stdout, force=True)\n"
        "logging.getLogger('x').info('server_args=%s', {'api_key': sys.argv[-1]})\n"
        "given = open('/proc/self/cmdline', 'rb').read().decode().split('\\0')\n"
        "print('GIVEN', json.dumps({'argv': sys.argv, 'shown': given}))\n",
        encoding="utf-8",
    )
    return programs


def started(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_sglang_gets_its_key_where_no_list_of_processes_and_no_log_shows_it(sglang: Path) -> None:
    done = started(sglang, "start_sglang.py", "--port", "1", NINEFOLD_ENGINE_KEY=KEY)
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("GIVEN "))
    given = json.loads(line.removeprefix("GIVEN "))
    assert given["argv"] == ["sglang.launch_server", "--port", "1", "--api-key", KEY] or (
        given["argv"][1:] == ["--port", "1", "--api-key", KEY]
    )
    assert not any(KEY in each for each in given["shown"])
    assert "server_args={'api_key': '[key]'}" in done.stdout


def test_sglang_is_not_started_without_a_key(sglang: Path) -> None:
    done = started(sglang, "start_sglang.py", NINEFOLD_ENGINE_KEY="")
    assert done.returncode == 1
    assert "nothing is served without a key" in done.stderr
    assert "GIVEN" not in done.stdout


#: One process of xLLM: writes what it was given, then fails, or waits for its end.
XLLM = """
import pathlib, signal, sys
rank = sys.argv[3].partition("=")[2]
folder = pathlib.Path(sys.argv[1])
if rank == folder.joinpath("fails").read_text():
    sys.exit(3)
signal.signal(signal.SIGTERM, lambda *_: (folder.joinpath(f"ended-{rank}").touch(), sys.exit(0)))
(folder / f"rank-{rank}").write_text(" ".join(sys.argv[2:]))
signal.pause()
"""


@pytest.mark.parametrize("fails", ["1", ""])
def test_xllm_has_a_process_for_each_card_and_they_end_together(programs: Path, fails: str) -> None:
    (programs / "process.py").write_text(XLLM.replace("argv[3]", "argv[4]"), encoding="utf-8")
    (programs / "fails").write_text(fails, encoding="utf-8")
    command = [sys.executable, "process.py", str(programs)]
    started_as = [sys.executable, "start_xllm.py", "8000", "3", "npu", *command]
    process = subprocess.Popen(started_as, cwd=programs)
    try:
        if not fails:
            wait_until(lambda: len(list(programs.glob("rank-*"))) == 3, what="start of all cards")
            assert (programs / "rank-2").read_text() == (
                "--port=8002 --nnodes=3 --node_rank=2 --devices=npu:2"
            )
            process.send_signal(signal.SIGTERM)
        code = process.wait(SECONDS)
    finally:
        process.kill()
    assert code == (3 if fails else 128 + signal.SIGTERM)
    if not fails:
        assert {path.name for path in programs.glob("ended-*")} == {f"ended-{n}" for n in range(3)}


class Mindie:
    """A folder with MindIE's start script, its configuration, and commands that stand in for the image's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.configuration = folder / "config.json"
        (folder / "start.sh").write_text(
            container_commands.bundled_text("start_mindie.sh"), encoding="utf-8"
        )
        self.configuration.write_text("{}", encoding="utf-8")
        self.configuration.chmod(0o444)
        self.program("programs/chmod", "echo Read-only file system >&2; exit 1")

    def program(self, path: str, text: str) -> None:
        program = self.folder / path
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        program.chmod(0o755)

    def start(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", str(self.folder / "start.sh")],
            env={
                "PATH": f"{self.folder / 'programs'}:{os.environ['PATH']}",
                "TMPDIR": str(self.folder),
                "MIES_CONFIG_JSON_PATH": str(self.configuration),
                "MIES_INSTALL_PATH": str(self.folder / "mindie"),
            },
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


@pytest.fixture
def mindie(tmp_path: Path) -> Mindie:
    return Mindie(tmp_path)


def test_mindie_gets_a_private_copy_of_its_configuration_from_a_mount_that_nobody_can_change(
    mindie: Mindie,
) -> None:
    """``chmod`` on a mounted ConfigMap ends with "Read-only file system", whoever asks."""
    mindie.program(
        "mindie/bin/mindieservice_daemon",
        'stat --format "%a %n" "$MIES_CONFIG_JSON_PATH"; cat "$MIES_CONFIG_JSON_PATH"',
    )
    done = mindie.start()
    assert done.returncode == 0, done.stderr
    mode, _, rest = done.stdout.partition(" ")
    assert mode == "640"
    assert not rest.startswith(str(mindie.configuration))
    assert rest.splitlines()[1:] == ["{}"]


def test_mindies_daemon_runs_in_a_folder_of_its_own_where_it_can_write(mindie: Mindie) -> None:
    """Operators write ``kernel_meta`` into the working directory."""
    mindie.program("mindie/bin/mindieservice_daemon_", 'pwd; dirname "$MIES_CONFIG_JSON_PATH"')
    mindie.program("mindie/bin/mindieservice_daemon", "echo the script of gpustack/runner; exit 1")
    done = mindie.start()
    assert done.returncode == 0, done.stdout
    working_directory, private = done.stdout.splitlines()
    assert working_directory == private


def test_an_image_whose_mindie_cannot_be_executed_is_named_as_the_cause(mindie: Mindie) -> None:
    done = mindie.start()
    assert done.returncode == 1
    assert "mindieservice_daemon; build the image from docker/engines/mindie" in done.stderr


def answers(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=1) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code
    except OSError:
        return 0


def test_a_follower_answers_its_probe_for_as_long_as_its_engine_lives(programs: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    engine = "import sys, time; print(sys.argv[1:], flush=True); time.sleep(600)"
    process = subprocess.Popen(
        [sys.executable, "follow.py", str(port), sys.executable, "-c", engine, "--nnodes", "2"],
        cwd=programs,
        env={**os.environ, "NODE_RANK": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: answers(port, "/health") == 200, what="a first answer")
        assert answers(port, "/v1/models") == 404
        assert process.stdout is not None
        said = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=SECONDS)
    finally:
        process.kill()
        process.communicate()
    assert said.strip() == "['--nnodes', '2', '--headless']"
    assert answers(port, "/health") == 0


def test_the_first_node_runs_the_command_as_it_is(programs: Path) -> None:
    engine = "import sys; print(sys.argv[1:])"
    done = started(programs, "follow.py", "0", sys.executable, "-c", engine, "-x", NODE_RANK="0")
    assert done.stdout.strip() == "['-x']"


@pytest.fixture
def tokenizer(programs: Path) -> Path:
    """A package ``transformers`` whose tokens are words."""
    (programs / "transformers.py").write_text(
        "class Words:\n"
        "    chat_template = 'x'\n"
        "    def apply_chat_template(self, messages, tokenize):\n"
        "        return ' '.join(m['role'] + ' ' + m['content'] for m in messages)\n"
        "    def __call__(self, text):\n"
        "        return type('Read', (), {'input_ids': text.split()})\n"
        "    def decode(self, tokens):\n"
        "        return ' '.join(tokens)\n"
        "class AutoTokenizer:\n"
        "    @staticmethod\n"
        "    def from_pretrained(model):\n"
        "        return Words()\n",
        encoding="utf-8",
    )
    return programs


def calibrated(folder: Path, *, rows: int, seed: int) -> list[str]:
    done = started(
        folder, "calibration_rows.py", "m", "rows.jsonl", "out.json", str(rows), "3", str(seed)
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    return found


def test_calibration_rows_are_chosen_by_the_seed_and_cut_to_the_length(tokenizer: Path) -> None:
    lines = [
        json.dumps({"messages": [{"role": "user", "content": f"row {number} is long"}]})
        for number in range(20)
    ]
    (tokenizer / "rows.jsonl").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    found = calibrated(tokenizer, rows=5, seed=1)
    assert len(set(found)) == 5
    assert all(text.startswith("user row ") and len(text.split()) == 3 for text in found)
    assert calibrated(tokenizer, rows=5, seed=1) == found
    assert set(calibrated(tokenizer, rows=5, seed=2)) != set(found)
    assert len(calibrated(tokenizer, rows=100, seed=1)) == 20


def test_a_split_without_rows_ends_the_quantization(tokenizer: Path) -> None:
    (tokenizer / "rows.jsonl").write_text("\n", encoding="utf-8")
    done = started(tokenizer, "calibration_rows.py", "m", "rows.jsonl", "out.json", "5", "3", "1")
    assert done.returncode == 1
    assert "rows.jsonl has no rows to calibrate with" in done.stderr
