"""The product as a table: which steps prepare it, which processes are it, and when each is ready.

Processes stop in waves. The gateway posts its last usage to the web as it leaves, so it goes first;
the database goes last.
"""

from __future__ import annotations

import http.client
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from launcher.configuration import Configuration
from launcher.postgres import Postgres

_PROBE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """True once an address answers 200."""

    url: str

    def __call__(self) -> bool:
        parts = urlsplit(self.url)
        # Directly, whatever proxy the environment names for the outside.
        connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=_PROBE_SECONDS
        )
        try:
            connection.request("GET", parts.path)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """True once the process has printed a line that matches."""

    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A process that is kept running."""

    name: str
    command: tuple[str, ...]
    ready: Callable[[], bool] | Says | None = None
    #: Lines of everyday health, several a second; read for readiness, then dropped.
    noise: re.Pattern[str] | None = None
    stop_with: signal.Signals = signal.SIGTERM
    grace_seconds: float = 10.0
    stop_wave: int = 0
    before_start: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command that has to succeed before the services start."""

    name: str
    command: tuple[str, ...]


def steps(configuration: Configuration, *, collect_static: bool) -> tuple[Step, ...]:
    manage = (configuration.python, "manage.py")
    collect = Step(
        name="collecting static files",
        command=(*manage, "collectstatic", "--noinput", "--verbosity", "0"),
    )
    first = Step(name="creating what every product has", command=(*manage, "bootstrap"))
    if configuration.demo:
        first = Step(
            name="making a company and a day of its work (minutes, the first time)",
            command=(*manage, "demo", "make"),
        )
    return (
        Step(name="migrating the database", command=(*manage, "migrate", "--noinput")),
        *((collect,) if collect_static else ()),
        first,
    )


def postgres_service(server: Postgres) -> Service:
    return Service(
        name="postgres",
        command=tuple(server.command()),
        ready=server.is_ready,
        stop_with=signal.SIGINT,
        grace_seconds=30.0,
        stop_wave=2,
        before_start=server.clear_the_way,
    )


def services(configuration: Configuration) -> tuple[Service, ...]:
    python = configuration.python
    # Root is meant, where it is root: the worker gives each job an account of its own.
    quiet = ("-W", "ignore:You're running the worker with superuser privileges")
    celery = (python, *quiet, "-m", "celery", "--app", "config.celery", "--quiet")
    return (
        Service(
            name="web",
            command=(python, "-m", "config.web_server"),
            ready=Answers(url=f"{configuration.web_url}/readyz"),
            stop_wave=1,
        ),
        Service(
            name="worker",
            command=(
                *(*celery, "worker", "--pool", "prefork", "--concurrency", "2"),
                *("--queues", "celery,beat", "--loglevel", "INFO", "--hostname", "ninefold@%h"),
                *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            ),
            # A turn of a loop that came from the beat: broker, beat and worker all work.
            ready=Says(pattern=re.compile(r"\bTask \S+\[\S+\] succeeded in ")),
            noise=re.compile(
                r"\bTask \S+\[\S+\] (received|succeeded in )|No hostname was supplied"
            ),
            stop_wave=1,
        ),
        Service(
            name="beat",
            command=(
                *(*celery, "beat", "--loglevel", "INFO", "--pidfile", ""),
                *("--schedule", str(configuration.layout.run / "beat-schedule")),
            ),
            noise=re.compile(r"Scheduler: Sending due task"),
        ),
        Service(
            name="gateway",
            command=(python, "-m", "gateway"),
            ready=Answers(url=f"{configuration.gateway_url}/healthz"),
            grace_seconds=12.0,
        ),
        Service(
            name="watcher",
            command=(python, "-m", "launcher.lobby", python, "manage.py", "watch_clusters"),
            stop_wave=1,
        ),
        _demo(configuration) if configuration.demo else _agent(configuration),
    )


def _agent(configuration: Configuration) -> Service:
    """Sends the figures of this machine's cards."""
    layout = configuration.layout
    return Service(
        name="agent",
        command=(
            *(configuration.python, "-m", "launcher.agent"),
            *(str(layout.agent_token), str(layout.run / "agent-sequence")),
        ),
    )


def _demo(configuration: Configuration) -> Service:
    """Speaks for simulated processes and submits what comes up."""
    return Service(name="demo", command=(configuration.python, "manage.py", "demo", "run"))
