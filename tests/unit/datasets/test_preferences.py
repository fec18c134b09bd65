"""Two answers to one prompt, and plain texts: every form in which people publish them becomes one."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from controlplane.domain.datasets import (
    ColumnMapping,
    DatasetRefused,
    Inspection,
    Schema,
    SplitFractions,
    inspect_dataset,
)
from tests.unit.datasets.dataset_files import as_csv, as_jsonl

ALL_TRAIN = SplitFractions(validation=0, test=0)
USER = {"role": "user", "content": "the capital?"}
GOOD = {"role": "assistant", "content": "Paris"}
BAD = {"role": "assistant", "content": "Lyon"}
LINE = {"messages": [USER, GOOD], "rejected": "Lyon"}


def inspected(content: bytes, filename: str = "rows.jsonl", **how: Any) -> Inspection:
    return inspect_dataset(io.BytesIO(content), filename=filename, fractions=ALL_TRAIN, **how)


def lines(content: bytes, filename: str = "rows.jsonl", **how: Any) -> list[dict[str, Any]]:
    found = inspected(content, filename, **how)
    return [json.loads(line) for _split, line in found.canonical(io.BytesIO(content))]


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "the capital?", "chosen": "Paris", "rejected": "Lyon"},
        {"prompt": "the capital?", "chosen": [GOOD], "rejected": [BAD]},
        {"prompt": [USER], "chosen": [GOOD], "rejected": [BAD]},
        {"chosen": [USER, GOOD], "rejected": [USER, BAD]},
        {"messages": [USER], "chosen": GOOD, "rejected": BAD},
        {
            "conversations": [{"from": "human", "value": "the capital?"}],
            "chosen": {"from": "gpt", "value": "Paris"},
            "rejected": {"from": "gpt", "value": "Lyon"},
        },
        LINE,
    ],
)
def test_each_form_of_a_preference_becomes_the_same_line(row: dict[str, Any]) -> None:
    content = as_jsonl([row])
    assert lines(content) == [LINE]
    found = inspected(content)
    assert found.schema is Schema.PREFERENCE
    assert found.preview[0].rejected == "Lyon"


def test_a_csv_preference_row_keeps_its_system_message() -> None:
    row = {"system": "be brief", "prompt": "the capital?", "chosen": "Paris", "rejected": "Lyon"}
    (line,) = lines(as_csv([row]), "rows.csv")
    assert line["messages"][0] == {"role": "system", "content": "be brief"}
    assert line["rejected"] == "Lyon"


def test_columns_with_other_names_are_mapped() -> None:
    mapping = ColumnMapping(instruction="q", output="good", rejected="bad")
    row = {"q": "the capital?", "good": "Paris", "bad": "Lyon"}
    assert lines(as_jsonl([row]), columns=mapping) == [LINE]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"prompt": "p", "chosen": "a", "rejected": "a"},
            "the rejected answer equals the chosen answer; a preference requires two different answers",
        ),
        ({"prompt": "p", "chosen": "a", "rejected": ""}, "the value must not be empty"),
        (
            {"prompt": "p", "chosen": "a", "rejected": [USER]},
            "the answer must be a message of the assistant, not of the user",
        ),
        ({"prompt": 7, "chosen": "a", "rejected": "b"}, "must be text or a list of messages"),
        ({"chosen": "a", "rejected": "b"}, "has no prompt"),
        (
            {
                "chosen": [USER, GOOD],
                "rejected": [{"role": "user", "content": "another question?"}, BAD],
            },
            "the rejected answer belongs to a different prompt than the chosen answer",
        ),
    ],
)
def test_an_invalid_preference_is_refused_by_row(row: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetRefused) as refusal:
        inspected(as_jsonl([row]))
    (problem,) = refusal.value.problems
    assert message in problem.message
    assert problem.row == 1


def test_a_text_is_a_row_in_which_only_the_assistant_speaks() -> None:
    content = as_jsonl([{"text": "Once upon a time."}, {"text": "The end."}])
    found = inspected(content)
    assert found.schema is Schema.TEXT
    assert (found.rows, found.statistics.prompt.most, found.statistics.answer.most) == (2, 0, 17)
    assert lines(content)[0] == {
        "messages": [{"role": "assistant", "content": "Once upon a time."}]
    }


def test_a_text_beside_a_question_is_one_of_the_columns_that_are_not_used() -> None:
    found = inspected(as_jsonl([{"prompt": "q", "response": "a", "text": "both"}]))
    assert found.schema is Schema.INSTRUCTION
    assert found.ignored_columns == ("text",)


def test_the_longer_of_two_answers_counts_for_the_length_of_a_row() -> None:
    found = inspected(as_jsonl([{"prompt": "p", "chosen": "ab", "rejected": "b" * 300}]))
    assert found.statistics.histogram[5] == 1
