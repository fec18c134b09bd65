"""Simulated processes: what is kept of them, and their voice."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from controlplane.adapters.clusters.simulated.progress_reports import (
    ProgressReporter,
    ReceiverUnavailable,
)
from controlplane.adapters.clusters.simulated.store import SimulationStore
from controlplane.ports.clusters import ExitCause, LaunchRefused, ReplicaPhase
from controlplane.ports.launches import Launch
from tests.integration.simulated_cluster.conftest import RecordingListener, World, seen, training

MINUTE = timedelta(minutes=1)


def test_another_process_sees_the_same_launch(world: World) -> None:
    world.cluster().launch(training())
    world.clock.pass_(minutes=30)
    assert seen(world.cluster()) == seen(world.cluster())
    assert seen(world.cluster())[0].phase is ReplicaPhase.RUNNING


def test_many_who_launch_the_same_launch_it_once(world: World) -> None:
    clusters = [world.cluster() for _ in range(8)]
    threads = [threading.Thread(target=one.launch, args=(training(),)) for one in clusters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert world.cluster().names() == {"attempt-1"}


def test_at_sixty_times_the_speed_an_hour_takes_a_minute(world: World) -> None:
    cluster = world.cluster(speed=60)
    cluster.launch(training())
    world.clock.pass_(seconds=59)
    assert seen(cluster)[0].phase is ReplicaPhase.RUNNING
    world.clock.pass_(seconds=1)
    assert seen(cluster)[0].cause is ExitCause.FINISHED


def test_time_that_is_held_stands_still_for_every_process(world: World) -> None:
    world.cluster().launch(training())
    world.cluster().hold(world.clock.at)
    world.clock.pass_(hours=2)
    assert seen(world.cluster())[0].phase is ReplicaPhase.RUNNING
    world.cluster().hold(None)
    assert seen(world.cluster())[0].phase is ReplicaPhase.EXITED


def test_a_commit_outlives_the_killed_process_that_made_it(tmp_path: Path) -> None:
    path = tmp_path / "simulated.sqlite3"
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    done = subprocess.run(
        [sys.executable, "-c", _HOLD_AND_DIE, str(path), at.isoformat()], check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert SimulationStore(path).held() == at


_HOLD_AND_DIE = """
import os, signal, sys
from datetime import datetime
from pathlib import Path
from controlplane.adapters.clusters.simulated.store import SimulationStore
SimulationStore(Path(sys.argv[1])).hold(datetime.fromisoformat(sys.argv[2]))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_that_goes_on_from_a_checkpoint_is_shorter(world: World) -> None:
    cluster = world.cluster()
    cluster.launch(training())
    world.clock.pass_(minutes=40)
    cluster.faults.kill_card("h800-1", 0)
    world.clock.pass_(minutes=1)
    again = training("attempt-2", nodes=("h800-2",))
    cluster.launch(Launch(name="attempt-2", roles=again.roles, continues="attempt-1"))
    snapshot = cluster.launch_snapshot("attempt-2")
    assert snapshot is not None
    assert 0 < snapshot.record.initial_work <= 40 * 60
    world.clock.pass_(minutes=3)
    log = cluster.log("attempt-2", role="trainer", index=0, offset=0, limit=1 << 20)
    assert b"going on from a checkpoint" in log.content


def test_the_voice_tells_progress_then_files_then_the_manifest(world: World) -> None:
    cluster, received = world.cluster(), RecordingListener()
    voice = ProgressReporter(cluster.records, listener=received, every=MINUTE)
    cluster.launch(training(reports=True))
    world.clock.pass_(minutes=30)
    assert voice.send_reports(at=world.clock.at) == 1
    count = len(received.points)
    assert count
    assert not received.manifests
    assert voice.send_reports(at=world.clock.at) == 0
    world.clock.pass_(minutes=31)
    assert seen(cluster)[0].phase is ReplicaPhase.RUNNING
    assert voice.send_reports(at=world.clock.at) == 1
    steps = [point["step"] for point in received.points if "step" in point]
    assert steps == sorted(set(steps))
    assert len(received.points) > count
    (manifest,) = received.manifests
    assert {file["path"] for file in manifest["files"]} == set(received.files)
    assert seen(cluster)[0].cause is ExitCause.FINISHED


def test_what_nobody_heard_is_told_again(world: World) -> None:
    cluster, received = world.cluster(), RecordingListener(away=True)
    voice = ProgressReporter(cluster.records, listener=received, every=MINUTE)
    cluster.launch(training(reports=True))
    world.clock.pass_(hours=2)
    with pytest.raises(ReceiverUnavailable):
        voice.send_reports(at=world.clock.at)
    assert seen(cluster)[0].phase is ReplicaPhase.RUNNING
    received.away = False
    voice.send_reports(at=world.clock.at)
    assert len(received.manifests) == 1
    assert seen(cluster)[0].cause is ExitCause.FINISHED


def test_nothing_is_said_of_what_has_ended(world: World) -> None:
    cluster, received = world.cluster(), RecordingListener()
    voice = ProgressReporter(cluster.records, listener=received, every=MINUTE)
    cluster.launch(training(reports=True))
    world.clock.pass_(minutes=10)
    cluster.stop("attempt-1", grace=timedelta(0))
    assert voice.send_reports(at=world.clock.at) == 0
    world.clock.pass_(hours=3)
    assert voice.send_reports(at=world.clock.at) == 0
    assert seen(cluster)[0].cause is ExitCause.STOPPED
    assert not received.points


def test_a_label_that_says_no_course_is_refused(world: World) -> None:
    with pytest.raises(LaunchRefused, match="run-seconds is a number from 0, got 'soon'"):
        world.cluster().launch(training(run_seconds="soon"))
    assert world.cluster().names() == frozenset()
