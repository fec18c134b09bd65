"""Tables, JSON, YAML and names on standard output; colours and column widths only of a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ninefold_client.errors import NinefoldError

#: Wider than any table: without a terminal nothing is cut or wrapped.
_UNLIMITED = 10_000


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


OutputOption = Annotated[OutputFormat, typer.Option("--output", "-o", help="Output format.")]


def print_objects(
    output: OutputFormat,
    value: Any,
    *,
    table: Callable[[], None],
    names: Iterable[str] | None = None,
) -> None:
    """Print an object, or a list of objects, in the format of the option ``-o``.

    :param table: prints it for people.
    :param names: the lines of ``-o name``; None if the objects have no names.
    :raises NinefoldError: for ``-o name`` without names.
    """
    if output is OutputFormat.JSON:
        print_json(value)
    elif output is OutputFormat.YAML:
        print_yaml(value if isinstance(value, list) else [value])
    elif output is OutputFormat.TABLE:
        table()
    elif names is None:
        raise NinefoldError("-o name is not supported here; use table, json or yaml")
    else:
        for name in names:
            print(name)


def refuse_progress(output: OutputFormat, *, options: str) -> None:
    """Refuse options that print progress after a document.

    :raises NinefoldError: for ``-o json`` and ``-o yaml``.
    """
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        raise NinefoldError(f"-o {output.value} prints one document; remove {options}")


def console() -> Console:
    """Return the console of standard output."""
    is_terminal = sys.stdout.isatty()
    return Console(
        file=sys.stdout,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if is_terminal else _UNLIMITED,
    )


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print aligned columns under bold headers."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold", no_wrap=not sys.stdout.isatty())
    for row in rows:
        table.add_row(*(Text(as_text(value)) for value in row))
    console().print(table)


def as_text(value: object) -> str:
    """Return a value for people; ``-`` for none."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return _local_time(value)
    if isinstance(value, list):
        return ", ".join(as_text(one) for one in value) or "-"
    if isinstance(value, dict):
        reference = value.get("message") or value.get("name")
        return str(reference) if reference else json.dumps(value, ensure_ascii=False)
    return str(value)


def _local_time(value: str) -> str:
    if len(value) < 19 or value[10:11] != "T" or not value[:4].isdecimal():
        return value
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return value
    return f"{at.replace(tzinfo=at.tzinfo or UTC).astimezone():%Y-%m-%d %H:%M:%S}"


def print_json(value: Any) -> None:
    """Print indented JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def print_yaml(documents: Sequence[Any]) -> None:
    """Print YAML documents, separated by ``---``."""
    print(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True), end="")


def print_fields(row: Mapping[str, Any], *, indent: str = "") -> None:
    """Print one field a line; nested objects and lists of objects are indented."""
    for name, value in row.items():
        label = f"{indent}{name.replace('_', ' ').capitalize()}:"
        if isinstance(value, dict) and value and not {"message", "name"} & value.keys():
            print(label)
            print_fields(value, indent=f"{indent}  ")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            print(label)
            for one in value:
                print(f"{indent}  -")
                print_fields(one, indent=f"{indent}    ")
        else:
            print(f"{label:<28} {as_text(value)}")


def print_error(message: str) -> None:
    """Print to standard error."""
    print(message, file=sys.stderr)
