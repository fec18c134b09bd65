"""The terms check of ``make check``: identifiers and pages use the terms of ``docs/glossary.toml``.

``python -m tests.terms`` prints the violations and exits with 1 if there are any; ``--write`` writes
``docs/glossary.md``.

A banned word is refused wherever it is a part of an identifier (``last_heard``, ``HeardCard``), of the
name of a module, a template or a static file. Names of test functions are sentences of their own and may
have any word; what else tests define may not.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs/glossary.toml"
PAGE = ROOT / "docs/glossary.md"
#: Where product code, its tests and its pages live.
PRODUCT = ("apps/", "platform/")
CODE = (*PRODUCT, "tests/")
PAGES = ("templates", "static/css", "static/js")
#: Migrations and the fixtures of tests are data of earlier versions.
EARLIER = ("/migrations/", "tests/fixtures/")
#: Class names that Django gives a meaning of its own.
REPEATABLE = frozenset({"Migration", "Command", "Meta"})

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One entry of the glossary."""

    group: str
    term: str
    zh: str
    meaning: str
    #: Refused as a part of an identifier.
    parts: frozenset[str]
    #: Refused as a whole identifier.
    names: frozenset[str]
    #: Identifiers that contain a banned word and mean something else.
    allowed: frozenset[str]
    #: Refused in the text of pages, English and Chinese.
    phrases: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Violation:
    """A banned word where it occurs."""

    word: str
    #: The identifier, or the phrase as it stands on the page.
    identifier: str
    path: str
    term: str

    def __str__(self) -> str:
        return f'{self.path}: "{self.identifier}" contains "{self.word}"; the term is "{self.term}"'


def glossary(source: str) -> tuple[Term, ...]:
    """The entries of a glossary file.

    :raises ValueError: if a word is banned by two entries or is itself part of a term.
    """
    terms: list[Term] = []
    owners: dict[str, str] = {}
    for group in tomllib.loads(source)["group"]:
        for entry in group["term"]:
            term = Term(
                group=group["title"],
                term=entry["term"],
                zh=entry["zh"],
                meaning=entry["meaning"],
                parts=frozenset(entry.get("words", ())),
                names=frozenset(entry.get("names", ())),
                allowed=frozenset(entry.get("except", ())),
                phrases=tuple(entry.get("phrases", ())),
            )
            for word in term.parts | term.names:
                if word in owners:
                    raise ValueError(f'"{word}" is banned by "{owners[word]}" and "{term.term}"')
                owners[word] = term.term
            terms.append(term)
    for term in terms:
        for word in re.findall(r"[a-z]+", term.term.lower()):
            if word in owners:
                raise ValueError(f'"{word}" of the term "{term.term}" is banned')
    return tuple(terms)


def parts(identifier: str) -> list[str]:
    """The lower-case words of a snake-case, camel-case or dashed identifier."""
    return [part.lower() for part in _PARTS.findall(identifier)]


def identifiers(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that nodes define: classes, functions, parameters, variables and attributes.

    Test functions are left out: their names are sentences.
    """
    for node in nodes:
        # The most frequent kinds first.
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                yield node.id
        elif isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("test_"):
                yield node.name
        elif isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname


def violations(
    terms: tuple[Term, ...], named: Mapping[str, set[str]], texts: Mapping[str, str]
) -> Iterator[Violation]:
    """The banned words in identifiers and texts.

    :param named: the identifiers of each path.
    :param texts: the text that users read of each path.
    """
    by_word = {word: term for term in terms for word in term.parts}
    by_name = {name: term for term in terms for name in term.names}
    for path, names in named.items():
        for name in names:
            whole = name.strip("_").lower()
            if whole in by_name:
                yield Violation(word=whole, identifier=name, path=path, term=by_name[whole].term)
            for word in dict.fromkeys(parts(name)):
                term = by_word.get(word)
                if term is not None and whole not in term.allowed:
                    yield Violation(word=word, identifier=name, path=path, term=term.term)
    for path, text in texts.items():
        for term in terms:
            for phrase in term.phrases:
                if phrase in text:
                    yield Violation(word=phrase, identifier=phrase, path=path, term=term.term)


def tracked(*folders: str) -> list[str]:
    """The committed and new files below folders, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return sorted(path for path in listed.splitlines() if (ROOT / path).is_file())


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleDefinitions:
    """What a module defines."""

    identifiers: frozenset[str]
    classes: tuple[str, ...]


def definitions(*folders: str) -> dict[str, ModuleDefinitions]:
    """What each module below folders defines, by path."""
    found: dict[str, ModuleDefinitions] = {}
    for path in tracked(*folders):
        if not path.endswith(".py") or any(part in path for part in EARLIER):
            continue
        nodes = list(ast.walk(ast.parse((ROOT / path).read_text())))
        found[path] = ModuleDefinitions(
            identifiers=frozenset(identifiers(nodes)),
            classes=tuple(node.name for node in nodes if isinstance(node, ast.ClassDef)),
        )
    return found


def identifiers_of_pages() -> dict[str, set[str]]:
    """The names of templates and static files, and the classes of style sheets."""
    named: dict[str, set[str]] = {}
    for path in tracked(*PAGES):
        named[path] = {Path(path).stem}
        if path.endswith(".css"):
            named[path].update(re.findall(r"\.([a-z][a-z0-9-]+)", (ROOT / path).read_text()))
    return named


def texts_of_pages() -> dict[str, str]:
    """What users read: the templates and the translations."""
    return {
        path: (ROOT / path).read_text()
        for path in tracked("templates")
        if path.endswith((".html", ".txt", ".po"))
    }


def repeated_classes(defined: Mapping[str, ModuleDefinitions]) -> dict[str, list[str]]:
    """The class names that several modules of the product define, with those modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, module in defined.items():
        if path.startswith(PRODUCT):
            for name in module.classes:
                found[name].append(path)
    return {
        name: paths
        for name, paths in sorted(found.items())
        if len(paths) > 1 and name not in REPEATABLE
    }


def page(terms: tuple[Term, ...]) -> str:
    """The glossary as Markdown."""
    lines = [
        "# Glossary",
        "",
        "One term for one thing, in identifiers, pages, REST, documentation and messages. Written from",
        "`glossary.toml` by `python -m tests.terms --write`; `make check` refuses the words of the last column.",
    ]
    group = ""
    for term in terms:
        if term.group != group:
            group = term.group
            lines += ["", f"## {group}", "", "| term | 中文 | meaning | not |", "|---|---|---|---|"]
        refused = ", ".join(sorted(term.parts | term.names))
        lines.append(f"| {term.term} | {term.zh} | {term.meaning} | {refused} |")
    return "\n".join(lines) + "\n"


def problems(found: Iterable[Violation], classes: Mapping[str, list[str]]) -> list[str]:
    """What is wrong: banned words and repeated class names."""
    return [str(violation) for violation in sorted(found)] + [
        f'class "{name}" is defined in {", ".join(paths)}; class names are unique'
        for name, paths in classes.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page")
    options = parser.parse_args()
    terms = glossary(SOURCE.read_text())
    if options.write:
        PAGE.write_text(page(terms))
    defined = definitions(*CODE)
    named = {path: {Path(path).stem, *module.identifiers} for path, module in defined.items()}
    found = violations(terms, named | identifiers_of_pages(), texts_of_pages())
    wrong = problems(found, repeated_classes(defined))
    if PAGE.read_text() != page(terms):
        wrong.append(
            "docs/glossary.md differs from docs/glossary.toml; run python -m tests.terms --write"
        )
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
