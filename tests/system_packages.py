"""Install system programs that some tests use where that is possible, otherwise print their names.

``python -m tests.system_packages redis-server prometheus``. Only root on Debian can install; for anyone
else the tests in question are skipped, and this prints what to install. Never prompts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

#: Debian package → the program that shows whether it is installed.
PROGRAMS: Mapping[str, str] = MappingProxyType(
    {
        "redis-server": "redis-server",
        "chromium-headless-shell": "chromium-headless-shell",
        "prometheus": "prometheus",
    }
)


def find_missing_packages(packages: Sequence[str]) -> list[str]:
    return [package for package in packages if shutil.which(PROGRAMS[package]) is None]


def install_packages(packages: Sequence[str]) -> bool:
    """Whether apt installed them all."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    commands = (
        ("apt-get", "update", "--quiet"),
        ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages),
    )
    for command in commands:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if done.returncode != 0:
            print(done.stderr.decode(errors="replace").strip())
            return False
    return True


def main(packages: Sequence[str]) -> int:
    missing_packages = find_missing_packages(packages)
    if not missing_packages:
        return 0
    names = " ".join(missing_packages)
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"installing {names}", flush=True)
        if install_packages(missing_packages):
            return 0
    print(f"not installed: {names}; tests that need it are skipped (apt-get install {names})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
