"""The messages of services, rules and adapters, read from their source, and the texts of tables.

Both are English in the database and on REST; pages show them in the reader's language. Messages may have
placeholders and are translated by ``messages.po``. Texts of tables are fixed: labels and help of spec fields,
causes and remedies of faults. They are translated by ``django.po``, where a reference (``#:``) names the file
that declares them.
A test requires a translation of each. ``python -m tests.translatable_messages`` prints the missing entries.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polib

from controlplane.domain.common.spec_fields import SpecField
from controlplane.domain.health import faults
from controlplane.domain.jobs import retries
from controlplane.domain.outbound import egress
from controlplane.domain.specs.evaluation import EVALUATE, QUANTIZE
from controlplane.domain.specs.scripts import SCRIPT
from controlplane.domain.specs.serving import SERVE
from controlplane.domain.specs.training import FINETUNE
from controlplane.ports import registry

ROOT = Path(__file__).resolve().parent.parent
LOCALE = ROOT / "templates/locale/zh_Hans/LC_MESSAGES"
CATALOGUE = LOCALE / "messages.po"
TABLE_CATALOGUE = LOCALE / "django.po"
#: Where reasons and refusals are worded.
SPOKEN = (
    "apps/*/selectors.py",
    "apps/*/selectors/*.py",
    "apps/*/services.py",
    "apps/*/services/*.py",
    "apps/*/reconcilers.py",
    "apps/*/reconcilers/*.py",
    "platform/controlplane/domain/**/*.py",
    "platform/controlplane/adapters/artifacts/**/*.py",
    "platform/controlplane/adapters/engines/**/*.py",
    "platform/controlplane/adapters/clusters/launch_validation.py",
    "platform/controlplane/adapters/clusters/kubernetes/checks.py",
    "platform/controlplane/adapters/clusters/local/*.py",
    "platform/controlplane/adapters/clusters/simulated/cluster.py",
    "platform/controlplane/adapters/clusters/simulated/launches.py",
    "platform/controlplane/adapters/outbound.py",
    "platform/controlplane/adapters/telemetry/*.py",
    "platform/controlplane/persistence/encryption.py",
    "platform/controlplane/ports/expositions.py",
    "platform/controlplane/ports/registry.py",
    *(
        f"platform/gateway/{module}.py"
        for module in (
            "app",
            "completion_requests",
            "errors",
            "http_exchange",
            "rate_limits",
            "relay",
            "engine_responses",
        )
    ),
)
#: Worded for whoever maintains the data, on the command line and in files; or SQL.
UNTRANSLATED_MODULES = frozenset(
    {
        "platform/controlplane/domain/catalog/parsing.py",
        "apps/quotas/services/cycles.py",
        "platform/controlplane/domain/simulation/run_profiles.py",
        "platform/controlplane/domain/simulation/reports.py",
        "platform/controlplane/domain/simulation/fleets.py",
    }
)
#: Keywords whose text reaches users.
MESSAGE_KEYWORDS = frozenset(
    {
        "reason",
        "remedy",
        "requirement",
        "message",
        "explanation",
        "state_reason",
        "text",
        "wrong",
        "remarks",
        "instead",
        "right",
        "one_node_because",
        "held_back",
    }
)
#: Titles of these rules are part of the messages of faults.
DEFAULT_RULES = "platform/controlplane/domain/health/default_rules.py"
_DOMAIN = "platform/controlplane/domain"
#: File → fields whose labels and help are on forms.
FORM_TABLES: Mapping[str, Sequence[SpecField]] = {
    f"{_DOMAIN}/specs/serving.py": SERVE,
    f"{_DOMAIN}/specs/training.py": FINETUNE,
    f"{_DOMAIN}/jobs/retries.py": retries.FIELDS,
}
#: File → fields whose labels alone are on pages: in the restrictions of an engine.
LABEL_TABLES: Mapping[str, Sequence[SpecField]] = {
    f"{_DOMAIN}/specs/evaluation.py": (*EVALUATE, *QUANTIZE),
    f"{_DOMAIN}/specs/scripts.py": SCRIPT,
}
#: What makes the gateway's refusals.
REFUSING = frozenset(
    {"ApiError", "bad_request", "key_refused", "unavailable_error", "upstream_failed"}
)
#: What begins like this is said to the database.
QUERY = re.compile(r"\s*(WITH|SELECT|UPDATE|INSERT INTO) |\(l\.")
#: Raised where only a programmer's mistake can lead.
MISTAKES = frozenset({"AssertionError", "TypeError", "KeyError", "RuntimeError", "LookupError"})


def template_of(node: ast.expr) -> str | None:
    """The text with ``{0}``, ``{1}``… for what is filled in; None if it is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    parts: list[str] = []
    filled = 0
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        else:
            parts.append(f"{{{filled}}}")
            filled += 1
    return "".join(parts)


