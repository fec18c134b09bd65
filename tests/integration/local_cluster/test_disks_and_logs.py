"""Full disks, and what is kept of a job's output."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from controlplane.adapters.artifacts.filesystem import FilesystemArtifacts
from controlplane.domain.common.resources import MIB
from controlplane.ports.artifacts import BlobMissing, StorageFull
from controlplane.ports.clusters import ClusterUnavailable, ExitCause, ReplicaPhase
from tests.contract.cluster_harness import SLEEPS, ended, observed, phase_is
from tests.contract.waiting import until
from tests.integration.local_cluster.conftest import Machine

FILL = """
import os
handle = os.open('filler', os.O_WRONLY | os.O_CREAT)
try:
    while True: os.write(handle, bytes(4096))
except OSError as full:
    failure = full
"""


def test_a_job_that_fills_the_disk_fails_with_that_cause_though_nothing_can_be_written(
    full_machine: Machine,
) -> None:
    machine = full_machine
    machine.start(FILL + "raise failure")
    (replica,) = ended(machine.cluster, "job").replicas
    assert (replica.cause, replica.exit_code) == (ExitCause.DISK_FULL, 1)
    assert "No space left on device" in replica.message
    assert b"No space left on device" in machine.output("job")


def test_the_exit_code_of_the_runtime_for_a_full_disk_is_enough(machine: Machine) -> None:
    machine.start("raise SystemExit(28)")
    assert ended(machine.cluster, "job").replicas[0].cause is ExitCause.DISK_FULL


def test_a_disk_that_is_full_while_logging_kills_neither_job_nor_supervisor(
    full_machine: Machine,
) -> None:
    machine = full_machine
    machine.start(
        FILL + "for number in range(5000): print('x' * 99)\n"
        "os.ftruncate(handle, 0)\nimport time; time.sleep(0.3); print('after the flood', flush=True)"
    )
    (replica,) = ended(machine.cluster, "job").replicas
    assert replica.cause is ExitCause.FINISHED, replica.message
    output = machine.output("job")
    assert b"bytes lost: disk full" in output
    assert output.endswith(b"after the flood\n")


def test_a_launch_on_a_full_disk_is_refused_for_now_and_leaves_nothing(
    full_machine: Machine,
) -> None:
    machine = full_machine
    filler = machine.home / "filler"
    with filler.open("wb", buffering=0) as stream, suppress(OSError):
        while stream.write(bytes(4096)):
            pass
    with pytest.raises(ClusterUnavailable):
        machine.start("pass")
    assert machine.cluster.names() == frozenset()
    assert list(machine.home.glob("jobs/.new-*")) == []
    filler.unlink()
    machine.start("pass")
    assert ended(machine.cluster, "job").replicas[0].cause is ExitCause.FINISHED


def test_a_full_disk_refuses_a_blob_and_keeps_no_part_of_it(small_disk: Path) -> None:
    store = FilesystemArtifacts(small_disk / "artifacts")
    stored = store.put([b"small"])
    with pytest.raises(StorageFull, match="no space left for artifacts"):
        store.put(bytes(MIB) for _ in range(64))
    assert [path for path in store.root.rglob("*") if path.is_file()] == [
        store.root / "sha256" / stored.digest[7:9] / stored.digest[9:]
    ]
    assert store.put([bytes(MIB)]).size == MIB


def test_a_blob_that_does_not_fit_where_it_is_copied_leaves_no_part_of_it(
    small_disk: Path, tmp_path: Path
) -> None:
    store = FilesystemArtifacts(tmp_path / "artifacts")
    big = store.put(bytes([number]) * MIB for number in range(64))
    small = store.put([b"small"])
    with pytest.raises(StorageFull):
        store.materialise(big.digest, small_disk / "big")
    assert list(small_disk.iterdir()) == []
    # Another file system: a link is not possible, so this is a copy.
    store.materialise(small.digest, small_disk / "small")
    assert (small_disk / "small").read_bytes() == b"small"
    store.delete(small.digest)
    with pytest.raises(BlobMissing):
        store.materialise(small.digest, small_disk / "small")


def test_a_log_keeps_its_beginning_and_its_end_and_offsets_hold(
    machine_with: Callable[..., Machine],
) -> None:
    machine = machine_with(log_limit=MIB)
    machine.start(
        "import sys\nfor number in range(400_000): print(f'{number:09d}')\nsys.exit('the reason')"
    )
    (replica,) = ended(machine.cluster, "job").replicas
    assert replica.message == "exited with code 1: the reason"
    output = machine.output("job")
    assert output[:MIB] == b"".join(b"%09d\n" % number for number in range(110_000))[:MIB]
    assert b"log truncated: its limit is 1.0 MiB" in output
    assert output.endswith(b"000399999\nthe reason\n")
    assert len(output) < MIB + 20_000
    chunk = machine.cluster.log("job", role="main", index=0, offset=MIB - 10, limit=10)
    assert chunk.content == output[MIB - 10 : MIB]
    assert not chunk.complete


def test_a_reader_that_follows_by_offset_sees_every_byte_once(machine: Machine) -> None:
    machine.start(
        "import time\nfor number in range(30): print(number, flush=True); time.sleep(0.01)"
    )
    read, offset, complete = b"", 0, False

    def follow() -> bool:
        nonlocal read, offset, complete
        chunk = machine.cluster.log("job", role="main", index=0, offset=offset, limit=7)
        read, offset, complete = read + chunk.content, chunk.next_offset, chunk.complete
        return complete

    until(follow)
    assert read == b"".join(b"%d\n" % number for number in range(30))


def test_output_without_a_line_end_is_there_at_once(machine: Machine) -> None:
    machine.start("print('half a line', end='', flush=True)\n" + SLEEPS)
    until(phase_is(machine.cluster, "job", ReplicaPhase.RUNNING))
    until(lambda: machine.output("job") == b"half a line")
    assert not observed(machine.cluster, "job").ended
