"""The product's own worker and beat, as processes that can be killed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import psutil

from launcher.configuration import PROJECT, LauncherConfiguration
from launcher.services import product_services
from process_supervision.processes import kill_until_exited, processes_of_session
from tests.contract.waiting import until

#: Seconds for what takes controllers a few turns of their loops, their start included, on a machine that others
#: use too: two of them started beside other tests have needed more than 15.
PATIENCE = 120.0


class Controller:
    """One service of the product, by the very command that the product starts it with."""

    def __init__(
        self, name: str, *, configuration: LauncherConfiguration, database_url: str
    ) -> None:
        self.name = name
        self._command = next(
            service.command for service in product_services(configuration) if service.name == name
        )
        self._environment = configuration.child_environment(database_url=database_url)
        self._log = configuration.layout.logs / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def set_variable(self, name: str, value: str) -> None:
        """For what is started from now on."""
        self._environment[name] = value

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=PROJECT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """``kill -9`` of the process and of its pool: nothing of it does anything more."""
        if self._process is not None:
            kill_until_exited(partial(processes_of_session, self._process.pid), within=10)
            self._process.wait(timeout=10)
            self._process = None

    def kill_pool_process(self) -> None:
        """``kill -9`` of one process of its pool, as the kernel does where memory is short."""
        assert self._process is not None
        psutil.Process(self._process.pid).children()[0].kill()

    @property
    def has_ended(self) -> bool:
        """Whether it ended by itself since it was started."""
        return self._process is not None and self._process.poll() is not None

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def says(self, pattern: str, *, after: int = 0) -> None:
        """Return once a line of its log matches, ``after`` so many characters of it.

        :raises AssertionError: if none does in time, or the process ends before.
        """

        def matches() -> bool:
            text = self.log()
            if re.search(pattern, text[after:]):
                return True
            if self.has_ended:
                raise AssertionError(f"{self.name} has ended:\n{text[-4000:]}")
            return False

        until(matches, within=PATIENCE, what=f"{self.name} says {pattern!r}")


def configured(
    home: Path, *, broker_url: str, plugins: Path, variables: Mapping[str, str]
) -> LauncherConfiguration:
    """The product in that home, as ``make up`` would read it from the environment."""
    inherited = {name: os.environ[name] for name in ("LANG", "PATH") if name in os.environ}
    configuration = LauncherConfiguration.from_environment(
        {
            **inherited,
            "NINEFOLD_HOME": str(home),
            "NINEFOLD_BROKER_URL": broker_url,
            "DJANGO_SETTINGS_MODULE": "config.settings.base",
            "PYTHONPATH": os.pathsep.join(map(str, (plugins, PROJECT, PROJECT / "platform"))),
            **variables,
        }
    )
    configuration.layout.create()
    return configuration