def _is_message(text: str, *, shown: bool) -> bool:
    if QUERY.match(text):
        return False
    own = re.sub(r"\{\d+\}", "", text)
    return bool(re.search("[a-z]{2}", own)) and (shown or " " in text.strip())


def _refuses(called: ast.expr) -> bool:
    """Whether what it is called with is a refusal, or the message that an exception has of itself."""
    if isinstance(called, ast.Name):
        return called.id in REFUSING
    return ast.unparse(called) == "super().__init__"


class MessageCollector(ast.NodeVisitor):
    """Collects the messages of a module that users may read."""

    def __init__(self, *, keywords: frozenset[str] = MESSAGE_KEYWORDS) -> None:
        self._keywords = keywords
        self.messages: list[str] = []

    def collect(self, node: ast.expr | None, *, shown: bool = False) -> None:
        """``shown`` says that even a single word is meant for users."""
        if isinstance(node, ast.IfExp):
            self.collect(node.body, shown=shown)
            self.collect(node.orelse, shown=shown)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                self.collect(value, shown=shown)
        elif shown and isinstance(node, ast.Tuple):
            for value in node.elts:
                self.collect(value, shown=shown)
        elif node is not None and (text := template_of(node)) and _is_message(text, shown=shown):
            self.messages.append(text)

    def visit_Call(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg in self._keywords:
                self.collect(keyword.value, shown=True)
        if _refuses(node.func):
            for argument in node.args:
                self.collect(argument)
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        if isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func)
            if name not in MISTAKES:
                for argument in node.exc.args:
                    self.collect(argument)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if names & self._keywords or any(name.isupper() for name in names):
            self.collect(node.value)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        self.collect(node.value)
        self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield) -> None:
        self.collect(node.value)
        self.generic_visit(node)


def modules() -> Iterator[Path]:
    untranslated_modules = {ROOT / path for path in UNTRANSLATED_MODULES}
    for pattern in SPOKEN:
        yield from (path for path in sorted(ROOT.glob(pattern)) if path not in untranslated_modules)


def spoken() -> dict[str, str]:
    """Each message, and the module that has it."""
    found: dict[str, str] = {}
    for path in modules():
        module = str(path.relative_to(ROOT))
        collector = MessageCollector(
            keywords=MESSAGE_KEYWORDS | {"title"} if module == DEFAULT_RULES else MESSAGE_KEYWORDS
        )
        collector.visit(ast.parse(path.read_text(encoding="utf-8")))
        for text in collector.messages:
            found.setdefault(text, module)
    found |= {purpose: egress.__name__ for _network, purpose in egress.SPECIAL}
    return found


def table_texts() -> dict[str, str]:
    """Each text of a table that pages show, and the file that declares it."""
    found: dict[str, str] = {}
    for path, fields in FORM_TABLES.items():
        for field in _with_subfields(fields):
            found.setdefault(field.label, path)
            found.setdefault(field.help, path)
    for path, fields in LABEL_TABLES.items():
        for field in _with_subfields(fields):
            found.setdefault(field.label, path)
    for remedy in faults.REMEDIES.values():
        found.setdefault(remedy, f"{_DOMAIN}/health/faults.py")
    for plugin in registry.chip_plugins().values():
        for fault_texts in plugin.profile().faults.texts.values():
            for text in filter(None, (fault_texts.cause, fault_texts.remedy)):
                path = f"platform/controlplane/adapters/chips/{plugin.vendor}/faults.toml"
                found.setdefault(text, path)
    return found


def _with_subfields(fields: Sequence[SpecField]) -> Iterator[SpecField]:
    for field in fields:
        yield field
        yield from _with_subfields(field.fields)


def catalogue() -> Iterator[polib.POEntry]:
    yield from polib.pofile(str(CATALOGUE))


def untranslated() -> dict[str, str]:
    """Messages without a translation, and the module of each."""
    translated = {entry.msgid for entry in catalogue() if entry.msgstr}
    return {text: module for text, module in spoken().items() if text not in translated}


def forgotten() -> set[str]:
    """Translations of what nobody says any more."""
    return {entry.msgid for entry in catalogue()} - set(spoken())


def table_catalogue() -> Iterator[polib.POEntry]:
    """Entries that a call of gettext with the text alone finds."""
    yield from (entry for entry in polib.pofile(str(TABLE_CATALOGUE)) if not entry.msgctxt)


def untranslated_table_texts() -> dict[str, str]:
    """Texts of tables without a translation, and the file of each."""
    translated = {entry.msgid for entry in table_catalogue() if entry.msgstr}
    return {text: path for text, path in table_texts().items() if text not in translated}


def forgotten_table_texts() -> set[str]:
    """Translations that refer to a table that does not contain the text."""
    texts = table_texts()
    return {entry.msgid for entry in table_catalogue() if entry.occurrences} - set(texts)


if __name__ == "__main__":
    for text, module in (untranslated() | untranslated_table_texts()).items():
        sys.stdout.write(f"# {module}\n")
        sys.stdout.write(f"{polib.POEntry(msgid=text)}\n")
