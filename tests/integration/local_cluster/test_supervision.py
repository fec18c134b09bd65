"""Processes: what ends them, what survives what, and that nothing stays behind."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from controlplane.adapters.clusters.local.launch_folders import LocalClusterFolder
from controlplane.domain.common.resources import MIB, Bytes, Resources
from controlplane.ports.clusters import ClusterUnavailable, ExitCause, ReplicaPhase
from controlplane.ports.launches import Launch, ReadinessProbe
from process_supervision.processes import ProcessIdentity
from tests.contract.cluster_harness import (
    NODE,
    SLEEPS,
    STUBBORN,
    ended,
    observed,
    phase_is,
    python_role,
)
from tests.contract.waiting import until
from tests.integration.local_cluster.conftest import Machine

pytestmark = pytest.mark.slow

#: Prints the pids of itself, of a child, and of a grandchild that left for a session of its own.
FAMILY = """
import os, time
print(os.getpid(), flush=True)
if not os.fork():
    print(os.getpid(), flush=True)
    if not os.fork():
        os.setsid()
        if not os.fork():
            print(os.getpid(), flush=True)
            time.sleep(600)
        os._exit(0)
    time.sleep(600)
# the end
time.sleep(600)
"""
SERVER = """
import http.server, sys, time
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


def gone(processes: list[ProcessIdentity]) -> bool:
    return not any(process.alive() for process in processes)


def test_a_stop_ends_every_descendant_also_in_sessions_of_their_own(machine: Machine) -> None:
    machine.start(FAMILY)
    family = machine.printed_pids(3)
    machine.cluster.stop("job", grace=timedelta(seconds=1))
    ended(machine.cluster, "job")
    assert len(family) == 3
    assert gone(family)


def test_a_killed_trainer_is_reported_as_killed_with_its_exit_code_and_last_line(
    machine: Machine,
) -> None:
    machine.start(FAMILY.replace("# the end", "print('step 12, loss 0.5', flush=True)"))
    family = machine.printed_pids(3)
    until(lambda: b"step 12" in machine.output("job"))
    family[0].signal(signal.SIGKILL)
    (replica,) = ended(machine.cluster, "job").replicas
    assert (replica.phase, replica.cause) == (ReplicaPhase.EXITED, ExitCause.KILLED)
    assert replica.exit_code == 128 + signal.SIGKILL
    assert replica.message.startswith("killed by SIGKILL: ")
    assert gone(family)


def test_children_that_a_finished_job_leaves_behind_are_killed(machine: Machine) -> None:
    machine.start(FAMILY.rsplit("time.sleep(600)", 1)[0] + "time.sleep(0.3)")
    family = machine.printed_pids(3)
    (replica,) = ended(machine.cluster, "job").replicas
    assert replica.cause is ExitCause.FINISHED
    assert gone(family)


def test_a_killed_supervisor_is_lost_only_when_nothing_of_its_job_lives(machine: Machine) -> None:
    machine.start(FAMILY)
    family = machine.printed_pids(3)
    machine.state().supervisor.signal(signal.SIGKILL)

    def lost() -> bool:
        launch = observed(machine.cluster, "job")
        # Reported as ended and alive at once would give its cards to somebody else.
        assert not launch.ended or gone(family)
        return launch.ended

    until(lost)
    (replica,) = observed(machine.cluster, "job").replicas
    assert (replica.phase, replica.cause) == (ReplicaPhase.LOST, ExitCause.LOST)
    assert "supervisor was killed" in replica.message


