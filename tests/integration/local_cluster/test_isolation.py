"""What a job can see, reach and change."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import controlplane
from controlplane.adapters.artifacts.filesystem import FilesystemArtifacts
from controlplane.adapters.clusters.local import LocalCluster
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import ClusterUnavailable, ExitCause
from controlplane.ports.launches import InputArtifact, Launch, LaunchPlacement, LaunchRole
from tests.contract.cluster_harness import NODE, SLEEPS, ended, open_folder, python_role
from tests.contract.waiting import until
from tests.integration.local_cluster.conftest import Machine

pytestmark = pytest.mark.slow

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="accounts of their own take root")
READ = """
import sys
try:
    print(open(sys.argv[1] if len(sys.argv) > 1 else PATH).read())
except OSError as failure:
    print(type(failure).__name__)
"""


def _has_lines(machine: Machine, name: str, *, count: int) -> bool:
    return machine.output(name).count(b"\n") == count


def test_the_products_environment_is_not_visible(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://product:password@db/ninefold")
    monkeypatch.setenv("NINEFOLD_SECRET_KEY", "the-key-of-the-product")
    machine.start(
        "import os\nfor name in sorted(os.environ): print(name)",
        environment={"OMP_NUM_THREADS": "1"},
        secrets={"NINEFOLD_ATTEMPT_TOKEN": "token-of-the-attempt"},
    )
    ended(machine.cluster, "job")
    assert set(machine.output("job").decode().split()) == {
        *("HOME", "TMPDIR", "USER", "LOGNAME", "LANG", "PATH", "PYTHONPATH", "PYTHONUNBUFFERED"),
        *("NINEFOLD_WORK", "NINEFOLD_INPUTS", "NINEFOLD_LAUNCH"),
        *("OMP_NUM_THREADS", "NINEFOLD_ATTEMPT_TOKEN"),
        *adapter_registry.variables_that_hide_devices(["cpu"]),
    }


def test_a_job_on_processors_sees_no_vendors_cards_whatever_its_variables_say(
    machine: Machine,
) -> None:
    names = ("NVIDIA_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    machine.start(
        f"import os\nprint([os.environ[name] for name in {names!r}])",
        environment={"CUDA_VISIBLE_DEVICES": "0,1,2,3"},
        secrets={"NVIDIA_VISIBLE_DEVICES": "all-of-them"},
    )
    ended(machine.cluster, "job")
    assert machine.output("job").decode().strip() == "['void', 'void', '']"


def test_the_products_keys_are_not_in_the_supervisors_environment_either(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NINEFOLD_SECRET_KEY", "the-key-of-the-product")
    machine.start(SLEEPS)
    environment = Path(f"/proc/{machine.state().supervisor.pid}/environ").read_bytes()
    assert b"the-key-of-the-product" not in environment


def test_a_secret_reaches_the_process_and_neither_its_log_nor_its_folder(machine: Machine) -> None:
    token = "token-0123456789"
    machine.start(
        "import hashlib, os\ntoken = os.environ['TOKEN']\nprint('is', token)\n"
        "print(hashlib.sha256(token.encode()).hexdigest())\nraise SystemExit(token)",
        secrets={"TOKEN": token},
    )
    (replica,) = ended(machine.cluster, "job").replicas
    output = machine.output("job").decode()
    assert hashlib.sha256(token.encode()).hexdigest() in output
    assert token not in output
    assert token not in replica.message
    holding = [
        path.name
        for path in (machine.home / "jobs").rglob("*")
        if path.is_file() and token in path.read_text(errors="replace")
    ]
    assert holding == ["launch.json"]
    assert stat.S_IMODE((machine.home / "jobs/job/launch.json").stat().st_mode) == 0o600


@as_root
def test_each_launch_has_an_account_of_its_own_without_groups_or_new_privileges(
    machine: Machine,
) -> None:
    code = (
        "import os; print(*os.getresuid(), *os.getresgid(), os.getgroups());"
        "status = open('/proc/self/status').read();"
        "print([line.split()[1] for line in status.splitlines() if line.startswith(('CapEff', 'NoNewPrivs'))]);"
        "print(oct(os.umask(0)), os.nice(0) > 0)\n" + SLEEPS
    )
    accounts = []
    for name in ("first", "second"):
        machine.start(code, name=name)
        until(partial(_has_lines, machine, name, count=3))
        first, privileges, rest = machine.output(name).decode().splitlines()
        *ids, groups = first.split(" ", 6)
        assert len(set(ids)) == 1
        assert groups == f"[{ids[0]}]" or groups == "[]"
        assert privileges == "['0000000000000000', '1']"
        assert rest == "0o77 True"
        accounts.append(int(ids[0]))
    assert accounts[0] != accounts[1]
    assert all(200_000 <= account <= 265_535 for account in accounts)
    assert not machine.cluster.isolation().startswith("not isolated")


@as_root
def test_another_launch_and_the_products_secrets_cannot_be_read(machine: Machine) -> None:
    private = machine.home / "secrets"
    private.mkdir(mode=0o700)
    (private / "secret_key").write_text("the-key-of-the-product")
    machine.start("open('mine', 'w').write('of the first job')\n" + SLEEPS, name="first")
    of_the_first = machine.home.joinpath("jobs", "first", "work", "mine")
    until(of_the_first.exists)
    for target in (
        private / "secret_key",
        of_the_first,
        machine.home / "jobs/second/launch.json",
        machine.home / "jobs/second/replicas/main-0/state.json",
        f"/proc/{machine.state('first').supervisor.pid}/environ",
        "/etc/shadow",
    ):
        machine.start(f"PATH = {str(target)!r}" + READ, name="second")
        ended(machine.cluster, "second")
        assert machine.output("second") == b"PermissionError\n", target
        machine.cluster.remove("second")


@as_root
def test_an_account_is_given_back_when_its_launch_is_removed(
    machine_with: Callable[..., Machine],
) -> None:
    machine = machine_with(first_account=260_000, last_account=260_000)
    machine.start("pass", name="first")
    ended(machine.cluster, "first")
    with pytest.raises(ClusterUnavailable, match="remove ended launches"):
        machine.start("pass", name="second")
    assert machine.cluster.names() == {"first"}
    machine.cluster.remove("first")
    machine.start("pass", name="second")
    assert ended(machine.cluster, "second").replicas[0].cause is ExitCause.FINISHED


def test_inputs_are_readable_and_cannot_be_changed(machine: Machine) -> None:
    blob = FilesystemArtifacts(machine.home / "artifacts").put([b"weights"])
    code = (
        "import os\npath = os.environ['NINEFOLD_INPUTS'] + '/model/deep/weights.bin'\n"
        "print(open(path).read())\n"
        "for change in (lambda: open(path, 'w'), lambda: os.unlink(path), lambda: os.chmod(path, 0o666)):\n"
        "    try: change(); print('changed')\n"
        "    except PermissionError: print('refused')"
    )
    machine.start(
        code, inputs=(InputArtifact(name="model", files={"deep/weights.bin": blob.digest}),)
    )
    ended(machine.cluster, "job")
    lines = machine.output("job").decode().splitlines()
    said = [line for line in lines if not line.startswith("[ninefold]")]
    assert said[:2] == ["weights", "refused"]
    if os.geteuid() == 0:
        assert said[2:] == ["refused", "refused"]
    with FilesystemArtifacts(machine.home / "artifacts").open(blob.digest) as stream:
        assert stream.read() == b"weights"


def test_a_missing_input_is_named_and_nothing_is_started(machine: Machine) -> None:
    absent = f"sha256:{'0' * 64}"
    machine.start("print('started')", inputs=(InputArtifact(name="model", files={"x": absent}),))
    (replica,) = ended(machine.cluster, "job").replicas
    assert replica.cause is ExitCause.NOT_PREPARED
    assert absent in replica.message
    assert b"started\n" not in machine.output("job").splitlines(keepends=True)


def test_files_are_written_with_their_placeholders_filled_and_other_braces_kept(
    machine: Machine,
) -> None:
    machine.start(
        "print(open('conf/spec.json').read())",
        files={
            "conf/spec.json": '{"w": "{work}", "i": "{inputs}", "x": {unknown}, "port": {port:http}}'
        },
        ports=("http",),
    )
    ended(machine.cluster, "job")
    job, port = machine.home / "jobs/job", machine.state().ports["http"]
    expected = f'{{"w": "{job}/work", "i": "{job}/inputs", "x": {{unknown}}, "port": {port}}}\n'
    assert machine.output("job").decode() == expected


def test_nothing_of_a_command_passes_a_shell(machine: Machine) -> None:
    role = python_role("import os, sys; print(sys.argv[1:], os.listdir())")
    machine.cluster.launch(
        Launch(name="job", roles=(replace(role, argv=(*role.argv, "$(id)", "; touch x", "*")),))
    )
    ended(machine.cluster, "job")
    assert machine.output("job") == b"['$(id)', '; touch x', '*'] []\n"


def test_the_runtime_is_importable_and_the_control_plane_is_not(machine: Machine) -> None:
    code = (
        "import importlib.util as found\n"
        "print(bool(found.find_spec('ninefold_runtime')), bool(found.find_spec('controlplane')))"
    )
    machine.start(code)
    ended(machine.cluster, "job")
    assert machine.output("job") == b"True False\n"
    copies = list((machine.home / "engines").glob("runtime-*/ninefold_runtime/__init__.py"))
    assert len(copies) == 1


def test_a_continued_launch_finds_the_checkpoints_and_no_link_leads_it_astray(
    machine: Machine,
) -> None:
    secret = machine.home / "secret"
    secret.write_text("of the product")
    secret.chmod(0o600)
    machine.start(
        "import os\nos.makedirs('checkpoints/step-3')\n"
        "open('checkpoints/step-3/weights', 'w').write('of step 3')\n"
        f"os.symlink({str(secret)!r}, 'checkpoints/step-3/stolen')\n"
        f"os.symlink({str(machine.home)!r}, 'checkpoints/folder')\n"
        "os.mkfifo('checkpoints/pipe')",
        name="first",
    )
    ended(machine.cluster, "first")
    machine.start(
        "import os\nfor parent, folders, files in os.walk('checkpoints'): print(parent, folders, files)\n"
        "path = 'checkpoints/step-3/weights'\nprint(open(path).read(), os.stat(path).st_uid == os.getuid())\n"
        "open(path, 'a').write('x')",
        name="second",
        continues="first",
    )
    (replica,) = ended(machine.cluster, "second").replicas
    assert replica.cause is ExitCause.FINISHED, replica.message
    said = [
        line
        for line in machine.output("second").decode().splitlines()
        if not line.startswith("[ninefold]")
    ]
    assert said == [
        "checkpoints ['step-3'] []",
        "checkpoints/step-3 [] ['weights']",
        "of step 3 True",
    ]
    assert secret.read_text() == "of the product"
    assert secret.stat().st_uid == os.geteuid()


def test_checkpoints_that_are_a_link_themselves_are_not_followed(machine: Machine) -> None:
    machine.start(f"import os; os.symlink({str(machine.home)!r}, 'checkpoints')", name="first")
    ended(machine.cluster, "first")
    machine.start(
        "import os; print(os.path.lexists('checkpoints'))", name="second", continues="first"
    )
    ended(machine.cluster, "second")
    assert machine.output("second").endswith(b"False\n")


def test_a_removed_launch_to_continue_is_a_fresh_start_that_says_so(machine: Machine) -> None:
    machine.start("pass", continues="long-gone")
    (replica,) = ended(machine.cluster, "job").replicas
    assert replica.cause is ExitCause.FINISHED
    assert b"nothing to continue" in machine.output("job")


def test_removing_a_launch_does_not_follow_links_out_of_its_folder(machine: Machine) -> None:
    outside = machine.home / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    machine.start(f"import os; os.symlink({str(outside)!r}, 'link')")
    ended(machine.cluster, "job")
    machine.cluster.remove("job")
    assert (outside / "kept").read_text() == "kept"


@as_root
def test_below_a_closed_folder_jobs_still_run_and_the_page_says_not_isolated(
    machine_with: Callable[..., Machine],
) -> None:
    machine = machine_with()
    machine.home.chmod(0o700)
    closed = LocalCluster(machine.home, node=NODE, cards=2)
    assert closed.isolation().startswith("not isolated")
    assert str(machine.home) in closed.isolation()
    assert "NINEFOLD_HOME" in closed.isolation()
    machine.cluster = closed
    machine.start(
        "import os; print(os.getuid() >= 200000, os.getcwd())\n"
        "try: open('/etc/passwd', 'a')\nexcept PermissionError: print('refused')"
    )
    (replica,) = ended(closed, "job").replicas
    assert replica.cause is ExitCause.FINISHED, replica.message
    assert machine.output("job").decode() == f"True {machine.home}/jobs/job/work\nrefused\n"


@as_root
def test_below_a_closed_folder_a_missing_program_is_told_as_such(
    machine_with: Callable[..., Machine],
) -> None:
    machine = machine_with()
    machine.home.chmod(0o700)
    closed = LocalCluster(machine.home, node=NODE, cards=2)
    role = LaunchRole(
        name="main", argv=("no-such-program",), placements=(LaunchPlacement(node=NODE),)
    )
    closed.launch(Launch(name="job", roles=(role,)))
    assert ended(closed, "job").replicas[0].cause is ExitCause.NOT_PREPARED


ORDINARY = """
import sys, time
from datetime import timedelta
from controlplane.adapters.clusters.local import LocalCluster
from controlplane.ports.launches import Launch, LaunchPlacement, LaunchRole
cluster = LocalCluster(sys.argv[1], node="real-1")
print(cluster.isolation().split(":")[0])
code = "import os; print(os.getuid())"
role = LaunchRole(name="main", argv=("{python}", "-c", code), placements=(LaunchPlacement(node="real-1"),))
cluster.launch(Launch(name="job", roles=(role,)))
deadline = time.monotonic() + 20
while not cluster.observe(["job"])["job"].ended and time.monotonic() < deadline:
    time.sleep(0.05)
