"""Configuration from the environment, read once when a command starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.home_folder import HomeLayout

PROJECT = Path(__file__).resolve().parents[2]
#: The checkout that this package runs from; None if it is installed from a wheel.
CHECKOUT = PROJECT if (PROJECT / "manage.py").is_file() else None
WEB_PORT = "NINEFOLD_WEB_PORT"
GATEWAY_PORT = "NINEFOLD_GATEWAY_PORT"
DRAIN_SECONDS = "NINEFOLD_GATEWAY_DRAIN_SECONDS"
DEMO = "NINEFOLD_DEMO"
#: Verbs that have a target of their own in the Makefile for the demonstration.
_DEMO_TARGETS = {"up": "demo", "down": "demo-down"}
_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 - recognised, never chosen


class InvalidLauncherSetting(ValueError):
    """A variable has an invalid value; the message names both."""


def default_home(
    environment: Mapping[str, str] = os.environ, *, project: Path | None = CHECKOUT
) -> Path:
    """Return the folder of all files where ``NINEFOLD_HOME`` is unset.

    :param project: a checkout, whose folder ``var`` it is; None for an installed package.
    """
    if project is not None:
        return project / "var"
    if os.geteuid() == 0:
        # Not below root's own folder, which jobs and PostgreSQL, with accounts of their own, cannot enter.
        return Path("/var/lib/ninefold")
    data = environment.get("XDG_DATA_HOME", "")
    return (
        Path(data) if data.startswith("/") else Path("~/.local/share").expanduser()
    ) / "ninefold"


def manage_arguments(project: Path | None = CHECKOUT) -> tuple[str, ...]:
    """Return what follows ``python`` in a management command that runs in the checkout, or without one."""
    # -P: an installed package does not import what happens to lie in the working folder.
    return ("-P", "-m", "config.manage") if project is None else ("manage.py",)


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherConfiguration:
    """One product on this machine: its files, its addresses, and what its processes inherit."""

    #: The checkout; None for an installed package.
    project: Path | None
    layout: HomeLayout
    bind: str
    web_port: int
    gateway_port: int
    #: An external PostgreSQL; None for the embedded one.
    database_url: str | None
    environment: Mapping[str, str]
    #: Run the sample company on simulated clusters instead of this machine.
    demo: bool = False

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] = os.environ, *, project: Path | None = CHECKOUT
    ) -> LauncherConfiguration:
        """Read the variables; a relative home is below the checkout, without one below the working folder.

        :raises InvalidLauncherSetting: if a port is not a number from 1 to 65535.
        """
        home = Path(environment.get("NINEFOLD_HOME") or default_home(environment, project=project))
        return cls(
            project=project,
            layout=HomeLayout(home=((project or Path()) / home).resolve()),
            bind=environment.get("NINEFOLD_BIND") or "127.0.0.1",
            web_port=_read_port(environment, WEB_PORT, 8000),
            gateway_port=_read_port(environment, GATEWAY_PORT, 8001),
            database_url=environment.get("NINEFOLD_DATABASE_URL") or None,
            environment=dict(environment),
            demo=environment.get(DEMO, "") not in ("", "0"),
        )

    @property
    def python(self) -> str:
        return sys.executable

    @property
    def working_folder(self) -> Path:
        """The working folder of the product's processes."""
        return self.project or self.layout.home

    @property
    def manage(self) -> tuple[str, ...]:
        """A management command without its name and arguments, for a process in the working folder."""
        return (self.python, *manage_arguments(self.project))

    def user_command(self, verb: str) -> str:
        """Return what a user types for ``up``, ``down`` and the like."""
        if self.project is None:
            return f"{DEMO}=1 ninefold-server {verb}" if self.demo else f"ninefold-server {verb}"
        return f"make {_DEMO_TARGETS.get(verb, verb)}" if self.demo else f"make {verb}"

    @property
    def web_url(self) -> str:
        return f"http://{self._reachable_host}:{self.web_port}"

    @property
    def gateway_url(self) -> str:
        return f"http://{self._reachable_host}:{self.gateway_port}"

    @property
    def _reachable_host(self) -> str:
        host = "127.0.0.1" if self.bind in _WILDCARDS else self.bind
        return f"[{host}]" if ":" in host else host

    def child_environment(self, *, database_url: str) -> dict[str, str]:
        """What every process of the product is given; secrets stay in their files."""
        return {
            **self.environment,
            "NINEFOLD_HOME": str(self.layout.home),
            "NINEFOLD_DATABASE_URL": database_url,
            "NINEFOLD_BIND": self.bind,
            WEB_PORT: str(self.web_port),
            GATEWAY_PORT: str(self.gateway_port),
            "NINEFOLD_CONTROL_URL": self.environment.get("NINEFOLD_CONTROL_URL") or self.web_url,
            "NINEFOLD_GATEWAY_URL": self.environment.get("NINEFOLD_GATEWAY_URL")
            or self.gateway_url,
            # Shorter than the supervisor's patience with it.
            DRAIN_SECONDS: self.environment.get(DRAIN_SECONDS) or "8",
            # The environment's own programs first: uv, which creates engines' environments.
            "PATH": f"{Path(self.python).parent}:{self.environment.get('PATH', os.defpath)}",
            "TMPDIR": str(self.layout.temporary),
            "PYTHONUNBUFFERED": "1",
        }


def _read_port(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise InvalidLauncherSetting(
            f"{name} is {text!r}; it must be a port number from 1 to 65535"
        )
    return int(text)
