"""The sentences that services, rules and adapters say, read from their source.

They are English in the database and on REST; pages show them in the reader's language. What can be said
is found here, so that a test can ask for a translation of each. ``python -m tests.sentences`` prints
those that have none.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import polib

from controlplane.domain.health import faults
from controlplane.domain.outbound import egress
from controlplane.ports import registry

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = ROOT / "templates/locale/zh_Hans/LC_MESSAGES/messages.po"
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
UNHEARD = frozenset(
    {
        "platform/controlplane/domain/catalog/parsing.py",
        "apps/quotas/services/cycles.py",
        "platform/controlplane/domain/simulation/run_profiles.py",
        "platform/controlplane/domain/simulation/reports.py",
        "platform/controlplane/domain/simulation/fleets.py",
    }
)
#: Keywords whose text reaches people.
TELLING = frozenset(
    {
        "reason",
        "remedy",
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
#: Where a table of fields says what each is called and means, and the keywords that do.
TABLES = (
    "platform/controlplane/domain/specs/serving.py",
    "platform/controlplane/domain/specs/training.py",
    "platform/controlplane/domain/health/default_rules.py",
    "platform/controlplane/domain/jobs/retries.py",
)
EXPLAINING = frozenset({"label", "help", "title", "source"})
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


def _is_sentence(text: str, *, told: bool) -> bool:
    if QUERY.match(text):
        return False
    own = re.sub(r"\{\d+\}", "", text)
    return bool(re.search("[a-z]{2}", own)) and (told or " " in text.strip())


def _refuses(called: ast.expr) -> bool:
    """Whether what it is called with is a refusal, or the words that an exception has of itself."""
    if isinstance(called, ast.Name):
        return called.id in REFUSING
    return ast.unparse(called) == "super().__init__"


class Listener(ast.NodeVisitor):
    """Collects what a module may say to people."""

    def __init__(self, *, telling: frozenset[str] = TELLING) -> None:
        self._telling = telling
        self.heard: list[str] = []

    def hear(self, node: ast.expr | None, *, told: bool = False) -> None:
        """``told`` says that even a single word is meant for people."""
        if isinstance(node, ast.IfExp):
            self.hear(node.body, told=told)
            self.hear(node.orelse, told=told)
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                self.hear(value, told=told)
        elif told and isinstance(node, ast.Tuple):
            for value in node.elts:
                self.hear(value, told=told)
        elif node is not None and (text := template_of(node)) and _is_sentence(text, told=told):
            self.heard.append(text)

    def visit_Call(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg in self._telling:
                self.hear(keyword.value, told=True)
        if _refuses(node.func):
            for argument in node.args:
                self.hear(argument)
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        if isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func)
            if name not in MISTAKES:
                for argument in node.exc.args:
                    self.hear(argument)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if names & self._telling or any(name.isupper() for name in names):
            self.hear(node.value)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        self.hear(node.value)
        self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield) -> None:
        self.hear(node.value)
        self.generic_visit(node)


def modules() -> Iterator[Path]:
    unheard = {ROOT / path for path in UNHEARD}
    for pattern in SPOKEN:
        yield from (path for path in sorted(ROOT.glob(pattern)) if path not in unheard)


def spoken() -> dict[str, str]:
    """Each sentence, and the module that says it."""
    found: dict[str, str] = {}
    for path in modules():
        module = str(path.relative_to(ROOT))
        listener = Listener(telling=TELLING | EXPLAINING if module in TABLES else TELLING)
        listener.visit(ast.parse(path.read_text(encoding="utf-8")))
        for text in listener.heard:
            found.setdefault(text, module)
    found |= {purpose: egress.__name__ for _network, purpose in egress.SPECIAL}
    return found | dict(_of_faults())


def _of_faults() -> Iterator[tuple[str, str]]:
    """What the makers' fault maps say of their codes."""
    for plugin in registry.chip_plugins().values():
        for words in plugin.profile().faults.texts.values():
            for text in filter(None, (words.cause, words.remedy)):
                yield text, f"faults.toml of {plugin.vendor}"
    yield from ((remedy, faults.__name__) for remedy in faults.REMEDIES.values())


def catalogue() -> Iterator[polib.POEntry]:
    yield from polib.pofile(str(CATALOGUE))


def untranslated() -> dict[str, str]:
    """Sentences without a translation, and the module that says each."""
    told = {entry.msgid for entry in catalogue() if entry.msgstr}
    return {text: module for text, module in spoken().items() if text not in told}


def forgotten() -> set[str]:
    """Translations of what nobody says any more."""
    return {entry.msgid for entry in catalogue()} - set(spoken())


if __name__ == "__main__":
    for text, module in untranslated().items():
        sys.stdout.write(f"# {module}\n")
        sys.stdout.write(f"{polib.POEntry(msgid=text)}\n")
