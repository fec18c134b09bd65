"""Tables of a vendor's files, of which every key is understood or refused."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, get_type_hints

from controlplane.domain.common.topology import InvalidCardGroups, parse_card_groups

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Built = TypeVar("_Built", bound="DataclassInstance")


class InvalidChipProfile(ValueError):
    """A file that describes no vendor; the message names the file, the place and what would be right."""


class TomlSection:
    """One table of the file. Each key is read once; ``done`` rejects unread keys."""

    def __init__(self, values: Mapping[str, Any], *, at: str) -> None:
        self._left = dict(values)
        self.at = at

    def refuse(self, key: str, wrong: str) -> NoReturn:
        raise InvalidChipProfile(f"{self.at}: {key} {wrong}")

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        if key not in self._left:
            return default
        value = self._left.pop(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.refuse(key, f"is {value!r}, which is of the wrong type")
        return value

    def text(self, key: str, default: str = "") -> str:
        return str(self.take(key, str, default))

    def required(self, key: str) -> str:
        return self.text(key) or self.refuse(key, "is required: a non-empty text")

    def whole(self, key: str, default: int = 0) -> int:
        value: int = self.take(key, int, default)
        return value if value >= 0 else self.refuse(key, f"is {value}; it cannot be negative")

    def number(self, key: str) -> float | None:
        value = self.take(key, (int, float))
        if value is not None and value <= 0:
            self.refuse(key, f"is {value}; leave it out where it is not known")
        return None if value is None else float(value)

    def texts(self, key: str) -> tuple[str, ...]:
        values = self.take(key, list, [])
        if not all(isinstance(value, str) and value for value in values):
            self.refuse(key, f"is {values!r}; it must be a list of texts")
        return tuple(values)

    def sizes(self, key: str) -> tuple[int, ...]:
        values = self.take(key, list, [])
        if not all(isinstance(value, int) and value > 0 for value in values):
            self.refuse(key, f"is {values!r}; it must be a list of positive whole numbers")
        return tuple(sorted(values))

    def values(self, key: str) -> tuple[float, ...]:
        found = self.take(key, list, [])
        if not all(isinstance(value, (int, float)) for value in found):
            self.refuse(key, f"is {found!r}; it must be a list of numbers")
        return tuple(float(value) for value in found)

    def text_map(self, key: str) -> Mapping[str, str]:
        values = self.take(key, dict, {})
        if not all(isinstance(value, str) for value in values.values()):
            self.refuse(key, f"is {values!r}; it must be a table of texts")
        return dict(values)

    def groups(self, key: str) -> tuple[tuple[int, ...], ...]:
        text = self.text(key)
        try:
            return parse_card_groups(text) if text else ()
        except InvalidCardGroups as wrong:
            self.refuse(key, f"is wrong: {wrong}")

    def section(self, key: str) -> TomlSection | None:
        values = self.take(key, dict)
        return None if values is None else TomlSection(values, at=f"{self.at} [{key}]")

    def sections(self, key: str) -> Iterator[tuple[str, TomlSection]]:
        """The tables of a table, by name."""
        for name, values in self.take(key, dict, {}).items():
            if not isinstance(values, dict):
                self.refuse(f"{key}.{name}", f"is {values!r}; it must be a table")
            yield name, TomlSection(values, at=f"{self.at} [{key}.{name}]")

    def listed(self, key: str) -> Iterator[TomlSection]:
        """The tables of a list of tables, in order."""
        for place, values in enumerate(self.take(key, list, []), start=1):
            if not isinstance(values, dict):
                self.refuse(key, f"has {values!r}; it must be a list of tables")
            yield TomlSection(values, at=f"{self.at} [[{key}]] {place}")

    def build(self, kind: type[_Built], /, **given: Any) -> _Built:
        """The dataclass of the settings that are called like its fields, beside the given values; then ``done``.

        The type of a field decides what its setting must be, and one without a default is required.
        """
        types, values = get_type_hints(kind), dict(given)
        for each in fields(kind):
            required = each.default is MISSING and each.default_factory is MISSING
            if each.name not in values and (required or each.name in self._left):
                values[each.name] = self._read(each.name, types[each.name])
                if required and not values[each.name]:
                    self.refuse(each.name, "is required")
        self.done()
        return kind(**values)

    def _read(self, key: str, kind: Any) -> Any:
        readers: Mapping[Any, Callable[[str], Any]] = {
            str: self.text,
            bool: partial(self.take, kind=bool),
            int: self.whole,
            float: self.number,
            tuple[str, ...]: self.texts,
            tuple[int, ...]: self.sizes,
            tuple[float, ...]: self.values,
            tuple[tuple[int, ...], ...]: self.groups,
            Mapping[str, str]: self.text_map,
        }
        return readers[kind](key)

    def done(self) -> None:
        if self._left:
            self.refuse(
                ", ".join(sorted(self._left)), "is not known here; see docs/adding-a-chip.md"
            )


def read_toml_file(path: Path) -> TomlSection:
    """The whole of a file.

    :raises InvalidChipProfile: if it is missing or no TOML.
    """
    try:
        return TomlSection(tomllib.loads(path.read_text(encoding="utf-8")), at=path.name)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as wrong:
        raise InvalidChipProfile(f"{path} cannot be read as TOML: {wrong}") from wrong
