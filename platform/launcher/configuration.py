"""Configuration from the environment, read once when a command starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.home_folder import HomeLayout

PROJECT = Path(__file__).resolve().parents[2]
WEB_PORT = "NINEFOLD_WEB_PORT"
GATEWAY_PORT = "NINEFOLD_GATEWAY_PORT"
DRAIN_SECONDS = "NINEFOLD_GATEWAY_DRAIN_SECONDS"
DEMO = "NINEFOLD_DEMO"
_WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 - recognised, never chosen


class InvalidLauncherSetting(ValueError):
    """A variable has an invalid value; the message names both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherConfiguration:
    """One product on this machine: its files, its addresses, and what its processes inherit."""

    project: Path
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
        cls, environment: Mapping[str, str] = os.environ, *, project: Path = PROJECT
    ) -> LauncherConfiguration:
        """:raises InvalidLauncherSetting: if a port is not a number from 1 to 65535."""
        home = Path(environment.get("NINEFOLD_HOME") or project / "var")
        return cls(
            project=project,
            layout=HomeLayout(home=(project / home).resolve()),
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
