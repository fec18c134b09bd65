from __future__ import annotations

from pathlib import Path

import pytest

from launcher.postgres import (
    BinariesOrigin,
    NoCompatiblePostgres,
    PostgresBinaries,
    choose_postgres_binaries,
)

_SYSTEM = PostgresBinaries(folder=Path("/system/15"), major=15, origin=BinariesOrigin.SYSTEM)
_WHEEL = PostgresBinaries(folder=Path("/wheel/18"), major=18, origin=BinariesOrigin.WHEEL)


def _data(folder: Path, version: int) -> Path:
    (folder / "PG_VERSION").write_text(f"{version}\n")
    return folder


def test_new_data_takes_the_first_preference(tmp_path: Path) -> None:
    assert choose_postgres_binaries(data=tmp_path, candidates=[_SYSTEM, _WHEEL]) is _SYSTEM


def test_existing_data_keeps_its_version(tmp_path: Path) -> None:
    assert (
        choose_postgres_binaries(data=_data(tmp_path, 18), candidates=[_SYSTEM, _WHEEL]) is _WHEEL
    )


def test_a_version_that_is_missing_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(NoCompatiblePostgres) as refused:
        choose_postgres_binaries(data=_data(tmp_path, 13), candidates=[_SYSTEM, _WHEEL])
    assert "PostgreSQL 13, and this machine has only PostgreSQL 15 (system" in str(refused.value)
    assert "apt-get install postgresql-13" in str(refused.value)


def test_without_any_installation_the_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoCompatiblePostgres, match="apt-get install postgresql"):
        choose_postgres_binaries(data=tmp_path, candidates=[])
