"""Readers of ``tests/fixtures/upgrade``: what an installation of the earlier version left (see its README.md)."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
FIXTURE = ROOT / "tests" / "fixtures" / "upgrade"


def read(name: str) -> Any:
    """The content of a JSON file of the fixture."""
    return json.loads((FIXTURE / name).read_text(encoding="utf-8"))


INSTALLATION: Mapping[str, Any] = read("installation.json")
#: The instant of the dump.
DUMPED_AT = datetime.fromisoformat(INSTALLATION["at"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One recorded HTTP request with its response."""

    at: datetime
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int
    response_headers: Mapping[str, str]
    response: bytes

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def exchanges(name: str) -> list[Exchange]:
    """The exchanges of ``requests/<name>.json``, in the order of recording."""
    return [
        Exchange(
            **{
                **recorded,
                "at": datetime.fromisoformat(recorded["at"]),
                "body": _content(recorded["body"]),
                "response": _content(recorded["response"]),
            }
        )
        for recorded in read(f"requests/{name}.json")
    ]


def _content(recorded: Mapping[str, str]) -> bytes:
    if "base64" in recorded:
        return base64.b64decode(recorded["base64"])
    return recorded.get("text", "").encode()


def copy_launch(name: str, *, home: Path) -> Path:
    """Put the folder of a launch of the local cluster where ``home`` has those of its launches."""
    return Path(shutil.copytree(FIXTURE / "launches" / name, home / "jobs" / name))


def restore_simulated_cluster(home: Path) -> None:
    """Put the file in which the simulated cluster keeps its launches into that folder."""
    home.mkdir(parents=True, exist_ok=True)
    file = sqlite3.connect(home / "simulated.sqlite3")
    file.executescript((FIXTURE / "simulated.sql").read_text(encoding="utf-8"))
    file.close()
