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


def check(code: str = "", *, page: str = "") -> list[str]:
    found = terms.violations(
        terms.glossary(GLOSSARY),
        {"apps/x.py": set(terms.identifiers(ast.walk(ast.parse(code))))},
        {"templates/x.html": page},
    )
    return terms.problems(found, {})


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
        "_act = 1",
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


def test_only_the_name_of_a_test_may_have_any_word() -> None:
    assert check("def test_heard(): ...") == []
    assert check("async def test_what_is_heard(): ...") == []
    assert len(check("def test_it(heard): heard_at = 1")) == 2


def test_data_of_earlier_versions_is_not_checked() -> None:
    defined = terms.definitions("apps/workflows/migrations", "tests/fixtures", "tests/cases.py")
    assert defined.keys() == {"tests/cases.py"}


def test_a_second_class_of_the_same_name_is_refused_in_product_code_alone() -> None:
    def defining(*paths: str) -> dict[str, list[str]]:
        plan = terms.ModuleDefinitions(identifiers=frozenset(), classes=("Plan", "Meta"))
        return terms.repeated_classes(dict.fromkeys(paths, plan))

    [problem] = terms.problems([], defining("apps/a.py", "platform/b.py"))
    assert "class names are unique" in problem
    assert defining("apps/a.py", "tests/b.py") == {}


def test_a_word_is_banned_by_one_entry_and_by_no_term() -> None:
    with pytest.raises(ValueError, match="banned"):
        terms.glossary(GLOSSARY + GLOSSARY)
    with pytest.raises(ValueError, match="of the term"):
        terms.glossary(GLOSSARY.replace('"last seen"', '"last heard"'))
