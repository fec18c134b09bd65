"""The processes of the product: setup steps, services, readiness probes and stop order.

Services stop in order. The gateway posts its last usage to the web server when it stops, so it stops first;
the database stops last.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from launcher.configuration import LauncherConfiguration
from launcher.postgres import PreparedPostgres
from process_supervision.processes import http_check_error


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpProbe:
    """Readiness probe: true once a URL returns 200."""

    url: str

    def __call__(self) -> bool:
        parts = urlsplit(self.url)
        return not http_check_error(parts.path, port=parts.port, host=parts.hostname or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLineProbe:
    """Readiness probe: true once the process has printed a matching line."""

    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSpec:
    """A supervised process."""

    name: str
    command: tuple[str, ...]
    ready: Callable[[], bool] | LogLineProbe | None = None
    #: Frequent lines that are matched for readiness, but not logged.
    ignored_output: re.Pattern[str] | None = None
    stop_with: signal.Signals = signal.SIGTERM
    grace_seconds: float = 10.0
    stop_order: int = 0
    before_start: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStep:
    """A command that has to succeed before the services start."""

    name: str
    command: tuple[str, ...]


def setup_steps(
    configuration: LauncherConfiguration, *, collect_static: bool
) -> tuple[SetupStep, ...]:
    manage = configuration.manage
    collect = SetupStep(
        name="collecting static files",
        command=(*manage, "collectstatic", "--noinput", "--verbosity", "0"),
    )
    first = SetupStep(name="creating what every product has", command=(*manage, "bootstrap"))
    if configuration.demo:
        first = SetupStep(
            name="making a company and a day of its work (minutes, the first time)",
            command=(*manage, "demo", "make"),
        )
    return (
        SetupStep(name="migrating the database", command=(*manage, "migrate", "--noinput")),
        *((collect,) if collect_static else ()),
        first,
    )


def postgres_service(server: PreparedPostgres) -> ServiceSpec:
    return ServiceSpec(
        name="postgres",
        command=tuple(server.command()),
        ready=server.is_ready,
        stop_with=signal.SIGINT,
        grace_seconds=30.0,
        stop_order=2,
        before_start=server.remove_stale_server,
    )


def product_services(configuration: LauncherConfiguration) -> tuple[ServiceSpec, ...]:
    python = configuration.python
    # Root is meant, where it is root: the worker gives each job an account of its own.
    quiet = ("-W", "ignore:You're running the worker with superuser privileges")
    celery = (python, *quiet, "-m", "celery", "--app", "config.celery", "--quiet")
    return (
        ServiceSpec(
            name="web",
            command=(python, "-m", "config.web_server"),
            ready=HttpProbe(url=f"{configuration.web_url}/readyz"),
            stop_order=1,
        ),
        ServiceSpec(
            name="worker",
            command=(
                *(*celery, "worker", "--pool", "prefork", "--concurrency", "2"),
                *("--queues", "celery,beat", "--loglevel", "INFO", "--hostname", "ninefold@%h"),
                *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            ),
            # A task from the beat has succeeded: broker, beat and worker all work.
            ready=LogLineProbe(pattern=re.compile(r"\bTask \S+\[\S+\] succeeded in ")),
            ignored_output=re.compile(
                r"\bTask \S+\[\S+\] (received|succeeded in )|No hostname was supplied"
            ),
            stop_order=1,
        ),
        ServiceSpec(
            name="beat",
            command=(
                *(*celery, "beat", "--loglevel", "INFO", "--pidfile", ""),
                *("--schedule", str(configuration.layout.run / "beat-schedule")),
            ),
            ignored_output=re.compile(r"Scheduler: Sending due task"),
        ),
        ServiceSpec(
            name="gateway",
            command=(python, "-m", "gateway"),
            ready=HttpProbe(url=f"{configuration.gateway_url}/healthz"),
            grace_seconds=12.0,
        ),
        ServiceSpec(
            name="watcher",
            command=(
                *(python, "-m", "launcher.wait_for_registration", "cluster"),
                *(*configuration.manage, "watch_clusters"),
            ),
            stop_order=1,
        ),
        _demo_service(configuration) if configuration.demo else _agent_service(configuration),
    )


def _agent_service(configuration: LauncherConfiguration) -> ServiceSpec:
    """Return the service that sends the metrics of the cards of this machine."""
    layout = configuration.layout
    return ServiceSpec(
        name="agent",
        command=(
            *(configuration.python, "-m", "launcher.wait_for_registration", "node"),
            *(str(layout.agent_token), str(layout.run / "agent-sequence")),
        ),
    )


def _demo_service(configuration: LauncherConfiguration) -> ServiceSpec:
    """Return the service that reports for simulated processes and submits jobs."""
    return ServiceSpec(name="demo", command=(*configuration.manage, "demo", "run"))