def test_a_process_that_took_over_a_recorded_pid_is_left_alone(machine: Machine) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", SLEEPS])
    try:
        machine.start(SLEEPS)
        until(phase_is(machine.cluster, "job", ReplicaPhase.RUNNING))
        supervisor = machine.state().supervisor
        supervisor.signal(signal.SIGKILL)
        until(lambda: not supervisor.alive())
        path = LocalClusterFolder(machine.home).launch("job").replica("main", 0).state
        forged = json.loads(path.read_text())
        # The stranger has the pid, and another start time than the process that was written down.
        forged["processes"] = [[stranger.pid, 1]]
        forged["supervisor"] = [stranger.pid, 1]
        path.write_text(json.dumps(forged))
        until(lambda: observed(machine.cluster, "job").ended)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_what_ran_before_the_machine_restarted_is_lost_and_no_pid_is_touched(
    machine: Machine,
) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", SLEEPS])
    try:
        machine.start(SLEEPS)
        until(phase_is(machine.cluster, "job", ReplicaPhase.RUNNING))
        machine.state().supervisor.signal(signal.SIGKILL)
        until(lambda: not machine.state().supervisor.alive())
        path = LocalClusterFolder(machine.home).launch("job").replica("main", 0).state
        identity = ProcessIdentity.of(stranger.pid)
        assert identity is not None
        forged = json.loads(path.read_text()) | {
            "boot": "another",
            "processes": [[identity.pid, identity.started]],
        }
        path.write_text(json.dumps(forged))
        (replica,) = observed(machine.cluster, "job").replicas
        assert (replica.phase, replica.message) == (
            ReplicaPhase.LOST,
            "the host was rebooted during the run",
        )
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_restarted_control_plane_finds_what_runs_and_can_stop_it(machine: Machine) -> None:
    launch = Launch(name="job", roles=(python_role(FAMILY),))
    script = (
        "import sys; from controlplane.adapters.clusters.local import LocalCluster;"
        f"cluster = LocalCluster(sys.argv[1], node={NODE!r}, cards=2);"
        "from tests.contract.cluster_harness import python_role, Launch;"
        "cluster.launch(Launch(name='job', roles=(python_role(sys.argv[2]),)))"
    )
    # The process that launches has ended before the first look.
    subprocess.run([sys.executable, "-c", script, str(machine.home), FAMILY], check=True)
    family = machine.printed_pids(3)
    restarted = machine.again()
    until(phase_is(restarted, "job", ReplicaPhase.RUNNING))
    restarted.launch(launch)
    assert machine.printed_pids(3) == family
    restarted.stop("job", grace=timedelta(seconds=1))
    assert ended(restarted, "job").replicas[0].cause is ExitCause.STOPPED
    assert gone(family)


def test_two_processes_that_launch_one_name_at_once_start_it_once(machine: Machine) -> None:
    script = (
        "import sys; from controlplane.adapters.clusters.local import LocalCluster;"
        "from tests.contract.cluster_harness import python_role, Launch;"
        f"cluster = LocalCluster(sys.argv[1], node={NODE!r}, cards=2);"
        "launch = Launch(name='job', roles=(python_role('print(\"started\")'),));"
        "sys.stdin.readline(); cluster.launch(launch)"
    )
    racers = [
        subprocess.Popen([sys.executable, "-c", script, str(machine.home)], stdin=subprocess.PIPE)
        for _ in range(4)
    ]
    for racer in racers:
        racer.communicate(b"\n", timeout=300)
    assert [racer.returncode for racer in racers] == [0] * 4
    ended(machine.cluster, "job")
    assert machine.output("job") == b"started\n"
    assert {entry.name for entry in (machine.home / "jobs").iterdir() if entry.is_dir()} == {
        "job",
        ".accounts",
        ".ports",
    }


def test_a_launch_that_was_cut_off_is_completed_by_the_next_call(machine: Machine) -> None:
    launch = Launch(name="job", roles=(python_role("print('started')"),))
    machine.cluster._create_launch_folder(launch)
    assert observed(machine.cluster, "job").replicas[0].phase is ReplicaPhase.PREPARING
    machine.cluster.launch(launch)
    ended(machine.cluster, "job")
    assert machine.output("job") == b"started\n"


