"""The pieces of the local cluster that need no process."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from controlplane.adapters.clusters.launch_validation import fill_placeholders
from controlplane.adapters.clusters.local import job_accounts
from controlplane.adapters.clusters.local.engine_environments import (
    ensure_runtime_package,
    installer_variables,
    uv_variables,
)
from controlplane.adapters.clusters.local.job_processes import (
    cpu_cores_of_replica,
    placeholder_values,
)
from controlplane.adapters.clusters.local.launch_folders import (
    LaunchFolder,
    read_json,
    write_json,
)
from controlplane.adapters.clusters.local.launch_preparation import GangPeers
from controlplane.adapters.clusters.local.launch_records import (
    LocalLaunchRecord,
    LocalReplicaState,
    ProcessIsolation,
)
from controlplane.domain.common.resources import MIB, Bytes, Millicpu, Resources
from controlplane.ports.artifacts import BlobDownload
from controlplane.ports.clusters import ExitCause, ReplicaPhase
from controlplane.ports.launches import (
    EngineEnvironment,
    InputArtifact,
    Launch,
    LaunchPlacement,
    LaunchRole,
    ReadinessProbe,
)
from process_supervision.files import try_lock
from process_supervision.processes import ProcessIdentity, boot_id

VALUES = placeholder_values(work="/w", inputs="/i", python="/p", index=1, ports={"http": 8000})
LAUNCH = Launch(
    name="job",
    roles=(
        LaunchRole(
            name="server",
            argv=("{python}", "-m", "x"),
            placements=(LaunchPlacement(node="here", cards=(0, 1)), LaunchPlacement(node="here")),
            environment={"A": "b"},
            ports=("http",),
            probe=ReadinessProbe(
                port="http",
                path="/health",
                start_within=timedelta(seconds=1.5),
                period=timedelta(seconds=2.5),
                timeout=timedelta(seconds=3.5),
                unready_threshold=3,
                failure_threshold=4,
            ),
            limits=Resources(cpu=Millicpu(1500), memory=Bytes(MIB)),
        ),
    ),
    files={"spec.json": "{}"},
    inputs=(InputArtifact(name="model", files={"a/b": f"sha256:{'a' * 64}"}),),
    engine=EngineEnvironment(name="e-1", preinstall=("torch==2.13.0",), lock="x==1"),
    secrets={"TOKEN": "t"},
    run_within=timedelta(hours=1),
    grace=timedelta(seconds=0.5),
    continues="earlier",
    labels={"team": "maps"},
)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{work}/spec.json", "/w/spec.json"),
        ("{inputs}:{python}:{port:http}", "/i:/p:8000"),
        ('{"a": {work}}', '{"a": /w}'),
        (
            "{{work}} {Work} {work } {port} {port:grpc} {0}",
            "{/w} {Work} {work } {port} {port:grpc} {0}",
        ),
    ],
)
def test_placeholders_are_filled_and_no_other_brace_is_touched(text: str, filled: str) -> None:
    assert fill_placeholders(text, VALUES) == filled


def test_what_a_value_contains_is_not_filled_again() -> None:
    assert fill_placeholders("{work}", {"work": "{python}", "python": "no"}) == "{python}"


def test_a_record_comes_back_from_its_json_as_it_was(tmp_path: Path) -> None:
    record = LocalLaunchRecord(
        launch=LAUNCH,
        instance="ab",
        separation=ProcessIsolation.ACCOUNT,
        account=200_001,
        python="/usr/bin/python3.11",
        log_limit=MIB,
        ports_from=1,
        ports_to=2,
        artifacts_kind="filesystem",
        artifacts_options={"root": "/a"},
    )
    write_json(tmp_path / "launch.json", record.to_json())
    read = read_json(tmp_path / "launch.json")
    assert read is not None
    assert LocalLaunchRecord.from_json(read) == record


def test_a_record_of_an_earlier_release_is_read() -> None:
    record = LocalLaunchRecord(
        launch=LAUNCH,
        instance="ab",
        separation=ProcessIsolation.NONE,
        account=None,
        python="python3",
        log_limit=MIB,
        ports_from=1,
        ports_to=2,
        artifacts_kind="filesystem",
    )
    written = record.to_json()
    del written["cache_limit"], written["launch"]["shares_checkpoints"]
    digest = f"sha256:{'0' * 64}"
    written["launch"]["downloads"] = {digest: ["https://s3.example/blob", 3]}
    read = LocalLaunchRecord.from_json(written)
    blob = BlobDownload(url="https://s3.example/blob", size=3)
    assert read == replace(record, launch=replace(LAUNCH, downloads={digest: blob}))


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    replica = LaunchFolder(tmp_path).replica("main", 0)
    replica.path.mkdir(parents=True)
    state = LocalReplicaState(
        phase=ReplicaPhase.EXITED,
        cause=ExitCause.FAILED,
        exit_code=3,
        message="exited with code 3: 失败",
        started_at=1.5,
        ended_at=2.5,
        memory=7,
        boot="b",
        supervisor=ProcessIdentity(pid=1, started=2),
        processes=(ProcessIdentity(pid=3, started=4),),
        ports={"http": 8000},
    )
    assert LocalReplicaState.read(replica) is None
    state.write(replica)
    assert LocalReplicaState.read(replica) == state
    assert [path.name for path in replica.path.iterdir()] == ["state.json"]


def test_a_lock_has_one_holder_and_is_free_when_it_is_closed(tmp_path: Path) -> None:
    first = try_lock(tmp_path / "lock")
    assert first is not None
    assert try_lock(tmp_path / "lock") is None
    os.close(first)
    second = try_lock(tmp_path / "lock")
    assert second is not None
    os.close(second)


def test_this_process_is_alive_and_another_start_time_is_another_process() -> None:
    own = ProcessIdentity.of(os.getpid())
    assert own is not None
    assert own.alive()
    assert not ProcessIdentity(pid=own.pid, started=own.started + 1).alive()
    assert ProcessIdentity.of(2**22 + 1) is None


@pytest.mark.parametrize(
    ("cpu", "cards", "cores"),
    [
        (0, (), [0, 1, 2, 3]),
        (500, (), [0]),
        (1500, (2, 3), [2, 3]),
        (2000, (3,), [0, 3]),
        (9000, (1,), [0, 1, 2, 3]),
    ],
)
def test_a_cpu_limit_is_as_many_cores_from_the_first_card_onwards(
    cpu: int, cards: tuple[int, ...], cores: list[int]
) -> None:
    role = LaunchRole(
        name="main",
        argv=("x",),
        placements=(LaunchPlacement(node="here", cards=cards),),
        limits=Resources(cpu=Millicpu(cpu)),
    )
    assert cpu_cores_of_replica(role, index=0, usable=[0, 1, 2, 3]) == cores


def test_an_installer_sees_how_to_install_and_nothing_of_the_product() -> None:
    seen = installer_variables(
        {
            "PATH": "/bin",
            "PIP_FIND_LINKS": "/wheels",
            "https_proxy": "http://proxy",
            "NINEFOLD_SECRET_KEY": "key",
            "NINEFOLD_DATABASE_URL": "postgres://",
            "DATABASE_URL": "postgres://",
            "AWS_SECRET_ACCESS_KEY": "key",
        }
    )
    assert seen == {"PATH": "/bin", "PIP_FIND_LINKS": "/wheels", "https_proxy": "http://proxy"}


def test_the_runtime_is_copied_once_for_its_content_and_readable_by_all(tmp_path: Path) -> None:
    copy = ensure_runtime_package(engines=tmp_path)
    before = (copy / "ninefold_runtime" / "__init__.py").stat()
    assert ensure_runtime_package(engines=tmp_path) == copy
    assert (copy / "ninefold_runtime" / "__init__.py").stat().st_ino == before.st_ino
    assert [path.name for path in tmp_path.iterdir()] == [copy.name]
    for path in copy.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)
        assert "__pycache__" not in path.parts


def test_the_topmost_closed_folder_is_named(tmp_path: Path) -> None:
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            assert job_accounts.find_untraversable_folder(inner) is not None
            assert not job_accounts.is_traversable_by_others(inner)
            return
    outer.chmod(0o700)
    assert job_accounts.find_untraversable_folder(inner) == outer


def test_a_gang_knows_who_could_not_be_prepared(tmp_path: Path) -> None:
    folder = LaunchFolder(tmp_path)
    for index in range(2):
        folder.replica("server", index).path.mkdir(parents=True)
    gang = GangPeers(LAUNCH, folder=folder, besides=("server", 0))
    assert gang.broken() == ""
    LocalReplicaState(
        phase=ReplicaPhase.EXITED,
        cause=ExitCause.NOT_PREPARED,
        message="no room",
        boot=boot_id(),
        supervisor=ProcessIdentity(pid=1, started=1),
    ).write(folder.replica("server", 1))
    assert gang.broken() == "not started, because server-1 could not be started: no room"


def test_what_pip_was_told_of_certificates_and_wheels_is_told_to_uv() -> None:
    translated = uv_variables({"PIP_CERT": "/company.pem", "PIP_FIND_LINKS": "/wheels"})
    assert (translated["SSL_CERT_FILE"], translated["UV_FIND_LINKS"]) == ("/company.pem", "/wheels")
    unchanged = uv_variables({"PIP_CERT": "/company.pem", "SSL_CERT_FILE": "/own.pem"})
    assert unchanged["SSL_CERT_FILE"] == "/own.pem"
