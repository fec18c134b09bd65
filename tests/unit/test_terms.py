"""The terms check refuses what it is there to refuse."""

from __future__ import annotations

import ast

import pytest

from tests import terms

GLOSSARY = """
[[group]]
title = "Health"
[[group.term]]
term = "last seen"
zh = "最近上报"
meaning = "When an agent last reported."
words = ["heard"]
names = ["act"]
except = ["overheard"]
phrases = ["Last heard", "听到"]
"""


def check(code: str = "", *, page: str = "", pending: str = "") -> list[str]:
    found = terms.violations(
        terms.glossary(GLOSSARY),
        {"apps/x.py": set(terms.identifiers(ast.parse(code)))},
        {"templates/x.html": page},
    )
    return terms.problems(found, {}, terms.pending(pending))


@pytest.mark.parametrize(
    "code",
    [
        "heard = 1",
        "class HeardCard: ...",
        "def cards_heard(): ...",
        "def cards(*, last_heard): ...",
        "async def heard_of(): ...",
        "x.heard_at = 1",
        "import seen as _heard",
        "act = 1",
    ],
)
def test_a_banned_word_is_refused_in_every_kind_of_identifier(code: str) -> None:
    [problem] = check(code)
    assert 'the term is "last seen"' in problem


@pytest.mark.parametrize("code", ["heardless = 1", "action = 1", "overheard = 1", "x = 'heard'"])
def test_other_words_exceptions_and_strings_are_accepted(code: str) -> None:
    assert check(code) == []


def test_a_banned_phrase_is_refused_on_pages_in_both_languages() -> None:
    assert len(check(page="<h2>Last heard</h2>")) == 1
    assert len(check(page='msgstr "没有听到"')) == 1
    assert check(page="<h2>Last seen</h2>") == []


def test_pending_identifiers_are_accepted_in_as_many_files_as_listed() -> None:
    pending = '[words."heard"]\n"heard_at" = 1\n'
    assert check("heard_at = 1", pending=pending) == []
    assert len(check("heard_by = 1\nheard_at = 1", pending=pending)) == 1
    assert "lists more than there is" in check("seen_at = 1", pending=pending)[0]


def test_a_second_class_of_the_same_name_is_refused() -> None:
    classes = {"Plan": ["apps/a.py", "apps/b.py"]}
    [problem] = terms.problems([], classes, terms.pending(""))
    assert "class names are unique" in problem
    assert terms.problems([], classes, terms.pending('classes = ["Plan"]')) == []


def test_a_word_is_banned_by_one_entry_and_by_no_term() -> None:
    with pytest.raises(ValueError, match="banned"):
        terms.glossary(GLOSSARY + GLOSSARY)
    with pytest.raises(ValueError, match="of the term"):
        terms.glossary(GLOSSARY.replace('"last seen"', '"last heard"'))