def test_a_group_over_its_memory_limit_is_killed(machine: Machine) -> None:
    code = (
        "import os, time\nos.fork()\nheld = bytearray(os.urandom(1)) * (150 << 20)\ntime.sleep(600)"
    )
    machine.start(code, limits=Resources(memory=Bytes(200 * MIB)))
    (replica,) = ended(machine.cluster, "job").replicas
    assert replica.cause is ExitCause.OUT_OF_MEMORY
    assert "more than its limit of 200 MiB" in replica.message


def test_memory_that_a_group_shares_counts_once(machine: Machine) -> None:
    code = (
        "import os, time\nheld = bytearray(os.urandom(1)) * (120 << 20)\n"
        "child = os.fork()\ntime.sleep(2)\nos._exit(0) if not child else os.waitpid(child, 0)"
    )
    machine.start(code, limits=Resources(memory=Bytes(200 * MIB)))
    (replica,) = ended(machine.cluster, "job").replicas
    assert replica.cause is ExitCause.FINISHED, replica.message


def test_the_memory_of_a_running_group_is_shown(machine: Machine) -> None:
    machine.start("held = bytearray(b'1') * (80 << 20)\n" + SLEEPS)
    until(lambda: observed(machine.cluster, "job").replicas[0].memory > 80 * MIB)


def test_a_launch_over_its_run_time_is_stopped_and_says_so(machine: Machine) -> None:
    machine.start(STUBBORN, run_within=timedelta(seconds=0.5), grace=timedelta(seconds=0.2))
    (replica,) = ended(machine.cluster, "job").replicas
    assert (replica.cause, replica.exit_code) == (ExitCause.OUT_OF_TIME, 137)
    assert "0:00:00.5" in replica.message


