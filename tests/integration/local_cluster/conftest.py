"""A local cluster in a folder that jobs' accounts can pass through, emptied at the end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.adapters.clusters.local import LocalCluster
from controlplane.adapters.clusters.local.launch_folders import LocalClusterFolder
from controlplane.adapters.clusters.local.launch_records import LocalReplicaState
from controlplane.ports.launches import Launch
from process_supervision.processes import ProcessIdentity
from tests.contract.cluster_harness import NODE, LocalHarness, open_folder, python_role
from tests.contract.waiting import until


class Machine(LocalHarness):
    """The local cluster with a look behind its port."""

    def start(self, code: str, *, name: str = "job", **values: Any) -> None:
        """Launch the code as a Launch of one replica; role values go to the role."""
        of_role = {
            key: values.pop(key)
            for key in ("limits", "ports", "probe", "environment")
            if key in values
        }
        self.cluster.launch(Launch(name=name, roles=(python_role(code, **of_role),), **values))

    def state(self, name: str = "job", *, role: str = "main", index: int = 0) -> LocalReplicaState:
        state = LocalReplicaState.read(
            LocalClusterFolder(self.home).launch(name).replica(role, index)
        )
        assert state is not None
        return state

    def printed_pids(self, count: int, *, name: str = "job") -> list[ProcessIdentity]:
        """The processes whose pids the job printed, one a line, once there are ``count``."""

        def printed() -> list[bytes]:
            # The newest line may still be cut.
            lines = self.output(name).split(b"\n")[:-1]
            pids = [line for line in lines if line.isdigit()]
            return pids if len(pids) >= count else []

        found = [ProcessIdentity.of(int(pid)) for pid in until(printed, what="pids are printed")]
        return [process for process in found if process is not None]

    def again(self, **options: Any) -> LocalCluster:
        """Another adapter on the same folder, as after a restart of the control plane."""
        return LocalCluster(self.home, node=NODE, cards=2, **options)


@pytest.fixture
def machine() -> Iterator[Machine]:
    local_machine = Machine()
    try:
        yield local_machine
    finally:
        local_machine.close()


@pytest.fixture
def machine_with() -> Iterator[Callable[..., Machine]]:
    machines: list[Machine] = []

    def make(**options: Any) -> Machine:
        machines.append(Machine(**options))
        return machines[-1]

    try:
        yield make
    finally:
        for machine in machines:
            machine.close()


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A folder on a file system of its own, of 24 MiB, that jobs' accounts can pass through."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    folder = open_folder()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m,mode=711", "none", str(folder)]
    try:
        if subprocess.run(mount, check=False).returncode != 0:
            pytest.skip("this container may not mount a tmpfs")
        try:
            yield folder
        finally:
            # Whoever is in it at this moment, such as a process that is just ending, keeps it for as long only.
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
    finally:
        folder.rmdir()


@pytest.fixture
def full_machine(small_disk: Path) -> Iterator[Machine]:
    """A cluster whose disk is easily filled."""
    local_machine = Machine(home=small_disk)
    try:
        yield local_machine
    finally:
        local_machine.close()
