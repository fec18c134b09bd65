"""The reasons check of ``make check``: every code has a template in each language.

``python -m tests.reasons`` collects the calls of ``Reason`` from the syntax trees of the product and compares
them with the catalogues in ``templates/locale/*/LC_MESSAGES/reasons.po``. Violations, printed with exit status 1:
a code with two templates, a parameter without a placeholder, a missing or forgotten translation, a translation
with other placeholders; and a label, help or fault text of a table without a translation in ``django.po``, or the
reverse. ``--write`` writes the English catalogue and adds missing codes, without a text, to the others.
"""

from __future__ import annotations

import argparse
import ast
import re
import string
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import polib

from controlplane.adapters.engines.transformers.engine import SCRIPT
from controlplane.domain.alerts.rules import DEFAULTS
from controlplane.domain.common.spec_fields import SpecField
from controlplane.domain.health import faults
from controlplane.domain.jobs import retries
from controlplane.domain.quotas.queue_documents import QUEUE_FIELDS
from controlplane.domain.quotas.queues import QUOTA_FIELDS
from controlplane.domain.specs.evaluation import EVALUATE, QUANTIZE
from controlplane.domain.specs.serving import SERVE
from controlplane.domain.specs.training import FINETUNE
from controlplane.ports import adapter_registry

ROOT = Path(__file__).resolve().parent.parent
LOCALES = ROOT / "templates/locale"
ENGLISH = "en"
TRANSLATIONS = ("zh_Hans",)
SOURCES = ("apps/**/*.py", "platform/**/*.py")
#: Fields whose labels and help are on forms; pages translate them with gettext.
FORM_TABLES = (*SERVE, *FINETUNE, *EVALUATE, *QUANTIZE, *SCRIPT, *retries.FIELDS)
QUEUE_TABLES = (*QUEUE_FIELDS.values(), *QUOTA_FIELDS.values())
_CODE = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+){1,3}|list")
_PLACEHOLDER = re.compile(r"\{[a-z_]+\}")
#: The class itself and its storage also build reasons from any code.
_GENERIC = frozenset(
    {
        "platform/controlplane/domain/common/reasons.py",
        "platform/controlplane/persistence/reasons.py",
    }
)


@dataclass(slots=True)
class CollectedCodes:
    """The templates of all codes, and what is wrong with the calls."""

    templates: dict[str, str] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)


def _placeholders(template: str) -> frozenset[str]:
    """Placeholders of a template; text without any may have braces of its own."""
    return placeholders(template) if _PLACEHOLDER.search(template) else frozenset()


def placeholders(template: str) -> frozenset[str]:
    """:raises ValueError: if the template is malformed."""
    return frozenset(
        name for _, name, _, _ in string.Formatter().parse(template) if name is not None
    )


def collect_codes() -> CollectedCodes:
    """Read the calls of ``Reason`` in the product, and the errors raised like it."""
    found = CollectedCodes(templates={"list": "{reasons}"})
    for path in _sources():
        name = str(path.relative_to(ROOT))
        tree = _parse(path)
        if any(path.match(each) for each in _MESSAGE_SOURCES) and "/fakes/" not in name:
            found.violations += [
                f"{name}:{line}: {text} is a message without a code: write a Reason"
                for line, text in plain_messages(tree)
            ]
        for call in calls(tree):
            if name in _GENERIC and not isinstance(call.args[-2], ast.Constant):
                continue
            # What passes on its own parameters is checked where it is called.
            if ast.unparse(call) == "Reason(code, template, **params)":
                continue
            if problem := read_call(call, found):
                found.violations.append(f"{name}:{call.lineno}: {problem}")
    return found


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls of ``Reason``, and of exceptions and functions that build their reason themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (
            ast.unparse(node.func) == "Reason" or _is_coded_call(node)
        ):
            yield node


def _is_coded_call(call: ast.Call) -> bool:
    """Whether a class or a function like ``field_finding`` is called with a code and a template at the end."""
    code = call.args[-2] if len(call.args) > 1 else None
    return (
        _called_name(call) in keyword_only_parameters()
        and isinstance(code, ast.Constant)
        and "." in str(code.value)
        and bool(_CODE.fullmatch(str(code.value)))
    )


