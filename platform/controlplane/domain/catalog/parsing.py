"""Parsing of the catalog's data files, with every problem by entry and field."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from typing import Any

from controlplane.domain.catalog.entries import (
    CONFIDENCES,
    FACT_GROUPS,
    CatalogEntry,
    CatalogSource,
    CatalogTask,
    CompatibilityCell,
    Modality,
    SupportCaveat,
    SupportLevel,
    sort_cells,
)


class CatalogRefused(Exception):
    """The data files are invalid; ``problems`` has one message for each place."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The content of the data files."""

    #: By key.
    entries: Mapping[str, CatalogEntry]
    sources: Mapping[str, CatalogSource]
    #: Engine → display name.
    engines: Mapping[str, str]


#: A value → what was expected; empty if the value is valid.
_Rule = Callable[[Any], str]
_MAX_NOTE_LENGTH = 2000
_LARGEST = 2**63 - 1


def _text_rule(longest: int) -> _Rule:
    def rule(value: Any) -> str:
        good = isinstance(value, str) and 0 < len(value) <= longest and value.isprintable()
        return "" if good else f"a text of 1 to {longest} characters"

    return rule


def _check_count(value: Any) -> str:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LARGEST
    return "" if good else "a whole number of at least 1"


def _text_list_rule(longest: int) -> _Rule:
    one = _text_rule(longest)

    def rule(value: Any) -> str:
        good = isinstance(value, list) and value and not any(one(item) for item in value)
        return "" if good and len(set(value)) == len(value) else "a list of different texts"

    return rule


def _choice_rule(choices: type[StrEnum]) -> _Rule:
    return lambda value: "" if value in set(choices) else f"one of {', '.join(choices)}"


def _count_table(value: Any) -> str:
    good = isinstance(value, dict) and all(
        isinstance(count, int) and not isinstance(count, bool) and count >= 0
        for count in value.values()
    )
    return "" if good else "a table of whole numbers"


def _fact_table(value: Any) -> str:
    good = isinstance(value, dict) and all(
        isinstance(fact, str | int | float) for fact in value.values()
    )
    return "" if good else "a table of texts and numbers"


def _check_confidence(value: Any) -> str:
    good = isinstance(value, dict) and all(
        group in FACT_GROUPS and level in CONFIDENCES for group, level in value.items()
    )
    groups, levels = ", ".join(FACT_GROUPS), ", ".join(CONFIDENCES)
    return "" if good else f"a table of {groups} with {levels}"


_CELL_RULES: Mapping[str, _Rule] = {
    "task": _choice_rule(CatalogTask),
    "vendor": _text_rule(40),
    "engine": _text_rule(40),
    "status": _choice_rule(SupportLevel),
    "versions": _text_rule(60),
    "methods": _text_list_rule(40),
    "evidence": _text_list_rule(40),
    "caveat": _choice_rule(SupportCaveat),
}


def _required_fields(declared: type[CatalogEntry] | type[CompatibilityCell]) -> tuple[str, ...]:
    return tuple(
        each.name
        for each in fields(declared)
        if each.default is MISSING and each.default_factory is MISSING
    )


_CELL_NEEDS = _required_fields(CompatibilityCell)


def _check_cells(value: Any) -> str:
    good = isinstance(value, list) and all(isinstance(cell, dict) for cell in value)
    return "" if good else "a list of tables"


_ENTRY_RULES: Mapping[str, _Rule] = {
    "key": _text_rule(80),
    "title": _text_rule(120),
    "family": _text_rule(60),
    "modality": _choice_rule(Modality),
    "tasks": _text_list_rule(40),
    "architecture": _text_rule(120),
    "dtype": _text_rule(60),
    "confidence": _check_confidence,
    "evidence": _text_list_rule(40),
    "parameters": _check_count,
    "active_parameters": _check_count,
    "layers": _check_count,
    "hidden": _check_count,
    "heads": _check_count,
    "kv_heads": _check_count,
    "head_dim": _check_count,
    "intermediate": _check_count,
    "attention": _text_rule(60),
    "mla": _count_table,
    "moe": _count_table,
    "components": _fact_table,
    "context_length": _check_count,
    "context_extended": _check_count,
    "kv_bytes_per_token": _check_count,
    "licence": _text_rule(60),
    "hf_repo": _text_rule(120),
    "modelscope_id": _text_rule(120),
    "prequantized": _text_list_rule(120),
    "notes": _text_rule(_MAX_NOTE_LENGTH),
    "cells": _check_cells,
}
_ENTRY_NEEDS = _required_fields(CatalogEntry)


