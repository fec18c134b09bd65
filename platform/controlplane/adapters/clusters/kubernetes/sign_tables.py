"""What words of a cluster mean: the tables of ``signs.toml``, read once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from controlplane.domain.faults import FaultLevel


@cache
def table(*path: str) -> Mapping[str, Any]:
    """One table of the file."""
    found: Mapping[str, Any] = _whole()
    for part in path:
        found = found[part]
    return found


@cache
def levels(*path: str) -> Mapping[str, FaultLevel]:
    """Word → level, of a table that lists words under levels."""
    lists: Mapping[str, Sequence[str]] = table(*path)
    return {word: FaultLevel[level] for level, words in lists.items() for word in words}


@cache
def _whole() -> Mapping[str, Any]:
    return tomllib.loads(files(__package__).joinpath("signs.toml").read_text(encoding="utf-8"))