def _called_name(call: ast.Call) -> str:
    """The last part of what is called: ``of`` for ``FieldLimit.of``."""
    return ast.unparse(call.func).rpartition(".")[2]


@cache
def keyword_only_parameters() -> Mapping[str, frozenset[str]]:
    """By name of a class or function that takes a code and a template: its keywords that fill no placeholder.

    Such a class or function has ``template`` as its last positional-only parameter, or a base class that does.
    """
    found = {"ReasonTemplate": frozenset[str](), "__init__": frozenset[str]()}
    subclasses: dict[str, list[str]] = defaultdict(list)
    for path in _sources():
        for node in ast.walk(_parse(path)):
            if not isinstance(node, ast.ClassDef):
                members: list[tuple[str, ast.AST]] = [("", node)]
            else:
                for each in node.bases:
                    subclasses[ast.unparse(each).rpartition(".")[2]].append(node.name)
                members = [(node.name, member) for member in node.body]
            for owner, function in members:
                if isinstance(function, ast.FunctionDef) and _has_template(function):
                    constructs = function.name in ("__init__", "__new__")
                    name = owner if constructs else function.name
                    found[name] = found.get(name, frozenset()) | _keyword_only(function)
    pending = list(found)
    while pending:
        base = pending.pop()
        for name in subclasses[base]:
            if name not in found:
                found[name] = found[base]
                pending.append(name)
    return found


def _has_template(function: ast.FunctionDef) -> bool:
    return [each.arg for each in function.args.posonlyargs[-1:]] == ["template"]


def _keyword_only(function: ast.FunctionDef) -> frozenset[str]:
    return frozenset(each.arg for each in function.args.kwonlyargs)


def _sources() -> Iterator[Path]:
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            if "/migrations/" not in str(path):
                yield path


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


#: Where messages to users are created: a text there that is no reason stays English on every page.
_MESSAGE_SOURCES = (
    "apps/*/reconcilers*",
    "apps/*/reconcilers/*",
    "apps/*/selectors*",
    "apps/*/selectors/*",
    "apps/*/services/*",
    "platform/controlplane/domain/*/*",
    "platform/controlplane/adapters/*",
)
_MESSAGE_NAMES = frozenset(
    {"error", "explanation", "message", "reason", "refusal", "remedy", "state_reason"}
)


