"""The settings reference of ``make check``: ``docs/settings.md`` lists every variable that the code reads.

``python -m tests.settings_reference`` prints the problems and exits with 1 if there are any; ``--write`` writes
``docs/settings.md`` from ``docs/settings.toml`` and the code. Names, defaults, minima and choices come from the
code, units and meanings from the file.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.terms import tracked

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs/settings.toml"
PAGE = ROOT / "docs/settings.md"
COMPOSE = "docker/compose.yaml"
#: Module prefixes, and the processes that read their variables; the first match counts.
READERS = (
    ("platform/config/management/", "bootstrap"),
    ("platform/config/", "product"),
    ("platform/gateway/", "gateway"),
    ("platform/http_server/", "web, gateway"),
    ("platform/launcher/", "`make up`"),
    ("platform/controlplane/adapters/clusters/local/", "local cluster"),
    ("platform/ninefold_runtime/agent/", "agent"),
    (COMPOSE, "compose"),
)
#: Settings of the test run.
EXCLUDED = frozenset({"platform/config/settings/test.py"})
MIB = 1024 * 1024
INTRODUCTION = """
# Settings

Environment variables of Ninefold; a change applies after a restart. *Product* means web, worker, beat and
`manage.py`; *bootstrap* is the command that `make up` and the compose file run before them. Notes on some of
the variables are in [operations.md](operations.md).