def test_a_stop_while_it_prepares_ends_it_before_it_starts(machine: Machine) -> None:
    folder = LocalClusterFolder(machine.home)
    machine.cluster._create_launch_folder(
        Launch(name="job", roles=(python_role("print('started')"),))
    )
    lock = os.open(folder.launch("job").preparing_lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        machine.start("print('started')")
        assert observed(machine.cluster, "job").replicas[0].phase is ReplicaPhase.PREPARING
        machine.cluster.stop("job", grace=timedelta(minutes=5))
        (replica,) = ended(machine.cluster, "job").replicas
    finally:
        os.close(lock)
    assert (replica.cause, replica.exit_code) == (ExitCause.STOPPED, None)
    assert b"started\n" not in machine.output("job").splitlines(keepends=True)


def test_a_stop_while_it_starts_ends_it(machine: Machine) -> None:
    machine.start(SLEEPS, ports=("http",), probe=ReadinessProbe(port="http", path="/health"))
    until(phase_is(machine.cluster, "job", ReplicaPhase.STARTING))
    machine.cluster.stop("job", grace=timedelta(seconds=5))
    assert ended(machine.cluster, "job").replicas[0].cause is ExitCause.STOPPED


#: Prints a line for each check, which it answers with the statuses of the second argument in turn, after a while.
SLOW_SERVER = """
import http.server, itertools, json, os, signal, sys, time
statuses = itertools.cycle(json.loads(sys.argv[2]))
print(os.getpid(), flush=True)
stopping = []
signal.signal(signal.SIGTERM, lambda *_: stopping.append(time.monotonic() + 1))
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.05)
        status = 503 if stopping else next(statuses)
        print("answers", status, flush=True)
        self.send_response(status); self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer)
server.timeout = 0.05
while not stopping or time.monotonic() < stopping[0]:
    server.handle_request()
"""


def server(
    name: str = "job",
    *,
    start_within: float = 30,
    code: str = SERVER,
    arguments: tuple[str, ...] = (),
    timeout: float = 30,
    failure_threshold: int = 3,
) -> Launch:
    """A server that is not ready after two checks in a row without the answer 200, and ended after three."""
    probe = ReadinessProbe(
        port="http",
        path="/",
        start_within=timedelta(seconds=start_within),
        period=timedelta(seconds=0.1),
        timeout=timedelta(seconds=timeout),
        failure_threshold=failure_threshold,
    )
    role = python_role(code, ports=("http",), probe=probe)
    return Launch(name=name, roles=(replace(role, argv=(*role.argv, "{port:http}", *arguments)),))


def test_a_server_runs_once_its_probe_is_answered(machine: Machine) -> None:
    machine.cluster.launch(server())
    until(phase_is(machine.cluster, "job", ReplicaPhase.RUNNING))
    endpoint = machine.cluster.endpoint("job", role="main", index=0, port="http")
    assert endpoint is not None
    assert endpoint.url.startswith("http://127.0.0.1:")


def test_a_server_that_does_not_answer_in_time_has_failed(machine: Machine) -> None:
    machine.cluster.launch(server(code=SLEEPS, start_within=0.5))
    (replica,) = ended(machine.cluster, "job").replicas
    assert replica.cause is ExitCause.FAILED
    assert "GET / was not answered with 200 within 0.5 seconds" in replica.message


def test_a_server_that_hangs_is_ended_with_the_reason(machine: Machine) -> None:
    launch = server(code=SLOW_SERVER, arguments=("[200]",), timeout=1)
    machine.cluster.launch(launch)
    until(phase_is(machine.cluster, "job", ReplicaPhase.RUNNING))
    (process,) = machine.printed_pids(1)
    process.signal(signal.SIGSTOP)
    (replica,) = ended(machine.cluster, "job").replicas
    assert (replica.cause, replica.exit_code) == (ExitCause.FAILED, 137)
    assert replica.message.startswith("the engine did not answer its health check for 0.3 s: ")
    assert replica.message.endswith("timed out")
    assert not process.alive()


def test_a_server_with_fewer_failures_in_a_row_than_the_limit_goes_on(machine: Machine) -> None:
    machine.cluster.launch(server(code=SLOW_SERVER, arguments=("[200, 503, 503]",)))
    until(lambda: machine.output("job").count(b"503") >= 6)
    until(phase_is(machine.cluster, "job", ReplicaPhase.RUNNING))


def test_a_server_is_not_ready_from_its_second_failure_until_it_answers(machine: Machine) -> None:
    # The file, once it exists, lets the server refuse.
    code = SLOW_SERVER.replace("503 if stopping", "503 if stopping or os.path.exists('refuse')")
    launch = server(code=code, arguments=("[200]",), failure_threshold=10_000)
    machine.cluster.launch(launch)
    until(phase_is(machine.cluster, "job", ReplicaPhase.RUNNING))
    (process,) = machine.printed_pids(1)
    refuse = Path(f"/proc/{process.pid}/cwd").resolve() / "refuse"
    refuse.touch()
    until(phase_is(machine.cluster, "job", ReplicaPhase.STARTING))
    (replica,) = machine.cluster.observe(["job"])["job"].replicas
    assert replica.message == "the engine does not answer its health check"
    refuse.unlink()
    until(phase_is(machine.cluster, "job", ReplicaPhase.RUNNING))
    assert process.alive()


def test_a_server_that_refuses_checks_while_it_stops_has_its_grace(machine: Machine) -> None:
    machine.cluster.launch(server(code=SLOW_SERVER, arguments=("[200]",)))
    until(phase_is(machine.cluster, "job", ReplicaPhase.RUNNING))
    machine.cluster.stop("job", grace=timedelta(minutes=1))
    (replica,) = ended(machine.cluster, "job").replicas
    assert machine.output("job").count(b"503") > 3
    assert (replica.cause, replica.exit_code) == (ExitCause.STOPPED, 0)


def test_a_port_that_a_stranger_took_is_replaced_by_another(machine: Machine) -> None:
    # The first start fails as a server does that finds its port taken; the test plays the stranger.
    code = (
        "import os, socket, sys, time\n"
        "if not os.path.exists('tried'):\n open('tried', 'w').close(); print(sys.argv[1], flush=True)\n"
        " time.sleep(1); sys.exit('address already in use')\n" + SERVER
    )
    machine.cluster.launch(server(code=code))

    def first_port() -> int:
        lines = [line for line in machine.output("job").splitlines() if line.isdigit()]
        return int(lines[0]) if lines else 0

    with socket.create_server(("127.0.0.1", until(first_port))) as stranger:
        until(phase_is(machine.cluster, "job", ReplicaPhase.RUNNING))
        endpoint = machine.cluster.endpoint("job", role="main", index=0, port="http")
        assert endpoint is not None
        assert endpoint.url != f"http://127.0.0.1:{stranger.getsockname()[1]}"


def test_ports_of_two_launches_differ_though_neither_listens(machine: Machine) -> None:
    for name in ("first", "second"):
        machine.start(SLEEPS, name=name, ports=("a", "b", "c"))
        until(phase_is(machine.cluster, name, ReplicaPhase.RUNNING))
    ports = [*machine.state("first").ports.values(), *machine.state("second").ports.values()]
    assert len(set(ports)) == 6


def test_a_gang_of_which_one_cannot_start_does_not_start(machine: Machine) -> None:
    good = python_role("print('started')\n" + SLEEPS, name="good", replicas=2)
    bad = replace(python_role("", name="bad"), argv=("/no/such/program",))
    machine.cluster.launch(Launch(name="job", roles=(good, bad)))
    replicas = ended(machine.cluster, "job").replicas
    assert [replica.cause for replica in replicas] == [ExitCause.NOT_PREPARED] * 3
    assert "/no/such/program" in replicas[2].message
    assert all("bad-0" in replica.message for replica in replicas[:2])


def test_a_gang_whose_supervisor_could_not_come_up_leaves_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = machine.cluster._start_supervisor

    def fail_for_the_second(*arguments: object, index: int, **values: object) -> None:
        if index == 1:
            raise ClusterUnavailable("no process could be started")
        start(*arguments, index=index, **values)  # type: ignore[arg-type]

    monkeypatch.setattr(machine.cluster, "_start_supervisor", fail_for_the_second)
    with pytest.raises(ClusterUnavailable):
        machine.cluster.launch(Launch(name="job", roles=(python_role(SLEEPS, replicas=2),)))
    assert machine.cluster.names() == frozenset()


def test_signals_and_descriptors_of_the_launcher_do_not_reach_the_job(machine: Machine) -> None:
    inherited = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(inherited, True)
    previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        machine.start(
            "import os, signal; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1]);"
            "print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, os.getsid(0) == os.getpid())"
        )
    finally:
        signal.signal(signal.SIGTERM, previous)
        os.close(inherited)
    ended(machine.cluster, "job")
    assert machine.output("job") == b"[0, 1, 2]\nTrue True\n"


def test_a_polite_shutdown_of_the_machine_stops_the_job_with_its_grace(machine: Machine) -> None:
    machine.start(SLEEPS)
    until(phase_is(machine.cluster, "job", ReplicaPhase.RUNNING))
    machine.state().supervisor.signal(signal.SIGTERM)
    assert ended(machine.cluster, "job").replicas[0].cause is ExitCause.STOPPED


def test_the_supervisor_leaves_when_its_job_has_ended(machine: Machine) -> None:
    machine.start("pass")
    ended(machine.cluster, "job")
    supervisor = machine.state().supervisor
    until(lambda: not supervisor.alive())


def test_the_supervisor_imports_no_django() -> None:
    code = (
        "import sys, controlplane.adapters.clusters.local.supervisor;"
        "print([name for name in sys.modules if name.split('.')[0] in ('django', 'psutil')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"