def read_catalog(files: Mapping[str, str]) -> Catalog:
    """The catalog in these files: name → TOML, one of them with the table ``sources``.

    :raises CatalogRefused: if anything in them is invalid; it names every place.
    """
    problems: list[str] = []
    sources: dict[str, CatalogSource] = {}
    engines: dict[str, str] = {}
    listed: list[tuple[str, Any]] = []
    for name, text in sorted(files.items()):
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            problems.append(f"{name}: not TOML: {error}")
            continue
        for key, title in document.get("sources", {}).items():
            problems += _check_fields(
                f"{name}: source {key}", {"title": title}, {"title": _text_rule(400)}, ()
            )
            sources[key] = CatalogSource(key=key, title=str(title))
        for engine, title in document.get("engines", {}).items():
            problems += _check_fields(
                f"{name}: engine {engine}", {"title": title}, {"title": _text_rule(80)}, ()
            )
            engines[engine] = str(title)
        listed += [
            (f"{name}: {_name_of_model(model)}", model) for model in document.get("models", [])
        ]
    entries: dict[str, CatalogEntry] = {}
    for place, given in listed:
        found = list(_check_entry(place, given, sources))
        problems += found
        if not found and given["key"] in entries:
            problems.append(f"{place}: the key {given['key']!r} stands there twice")
        elif not found:
            entries[given["key"]] = _parse_entry(given)
    if problems:
        raise CatalogRefused(problems)
    return Catalog(entries=entries, sources=sources, engines=engines)


def _name_of_model(model: Any) -> str:
    key = model.get("key") if isinstance(model, dict) else None
    return str(key or "an entry without a key")


def _check_fields(
    place: str, given: Mapping[str, Any], rules: Mapping[str, _Rule], needs: Sequence[str]
) -> Iterator[str]:
    for name in needs:
        if name not in given:
            yield f"{place}: {name} is missing"
    for name, value in given.items():
        rule = rules.get(name)
        if rule is None:
            yield f"{place}: {name} is not a field; there are {', '.join(rules)}"
        elif should := rule(value):
            yield f"{place}: {name} must be {should}, got {value!r}"


def _check_entry(place: str, given: Any, sources: Mapping[str, CatalogSource]) -> Iterator[str]:
    if not isinstance(given, dict):
        yield f"{place}: an entry must be a table, got {given!r}"
        return
    shallow = list(_check_fields(place, given, _ENTRY_RULES, _ENTRY_NEEDS))
    yield from shallow
    if shallow:
        return
    yield from _check_sources(place, given["evidence"], sources)
    yield from _check_consistency(place, given)
    seen: Counter[tuple[str, ...]] = Counter()
    for cell in given.get("cells", ()):
        where = f"{place}: {'/'.join(str(cell.get(name, '?')) for name in _CELL_NEEDS[:3])}"
        problems = list(_check_fields(where, cell, _CELL_RULES, _CELL_NEEDS))
        yield from problems or _check_cell_evidence(where, cell, sources)
        seen[tuple(str(cell.get(name)) for name in _CELL_NEEDS[:3])] += 1
    for cell_key, times in seen.items():
        if times > 1:
            yield f"{place}: {'/'.join(cell_key)} stands there {times} times"


def _check_sources(
    place: str, evidence: Sequence[str], sources: Mapping[str, CatalogSource]
) -> Iterator[str]:
    for key in evidence:
        if key not in sources:
            yield f"{place}: evidence {key!r} is no source; there are {', '.join(sorted(sources))}"


def _check_consistency(place: str, given: Mapping[str, Any]) -> Iterator[str]:
    """Values of one entry that contradict each other."""
    for part, whole in (
        ("active_parameters", "parameters"),
        ("kv_heads", "heads"),
        ("context_length", "context_extended"),
    ):
        if part in given and whole in given and given[part] > given[whole]:
            yield f"{place}: {part} ({given[part]}) cannot be more than {whole} ({given[whole]})"
    if "kv_heads" in given and given.get("heads", 0) % given["kv_heads"]:
        yield f"{place}: kv_heads ({given['kv_heads']}) must divide heads ({given.get('heads')})"


#: Caveats that allow no claim.
_NO_EVIDENCE = (SupportCaveat.HEARSAY, SupportCaveat.GENERIC)


def _check_cell_evidence(
    place: str, cell: Mapping[str, Any], sources: Mapping[str, CatalogSource]
) -> Iterator[str]:
    """Claims of a cell that exceed its evidence."""
    evidence, status = cell.get("evidence", ()), SupportLevel(cell["status"])
    yield from _check_sources(place, evidence, sources)
    if status is not SupportLevel.UNKNOWN and not evidence:
        yield f"{place}: {status.value} needs evidence; without any it is unknown"
    caveat = cell.get("caveat")
    if status is not SupportLevel.UNKNOWN and caveat in _NO_EVIDENCE:
        yield f"{place}: {caveat} supports no claim; the status must be unknown, got {status.value}"
    if status is SupportLevel.SUPPORTED and caveat == SupportCaveat.ARCHITECTURE:
        yield f"{place}: what is known of the architecture only is at most experimental"


_LISTS = ("tasks", "evidence", "prequantized", "methods")


def _parse_entry(given: Mapping[str, Any]) -> CatalogEntry:
    facts: dict[str, Any] = {
        name: tuple(value) if name in _LISTS else value for name, value in given.items()
    }
    facts["modality"] = Modality(facts["modality"])
    facts["cells"] = sort_cells(_parse_cell(cell) for cell in given.get("cells", ()))
    return CatalogEntry(**facts)


def _parse_cell(given: Mapping[str, Any]) -> CompatibilityCell:
    facts: dict[str, Any] = {
        name: tuple(value) if name in _LISTS else value for name, value in given.items()
    }
    facts["task"], facts["status"] = CatalogTask(given["task"]), SupportLevel(given["status"])
    if "caveat" in given:
        facts["caveat"] = SupportCaveat(given["caveat"])
    return CompatibilityCell(**facts)
