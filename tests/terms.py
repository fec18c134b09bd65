"""The terms check of ``make check``: identifiers and pages use the terms of ``docs/glossary.toml``.

``python -m tests.terms`` prints the violations and exits with 1 if there are any; ``--write`` writes
``docs/glossary.md`` and removes from ``tests/terms_pending.toml`` what no longer occurs.

A banned word is refused wherever it is a part of an identifier (``last_heard``, ``HeardCard``), of the
name of a module, a template or a static file. ``tests/terms_pending.toml`` lists the identifiers that
still have one, with the number of files that define them; it can only get shorter.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs/glossary.toml"
PAGE = ROOT / "docs/glossary.md"
PENDING = ROOT / "tests/terms_pending.toml"
#: Where product code and its pages live; names of test functions are sentences of their own.
CODE = ("apps", "platform")
PAGES = ("templates", "static/css", "static/js")
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
    words: frozenset[str]
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
                words=frozenset(entry.get("words", ())),
                names=frozenset(entry.get("names", ())),
                allowed=frozenset(entry.get("except", ())),
                phrases=tuple(entry.get("phrases", ())),
            )
            for word in term.words | term.names:
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


def identifiers(tree: ast.AST) -> Iterator[str]:
    """The names that a module defines: classes, functions, parameters, variables and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str(name)):
                yield name


def violations(
    terms: tuple[Term, ...], named: Mapping[str, set[str]], texts: Mapping[str, str]
) -> Iterator[Violation]:
    """The banned words in identifiers and texts.

    :param named: the identifiers of each path.
    :param texts: the text that users read of each path.
    """
    by_word = {word: term for term in terms for word in term.words}
    by_name = {name: term for term in terms for name in term.names}
    for path, names in named.items():
        for name in names:
            whole = name.strip("_").lower()
            if whole in by_name:
                yield Violation(word=whole, identifier=name, path=path, term=by_name[whole].term)
            for word in dict.fromkeys(parts(name)):
                term = by_word.get(word)
                if term is not None and name not in term.allowed:
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


def named_in_product() -> dict[str, set[str]]:
    """The identifiers of each product file, with the names of the files themselves."""
    named: dict[str, set[str]] = {}
    for path in tracked(*CODE, *PAGES):
        if "/migrations/" in path:
            continue
        names = {Path(path).stem}
        if path.endswith(".py"):
            names.update(identifiers(ast.parse((ROOT / path).read_text())))
        elif path.endswith(".css"):
            names.update(re.findall(r"\.([a-z][a-z0-9-]+)", (ROOT / path).read_text()))
        named[path] = names
    return named


def texts_of_pages() -> dict[str, str]:
    """What users read: the templates and the translations."""
    return {
        path: (ROOT / path).read_text()
        for path in tracked("templates")
        if path.endswith((".html", ".txt", ".po"))
    }


def repeated_classes() -> dict[str, list[str]]:
    """The class names that several modules of the product define, with those modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in tracked(*CODE):
        if not path.endswith(".py") or "/migrations/" in path:
            continue
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.ClassDef) and node.name not in REPEATABLE:
                found[node.name].append(path)
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


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
        refused = ", ".join(sorted(term.words | term.names))
        lines.append(f"| {term.term} | {term.zh} | {term.meaning} | {refused} |")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What still has to be renamed."""

    #: The number of files that may define an identifier, by (banned word, identifier).
    counts: Mapping[tuple[str, str], int]
    #: Class names that still occur more than once.
    classes: frozenset[str]


def pending(source: str) -> Pending:
    """The contents of a file of pending identifiers."""
    data = tomllib.loads(source)
    return Pending(
        counts={
            (word, name): count
            for word, names in data.get("words", {}).items()
            for name, count in names.items()
        },
        classes=frozenset(data.get("classes", ())),
    )


def pending_text(counts: Mapping[tuple[str, str], int], classes: Iterable[str]) -> str:
    """A file of pending identifiers."""
    lines = [
        "# Identifiers that still have a banned word, with the number of files that define them, and class",
        "# names that are not unique. Shortened by `python -m tests.terms --write`, never extended.",
        "",
        "classes = [",
        *(f'  "{name}",' for name in sorted(classes)),
        "]",
    ]
    section = ""
    for (word, name), count in sorted(counts.items()):
        if word != section:
            section = word
            lines += ["", f'[words."{word}"]']
        lines.append(f'"{name}" = {count}')
    return "\n".join(lines) + "\n"


def problems(
    found: Iterable[Violation], classes: Mapping[str, list[str]], allowed: Pending
) -> list[str]:
    """What is wrong: new banned words, new repeated class names, pending entries that are done."""
    places: dict[tuple[str, str], list[Violation]] = defaultdict(list)
    for violation in sorted(found):
        places[violation.word, violation.identifier].append(violation)
    wrong = []
    for key, here in places.items():
        count = allowed.counts.get(key, 0)
        if len(here) > count:
            wrong += [f"{violation} ({len(here)} files, {count} pending)" for violation in here]
    wrong += [
        f'class "{name}" is defined in {", ".join(paths)}; class names are unique'
        for name, paths in classes.items()
        if name not in allowed.classes
    ]
    done = [
        name for (word, name), count in allowed.counts.items() if len(places[word, name]) < count
    ] + sorted(allowed.classes - classes.keys())
    if done:
        wrong.append(
            f"tests/terms_pending.toml lists more than there is of: {', '.join(done)}; "
            "run python -m tests.terms --write"
        )
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="write the page, shorten the pending list"
    )
    options = parser.parse_args()
    terms = glossary(SOURCE.read_text())
    found = sorted(violations(terms, named_in_product(), texts_of_pages()))
    classes = repeated_classes()
    allowed = pending(PENDING.read_text())
    if options.write:
        counts = Counter((violation.word, violation.identifier) for violation in found)
        left = {
            key: min(count, counts[key]) for key, count in allowed.counts.items() if counts[key]
        }
        PAGE.write_text(page(terms))
        PENDING.write_text(pending_text(left, allowed.classes & classes.keys()))
        allowed = pending(PENDING.read_text())
    wrong = problems(found, classes, allowed)
    if PAGE.read_text() != page(terms):
        wrong.append(
            "docs/glossary.md differs from docs/glossary.toml; run python -m tests.terms --write"
        )
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