print(cluster.observe(["job"])["job"].replicas[0].cause)
print(cluster.log("job", role="main", index=0, offset=0, limit=100).content.decode(), end="")
cluster.remove("job")
"""


@as_root
def test_an_ordinary_user_runs_jobs_as_itself_and_is_told_so() -> None:
    system = Path("/usr/bin/python3.11")
    source = Path(controlplane.__file__).parents[1]
    if not system.exists() or not all(folder.stat().st_mode & 0o001 for folder in source.parents):
        pytest.skip("an ordinary user can reach neither this checkout nor a Python of the system")
    home = open_folder()
    os.chown(home, 299_999, 299_999)
    done = subprocess.run(
        [str(system), "-P", "-c", ORDINARY, str(home)],
        user=299_999,
        group=299_999,
        extra_groups=[],
        env={"PYTHONPATH": str(source), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/",
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "not isolated\nfinished\n299999\n"
    subprocess.run(["rm", "-r", str(home)], check=True)


def test_a_python_that_no_job_can_execute_is_refused_with_the_folder_named(
    machine_with: Callable[..., Machine],
) -> None:
    machine = machine_with(python="/no/such/python")
    with pytest.raises(ClusterUnavailable, match="/no/such/python"):
        machine.start("pass")
    assert machine.cluster.names() == frozenset()


@as_root
def test_a_python_in_a_closed_folder_is_refused_for_jobs_with_accounts(
    machine_with: Callable[..., Machine], tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    python = closed / "python3.11"
    python.write_bytes(Path("/bin/true").read_bytes())
    python.chmod(0o755)
    machine = machine_with(python=str(python))
    with pytest.raises(ClusterUnavailable, match="cannot access"):
        machine.start("pass")