Written from `settings.toml` and the code by `python -m tests.settings_reference --write`.
""".lstrip()

_VARIABLE = re.compile(r"NINEFOLD_[A-Z0-9_]*[A-Z0-9]")
#: ``${NAME:-default}`` in the compose file.
_SUBSTITUTION = re.compile(r"\$\{(NINEFOLD_[A-Z_]+):-([^}]*)\}")

Value = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRead:
    """One place in the code that reads a variable."""

    name: str
    path: str
    #: None if the code has no constant default.
    default: Value | None = None
    #: Smallest valid value.
    least: Value | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedSetting:
    """One entry of ``docs/settings.toml``."""

    group: str
    name: str
    meaning: str
    unit: str = ""
    #: Replaces unit, choices and minimum.
    values: str = ""
    #: Only where the code computes the default.
    default: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """``docs/settings.toml``."""

    settings: tuple[DocumentedSetting, ...]
    #: Variables that the product sets for its own processes.
    internal: frozenset[str]


def settings_file(source: str) -> SettingsFile:
    """The parsed file.

    :raises ValueError: if a variable is listed twice.
    """
    document = tomllib.loads(source)
    settings = tuple(
        DocumentedSetting(group=group["title"], **entry)
        for group in document["group"]
        for entry in group["setting"]
    )
    internal = frozenset(document["internal"])
    names = [each.name for each in settings] + list(internal)
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{', '.join(repeated)} is listed more than once")
    return SettingsFile(settings=settings, internal=internal)


class ReadCollector(ast.NodeVisitor):
    """Collects the calls of one module that read variables."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self._path = path
        self._constants: dict[str, Value] = {}
        self.reads: list[SettingRead] = []
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                value = self._constant(node.value)
                if value is not None:
                    self._constants[node.targets[0].id] = value
        self.visit(tree)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """``environ.get(NAME) or default``."""
        first = node.values[0]
        if isinstance(node.op, ast.Or) and isinstance(first, ast.Call):
            self._add(first, default=self._constant(node.values[1]))
        else:
            self.visit(first)
        for value in node.values[1:]:
            self.visit(value)

    def visit_Call(self, node: ast.Call) -> None:
        self._add(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """``environ[NAME]``."""
        name = self._constant(node.slice)
        if (
            isinstance(node.ctx, ast.Load)
            and isinstance(name, str)
            and _VARIABLE.fullmatch(name)
            and _function_name(node.value) == "environ"
        ):
            self.reads.append(SettingRead(name=name, path=self._path))
        self.generic_visit(node)

    def _add(self, node: ast.Call, *, default: Value | None = None) -> None:
        function = _function_name(node.func)
        values = [self._constant(each) for each in node.args]
        keywords = {each.arg: self._constant(each.value) for each in node.keywords if each.arg}
        if function == "read_secret" and values and isinstance(values[0], str):
            name = f"NINEFOLD_{values[0].upper()}"
            self.reads.append(SettingRead(name=name, path=self._path))
        at = next(
            (
                index
                for index, value in enumerate(values[:2])
                if isinstance(value, str) and _VARIABLE.fullmatch(value)
            ),
            None,
        )
        if at is not None:
            after = node.args[at + 1] if len(node.args) > at + 1 else None
            choices = _texts(after) if isinstance(after, ast.Tuple) else ()
            positional = self._constant(after) if after is not None else None
            least = keywords.get("least")
            known = next(
                (
                    value
                    for value in (default, keywords.get("default"), positional, *choices[:1])
                    if value is not None
                ),
                None,
            )
            self.reads.append(
                SettingRead(
                    name=str(values[at]),
                    path=self._path,
                    default=None if known == "" else known,
                    least=least,
                    choices=choices,
                )
            )
        self.generic_visit(node)

    def _constant(self, node: ast.expr | None) -> Value | None:
        """The value of a literal, of a constant of the module, or of a product of these."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            return node.value
        if isinstance(node, ast.Name):
            return self._constants.get(node.id)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            left, right = self._constant(node.left), self._constant(node.right)
            if isinstance(left, int) and isinstance(right, int):
                return left * right
        return None


def _function_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _texts(node: ast.Tuple) -> tuple[str, ...]:
    return tuple(
        each.value
        for each in node.elts
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )


def reads_of_module(path: str, source: str) -> list[SettingRead]:
    """The variables that a module reads."""
    return ReadCollector(path, ast.parse(source)).reads


def reads_of_compose(source: str) -> list[SettingRead]:
    """The variables with defaults that only the compose file reads."""
    return [
        SettingRead(name=name, path=COMPOSE, default=default or None)
        for name, default in dict(_SUBSTITUTION.findall(source)).items()
    ]


def reads_of_product() -> dict[str, list[SettingRead]]:
    """The variables that the product reads, by name. Compose counts only for those that no module reads."""
    found: dict[str, list[SettingRead]] = defaultdict(list)
    for path in tracked("platform", "apps"):
        if not path.endswith(".py") or path in EXCLUDED:
            continue
        source = (ROOT / path).read_text()
        # Most modules read none, and parsing all of them takes seconds.
        if "NINEFOLD_" in source or "read_secret" in source:
            for read in reads_of_module(path, source):
                found[read.name].append(read)
    operated = {
        name
        for name, reads in found.items()
        if any(process_of(each.path) is not None for each in reads)
    }
    for read in reads_of_compose((ROOT / COMPOSE).read_text()):
        if read.name not in operated:
            found[read.name] = [read]
    return found


def process_of(path: str) -> str | None:
    """The process that reads the variables of a module; None for modules that run inside of workloads."""
    return next((process for prefix, process in READERS if path.startswith(prefix)), None)


def default_of(reads: Iterable[SettingRead]) -> Value | None:
    """The default that all places with a constant one agree on; None if there is none or they differ."""
    defaults = {float(value) if _is_number(value) else value for value in _defaults(reads)}
    return next(_defaults(reads)) if len(defaults) == 1 else None


def _defaults(reads: Iterable[SettingRead]) -> Iterator[Value]:
    return (each.default for each in reads if each.default is not None)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def formatted(value: Value, *, unit: str = "") -> str:
    """A default or a limit as the page shows it."""
    if isinstance(value, bool):
        return "`on`" if value else "`off`"
    if isinstance(value, str):
        return f"`{value}`"
    if unit == "bytes" and value and value % MIB == 0:
        return f"{value:.0f} ({value / MIB:g} MiB)"
    return f"{value:g}" if isinstance(value, float) else str(value)


def valid_values(setting: DocumentedSetting, reads: Iterable[SettingRead]) -> str:
    """Unit, choices and minimum of a setting."""
    if setting.values:
        return setting.values
    choices = next((each.choices for each in reads if each.choices), ())
    unit = " or ".join(f"`{each}`" for each in choices) if choices else setting.unit
    least = next((each.least for each in reads if each.least is not None), None)
    if least is None:
        return unit
    return f"{unit}, at least {formatted(least, unit=setting.unit)}"


def page(file: SettingsFile, reads: Mapping[str, list[SettingRead]]) -> str:
    """The reference as Markdown."""
    lines = [INTRODUCTION.rstrip()]
    group = ""
    for setting in file.settings:
        if setting.group != group:
            group = setting.group
            lines += ["", f"## {group}", ""]
            lines += [
                "| variable | default | values | read by | meaning |",
                "|---|---|---|---|---|",
            ]
        places = reads.get(setting.name, [])
        default = setting.default
        if not default:
            value = default_of(places)
            default = "none" if value is None else formatted(value, unit=setting.unit)
        processes = dict.fromkeys(
            name
            for each in places
            if (process := process_of(each.path)) is not None
            for name in process.split(", ")
        )
        # The web is a process of the product.
        if "product" in processes:
            processes.pop("web", None)
        cells = (
            f"`{setting.name}`",
            default,
            valid_values(setting, places),
            ", ".join(processes),
            setting.meaning,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def problems(file: SettingsFile, reads: Mapping[str, list[SettingRead]]) -> list[str]:
    """Variables that are missing in the file, are not read, or have a default that the code has already."""
    listed = {each.name for each in file.settings}
    found = [
        f"{name} is read by {reads[name][0].path} and missing in docs/settings.toml"
        for name in sorted(reads.keys() - listed - file.internal)
    ]
    found += [
        f"{name} is in docs/settings.toml, and nothing reads it"
        for name in sorted((listed | file.internal) - reads.keys())
    ]
    for setting in file.settings:
        places = reads.get(setting.name, [])
        defaults = {str(each): each for each in _defaults(places)}
        agreed = default_of(places)
        if (
            setting.default
            and agreed is not None
            and all(each.default is not None for each in places)
        ):
            found.append(f"{setting.name}: remove its default, the code has {agreed!r}")
        if not setting.default and defaults and agreed is None:
            found.append(
                f"{setting.name} has the defaults {', '.join(defaults)} in the code; state which applies where"
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page")
    options = parser.parse_args()
    file, reads = settings_file(SOURCE.read_text()), reads_of_product()
    if options.write:
        PAGE.write_text(page(file, reads))
    wrong = problems(file, reads)
    if not PAGE.is_file() or PAGE.read_text() != page(file, reads):
        wrong.append(
            "docs/settings.md differs from docs/settings.toml and the code; "
            "run python -m tests.settings_reference --write"
        )
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
