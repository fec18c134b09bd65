"""Engine environments, made by the real installer from a package that is built on the spot."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest

from controlplane.adapters.clusters.local import engine_environments, job_accounts
from controlplane.adapters.clusters.local.launch_folders import LocalClusterFolder
from controlplane.ports.clusters import ExitCause, ReplicaPhase
from controlplane.ports.launches import EngineEnvironment
from tests.contract.cluster_harness import ended, observed
from tests.contract.waiting import until
from tests.integration.local_cluster.conftest import Machine

pytestmark = pytest.mark.slow

#: Compiles nothing by itself.
SAYS = "import sys; sys.dont_write_bytecode = True; import pebble; print(pebble.WORD, sys.prefix)"


def wheel(folder: Path, *, version: str = "1.0") -> str:
    """Build ``pebble`` there; returns the line of a hashed requirements file that asks for it."""
    info = f"pebble-{version}.dist-info"
    files = {
        "pebble.py": "WORD = 'pebble'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: pebble\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record += f"{name},sha256={digest.decode()},{len(text)}\n"
    path = folder / f"pebble-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (files | {f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}).items():
            archive.writestr(name, text)
    digest_of_wheel = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"pebble=={version} --hash=sha256:{digest_of_wheel}\n"


@pytest.fixture
def pebble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineEnvironment:
    lock = wheel(tmp_path)
    monkeypatch.setenv("NINEFOLD_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    return EngineEnvironment(name="pebble-1a2b3c4d", preinstall=(), lock=f"# from source\n{lock}")


def test_a_job_runs_in_its_engines_environment_which_is_made_once(
    machine: Machine, pebble: EngineEnvironment
) -> None:
    for name in ("first", "second"):
        machine.start(SAYS, name=name, engine=pebble)
        (replica,) = ended(machine.cluster, name).replicas
        assert replica.cause is ExitCause.FINISHED, replica.message
    environment = machine.home / "engines" / pebble.name
    assert machine.output("first").decode().endswith(f"pebble {environment}\n")
    assert b"installing 1 packages: 0 done" in machine.output("first")
    assert machine.output("second").decode() == f"pebble {environment}\n"
    # Jobs may not write there: what is not compiled now is compiled again at every start.
    assert list(environment.glob("lib/python*/site-packages/__pycache__/pebble.*.pyc"))


def test_two_jobs_that_need_a_new_environment_at_once_make_it_once(
    machine: Machine, pebble: EngineEnvironment
) -> None:
    for name in ("first", "second"):
        machine.start(SAYS, name=name, engine=pebble)
    for name in ("first", "second"):
        assert ended(machine.cluster, name).replicas[0].cause is ExitCause.FINISHED
    outputs = machine.output("first") + machine.output("second")
    assert outputs.count(b"making the environment") == 1


def test_a_failing_installation_says_why_and_leaves_no_complete_environment(
    machine: Machine, pebble: EngineEnvironment
) -> None:
    wrong = EngineEnvironment(
        name="wrong", preinstall=(), lock=f"pebble==1.0 --hash=sha256:{'0' * 64}\n"
    )
    machine.start(SAYS, engine=wrong)
    (replica,) = ended(machine.cluster, "job").replicas
    assert (replica.cause, replica.exit_code) == (ExitCause.NOT_PREPARED, None)
    assert "failed with exit code" in replica.message
    assert "0" * 64 in replica.message
    assert not (machine.home / "engines/wrong/.complete").exists()


def test_what_is_half_made_is_wiped_and_made_again(
    machine: Machine, pebble: EngineEnvironment
) -> None:
    half = machine.home / "engines" / pebble.name
    (half / "bin").mkdir(parents=True)
    (half / "bin" / "python").write_text("broken")
    machine.start(SAYS, engine=pebble)
    assert ended(machine.cluster, "job").replicas[0].cause is ExitCause.FINISHED


def test_what_is_to_be_installed_first_is(machine: Machine, pebble: EngineEnvironment) -> None:
    machine.start(
        SAYS, engine=EngineEnvironment(name="first", preinstall=("pebble==1.0",), lock="")
    )
    assert ended(machine.cluster, "job").replicas[0].cause is ExitCause.FINISHED
    assert b"installing pebble==1.0" in machine.output("job")


def test_a_stop_ends_the_wait_for_an_environment(
    machine: Machine, pebble: EngineEnvironment
) -> None:
    lock = os.open(machine.home / "engines" / f".{pebble.name}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        machine.start(SAYS, engine=pebble)
        until(lambda: "waiting" in observed(machine.cluster, "job").replicas[0].message)
        assert observed(machine.cluster, "job").replicas[0].phase is ReplicaPhase.PREPARING
        machine.cluster.stop("job", grace=timedelta(minutes=5))
        assert ended(machine.cluster, "job").replicas[0].cause is ExitCause.STOPPED
    finally:
        os.close(lock)


def test_too_small_a_disk_is_told_in_numbers_before_anything_is_made(
    full_machine: Machine, pebble: EngineEnvironment
) -> None:
    machine = full_machine
    machine.start(SAYS, engine=pebble)
    (replica,) = ended(machine.cluster, "job").replicas
    assert replica.cause is ExitCause.NOT_PREPARED
    assert "requires 64.0 MiB of disk space, but" in replica.message


def test_a_report_that_raises_ends_the_installer(
    machine: Machine, pebble: EngineEnvironment
) -> None:
    class Enough(Exception):
        pass

    def report(message: str | None) -> None:
        if message is not None and message.startswith("installing"):
            raise Enough

    engines = LocalClusterFolder(machine.home).engines
    with pytest.raises(Enough):
        engine_environments.ensure_environment(
            pebble,
            engines=engines,
            python=job_accounts.find_interpreter(by_others=False),
            report=report,
        )
    # The lock is free again and the next one succeeds.
    python = engine_environments.ensure_environment(
        pebble,
        engines=engines,
        python=job_accounts.find_interpreter(by_others=False),
        report=lambda message: None,
    )
    assert python.exists()
