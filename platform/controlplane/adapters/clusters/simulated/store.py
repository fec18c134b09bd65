"""State of a simulated cluster in one SQLite file that several processes share.

::

    launches   one row for each Launch: its record, and when it was launched, stopped, handed over
    troubles   injected faults, from when until when; rows are ended, never changed
    held       the instant at which the clock is frozen, if it is

Each call opens the file anew: that takes a fifth of a millisecond, and no connection crosses a fork or a
thread.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from controlplane.domain.simulation.launch_lifecycle import (
    ReplicaLocation,
    SimulatedFault,
    SimulatedFaultKind,
    SimulatedLaunchRecord,
)
from controlplane.domain.simulation.run_profiles import RunProfile
from controlplane.ports.clusters import ClusterUnavailable

_SCHEMA = """
CREATE TABLE IF NOT EXISTS launches (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    launched_at REAL NOT NULL,
    reports INTEGER NOT NULL,
    stop_at REAL,
    kill_at REAL,
    handed_over_at REAL,
    reported_step INTEGER NOT NULL DEFAULT 0,
    reported_at REAL
);
CREATE TABLE IF NOT EXISTS troubles (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    node TEXT NOT NULL,
    card INTEGER,
    since REAL NOT NULL,
    until REAL,
    slowness REAL NOT NULL,
    words TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS held (one INTEGER PRIMARY KEY CHECK (one = 1), at REAL NOT NULL);
"""
_WAIT_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTarget:
    """Where the processes of a Launch report, and as whom."""

    url: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLaunch:
    """A row of ``launches``."""

    number: int
    record: SimulatedLaunchRecord
    #: Names of the ports of each role.
    ports: Mapping[str, tuple[str, ...]]
    #: The secret that its engine demands from callers.
    engine_key: str
    report: ReportTarget | None
    #: What it takes in the file, in bytes.
    size: int
    #: The last step that was reported, and when.
    reported_step: int = 0
    reported_at: datetime | None = None


class SimulationStore:
    """The file of one simulated cluster."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._open_transaction() as file:
            file.execute("PRAGMA journal_mode=WAL")
            file.executescript(_SCHEMA)
        # The tokens of attempts are in it.
        path.chmod(0o600)

    def add(self, stored: StoredLaunch) -> bool:
        """Keep a new Launch; False if there is one of that name already."""
        with self._open_transaction() as file:
            added = file.execute(
                "INSERT OR IGNORE INTO launches (name, record, launched_at, reports)"
                " VALUES (?, ?, ?, ?)",
                (
                    stored.record.name,
                    _to_json(stored),
                    stored.record.launched_at.timestamp(),
                    stored.record.reports,
                ),
            )
            return added.rowcount == 1

    def named(self, names: Collection[str]) -> list[StoredLaunch]:
        """Those that exist, in no order."""
        with self._open_transaction() as file:
            rows = file.execute(_BY_NAME, (json.dumps(list(names)),))
            return [_from_row(row) for row in rows]

    def unreported(self) -> list[StoredLaunch]:
        """Those with a receiver that have not handed over, the least recently reported first."""
        with self._open_transaction() as file:
            return [_from_row(row) for row in file.execute(_UNREPORTED)]

    def names(self) -> frozenset[str]:
        with self._open_transaction() as file:
            return frozenset(name for (name,) in file.execute("SELECT name FROM launches"))

    def stop(self, name: str, *, at: datetime, kill_at: datetime) -> None:
        """The first call wins."""
        with self._open_transaction() as file:
            file.execute(
                "UPDATE launches SET stop_at = ?, kill_at = ? WHERE name = ? AND stop_at IS NULL",
                (at.timestamp(), kill_at.timestamp(), name),
            )

    def reported(self, name: str, *, step: int, at: datetime) -> None:
        with self._open_transaction() as file:
            file.execute(
                "UPDATE launches SET reported_step = ?, reported_at = ? WHERE name = ?",
                (step, at.timestamp(), name),
            )

    def record_handover(self, name: str, *, at: datetime) -> None:
        with self._open_transaction() as file:
            file.execute(
                "UPDATE launches SET handed_over_at = ? WHERE name = ? AND handed_over_at IS NULL",
                (at.timestamp(), name),
            )

    def remove(self, name: str) -> None:
        with self._open_transaction() as file:
            file.execute("DELETE FROM launches WHERE name = ?", (name,))

    def faults(self) -> tuple[SimulatedFault, ...]:
        """Every one there has been, the oldest first."""
        with self._open_transaction() as file:
            rows = file.execute(
                "SELECT kind, node, card, since, until, slowness, words FROM troubles ORDER BY number"
            )
            return tuple(
                SimulatedFault(
                    kind=SimulatedFaultKind(kind),
                    node=node,
                    card=card,
                    since=_datetime_of(since),
                    until=None if until is None else _datetime_of(until),
                    slowness=slowness,
                    message=message,
                )
                for kind, node, card, since, until, slowness, message in rows
            )

    def fault(self, fault: SimulatedFault) -> None:
        with self._open_transaction() as file:
            file.execute(
                "INSERT INTO troubles (kind, node, card, since, slowness, words)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    fault.kind.value,
                    fault.node,
                    fault.card,
                    fault.since.timestamp(),
                    fault.slowness,
                    fault.message,
                ),
            )

    def recover(self, node: str, *, card: int | None, at: datetime) -> int:
        """Clear the faults of that card, or with no card of the node and all of its cards; returns how many."""
        with self._open_transaction() as file:
            ended = file.execute(
                "UPDATE troubles SET until = ? WHERE node = ? AND until IS NULL"
                " AND (? IS NULL OR card = ?)",
                (at.timestamp(), node, card, card),
            )
            return ended.rowcount

    def held(self) -> datetime | None:
        """The time at which the clock is frozen; None while it runs."""
        with self._open_transaction() as file:
            row = file.execute("SELECT at FROM held").fetchone()
            return None if row is None else _datetime_of(row[0])

    def hold(self, at: datetime | None) -> None:
        with self._open_transaction() as file:
            file.execute("DELETE FROM held")
            if at is not None:
                file.execute("INSERT INTO held (one, at) VALUES (1, ?)", (at.timestamp(),))

    @contextmanager
    def _open_transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction.

        :raises ClusterUnavailable: if the file cannot be read or written now.
        """
        try:
            with closing(sqlite3.connect(self._path, timeout=_WAIT_SECONDS)) as file, file:
                # Commits survive the death of every process. A power failure may lose them, and they were
                # simulated; each would otherwise wait for the disk, as closing the last connection checkpoints.
                file.execute("PRAGMA synchronous=OFF")
                yield file
        except sqlite3.OperationalError as failure:
            raise ClusterUnavailable(
                f"the records of the simulated cluster in {self._path.parent}: {failure}"
            ) from failure


_BY_NAME = """
SELECT number, record, launched_at, stop_at, kill_at, handed_over_at, reported_step, reported_at FROM launches
WHERE name IN (SELECT value FROM json_each(?))
"""
_UNREPORTED = """
SELECT number, record, launched_at, stop_at, kill_at, handed_over_at, reported_step, reported_at FROM launches
WHERE reports AND handed_over_at IS NULL ORDER BY reported_at, number
"""


def _datetime_of(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _optional_datetime(seconds: float | None) -> datetime | None:
    return None if seconds is None else _datetime_of(seconds)


def _to_json(stored: StoredLaunch) -> str:
    record = stored.record
    return json.dumps(
        {
            "name": record.name,
            "places": [[one.role, one.index, one.node, one.cards] for one in record.locations],
            "course": asdict(record.profile),
            "speed": record.speed,
            "reports": record.reports,
            "probed": record.probed,
            "run_within": record.run_within and record.run_within.total_seconds(),
            "begun": record.initial_work,
            "labels": dict(record.labels),
            "ports": {role: list(ports) for role, ports in stored.ports.items()},
            "engine_key": stored.engine_key,
            "report": stored.report and [stored.report.url, stored.report.token],
        },
        ensure_ascii=False,
    )


def _from_row(row: tuple[Any, ...]) -> StoredLaunch:
    number, text, launched_at, stop_at, kill_at, handed_over_at, step, reported_at = row
    data = json.loads(text)
    within, report = data["run_within"], data["report"]
    return StoredLaunch(
        number=number,
        record=SimulatedLaunchRecord(
            name=data["name"],
            locations=tuple(_parse_locations(data["places"])),
            profile=RunProfile(**data["course"]),
            launched_at=_datetime_of(launched_at),
            speed=data["speed"],
            reports=data["reports"],
            probed=data["probed"],
            run_within=None if within is None else timedelta(seconds=within),
            initial_work=data["begun"],
            labels=data["labels"],
            stop_at=_optional_datetime(stop_at),
            kill_at=_optional_datetime(kill_at),
            handed_over_at=_optional_datetime(handed_over_at),
        ),
        ports={role: tuple(ports) for role, ports in data["ports"].items()},
        engine_key=data["engine_key"],
        report=None if report is None else ReportTarget(url=report[0], token=report[1]),
        size=len(text),
        reported_step=step,
        reported_at=_optional_datetime(reported_at),
    )


def _parse_locations(rows: Iterable[list[Any]]) -> Iterator[ReplicaLocation]:
    for role, index, node, cards in rows:
        yield ReplicaLocation(role=role, index=index, node=node, cards=tuple(cards))