def plain_messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and source of f-strings with words that are used as a message.

    An f-string without words, such as ``f"{kind}: {detail}"``, only joins foreign texts.
    """
    for node in ast.walk(tree):
        values: list[ast.expr] = []
        if isinstance(node, ast.Call):
            values = [each.value for each in node.keywords if each.arg in _MESSAGE_NAMES]
        elif isinstance(node, ast.Assign):
            names = {each.id for each in ast.walk(node.targets[0]) if isinstance(each, ast.Name)}
            if names & _MESSAGE_NAMES:
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for value in values:
            if isinstance(value, ast.JoinedStr) and any(
                re.search(r"[a-z]{2,} [a-z]{2,}", str(part.value))
                for part in value.values
                if isinstance(part, ast.Constant)
            ):
                yield value.lineno, ast.unparse(value)


def read_call(call: ast.Call, found: CollectedCodes) -> str | None:
    """Add the call's code and template; return what is wrong with it."""
    # A class or function that builds its reason itself may take something before it.
    positional = call.args if ast.unparse(call.func) == "Reason" else call.args[-2:]
    literals = [
        argument.value
        for argument in positional
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    names = {keyword.arg for keyword in call.keywords if keyword.arg}
    if len(literals) != len(positional) or len(literals) != 2 or len(names) != len(call.keywords):
        return "a reason takes a literal code, a literal template and named parameters"
    code, template = literals
    if not _CODE.fullmatch(code):
        return f"{code!r} is not a code: lower case, 2 to 4 parts separated by dots"
    if ast.unparse(call.func) != "Reason":
        names -= keyword_only_parameters()[_called_name(call)]
    named_later = ast.unparse(call.func) == "ReasonTemplate"
    if (
        not named_later
        and (names or _PLACEHOLDER.search(template))
        and placeholders(template) != names
    ):
        return f"{code}: the placeholders of {template!r} are not the parameters {sorted(names)}"
    if found.templates.setdefault(code, template) != template:
        return f"{code} has another template elsewhere: {found.templates[code]!r}"
    return None


def catalogue_path(locale: str) -> Path:
    return LOCALES / locale / "LC_MESSAGES" / "reasons.po"


def catalogue(locale: str) -> dict[str, str]:
    """Templates of a language, by code."""
    path = catalogue_path(locale)
    return {entry.msgid: entry.msgstr for entry in polib.pofile(str(path))} if path.exists() else {}


def violations() -> list[str]:
    """Every violation, with the place or code that it is about."""
    collected = collect_codes()
    found = list(collected.violations)
    if catalogue(ENGLISH) != collected.templates:
        found.append("the English catalogue is not up to date; run python -m tests.reasons --write")
    for locale in TRANSLATIONS:
        translated = catalogue(locale)
        for code, template in collected.templates.items():
            if not translated.get(code):
                found.append(f"{locale}: {code} has no translation of {template!r}")
            elif _placeholders(translated[code]) != _placeholders(template):
                found.append(f"{locale}: {code} has other placeholders than {template!r}")
        found += [
            f"{locale}: {code} is no code of the product"
            for code in sorted(translated.keys() - collected.templates.keys())
        ]
    for locale in (ENGLISH, *TRANSLATIONS):
        if not _is_compiled(locale):
            found.append(
                f"{locale}: reasons.mo is not up to date; run python -m tests.reasons --write"
            )
    return [*found, *table_violations()]


def table_texts() -> frozenset[str]:
    """The texts of tables that pages show."""
    texts = {text for field in _with_subfields(FORM_TABLES) for text in (field.label, field.help)}
    texts.update(text for each in QUEUE_TABLES for text in (each.label, each.help))
    texts.update(faults.REMEDIES.values())
    texts.update(rule.title for rule in DEFAULTS)
    for plugin in adapter_registry.chip_plugins().values():
        for fault_texts in plugin.profile().faults.texts.values():
            texts.update((fault_texts.cause, fault_texts.remedy))
    return frozenset(texts - {""})


def _with_subfields(fields: Iterable[SpecField]) -> Iterator[SpecField]:
    for each in fields:
        yield each
        yield from _with_subfields(each.fields)


def table_violations() -> Iterator[str]:
    texts = table_texts()
    for locale in TRANSLATIONS:
        entries = polib.pofile(str(LOCALES / locale / "LC_MESSAGES/django.po"))
        # gettext finds by the text alone what has no context; a reference says that a table declares it.
        plain = [entry for entry in entries if not entry.msgctxt]
        translated = {entry.msgid for entry in plain if entry.msgstr}
        yield from (f"{locale}: no translation of {text!r}" for text in sorted(texts - translated))
        declared = {entry.msgid for entry in plain if entry.occurrences}
        yield from (f"{locale}: no table has {text!r}" for text in sorted(declared - texts))


def _is_compiled(locale: str) -> bool:
    compiled = catalogue_path(locale).with_suffix(".mo")
    if not compiled.exists():
        return False
    entries = {entry.msgid: entry.msgstr for entry in polib.mofile(str(compiled))}
    return entries == {code: text for code, text in catalogue(locale).items() if text}


def write() -> None:
    """Write the English catalogue, and add to the others what they lack."""
    templates = collect_codes().templates
    for locale in (ENGLISH, *TRANSLATIONS):
        earlier = catalogue(locale)
        document = polib.POFile(wrapwidth=0)
        document.metadata = {
            "Language": locale,
            "Content-Type": "text/plain; charset=UTF-8",
            "MIME-Version": "1.0",
            "Content-Transfer-Encoding": "8bit",
        }
        for code, template in sorted(templates.items()):
            text = template if locale == ENGLISH else earlier.get(code, "")
            document.append(polib.POEntry(msgid=code, msgstr=text))
        path = catalogue_path(locale)
        path.parent.mkdir(parents=True, exist_ok=True)
        document.save(str(path))
        document.save_as_mofile(str(path.with_suffix(".mo")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the English catalogue")
    if parser.parse_args().write:
        write()
    failed = violations()
    for violation in failed:
        sys.stdout.write(f"{violation}\n")
    sys.exit(1 if failed else 0)
