"""Good files: what is read, counted and written."""

from __future__ import annotations

import hashlib
import io
import json
from collections import defaultdict
from importlib.resources import files as resources

import pytest

from controlplane.domain.datasets import (
    HISTOGRAM_EDGES,
    ColumnMapping,
    FileFormat,
    FileLimits,
    Inspection,
    LengthStatistics,
    MessageRole,
    Schema,
    Split,
    SplitFractions,
    inspect_dataset,
)
from controlplane.domain.datasets.inspection import WarningKind
from tests.unit.datasets.dataset_files import Fields, as_csv, as_json, as_jsonl, pairs

ALL_TRAIN = SplitFractions(validation=0, test=0)


def written(content: bytes, inspection: Inspection) -> dict[Split, bytes]:
    found: dict[Split, bytes] = defaultdict(bytes)
    for split, line in inspection.canonical(io.BytesIO(content)):
        found[split] += line
    return found


def conversation(content: bytes, filename: str = "data.jsonl") -> list[list[tuple[str, str]]]:
    inspection = inspect_dataset(io.BytesIO(content), filename=filename, fractions=ALL_TRAIN)
    lines = written(content, inspection)[Split.TRAIN].decode().splitlines()
    return [
        [(message["role"], message["content"]) for message in json.loads(line)["messages"]]
        for line in lines
    ]


def test_a_row_is_written_as_one_compact_line() -> None:
    content = as_jsonl([{"instruction": "你好", "output": 'a "b"'}])
    inspection = inspect_dataset(io.BytesIO(content), filename="a.jsonl")
    assert list(inspection.canonical(io.BytesIO(content))) == [
        (
            Split.TRAIN,
            '{"messages":[{"role":"user","content":"你好"},'
            '{"role":"assistant","content":"a \\"b\\""}]}\n'.encode(),
        )
    ]


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("instruction", "output"),
        ("prompt", "response"),
        ("prompt", "completion"),
        ("question", "answer"),
    ],
)
def test_question_and_answer_are_known_by_several_names(question: str, reply: str) -> None:
    assert conversation(as_jsonl([{question: "q", reply: "a"}])) == [
        [("user", "q"), ("assistant", "a")]
    ]


def test_input_follows_the_instruction_and_system_comes_first() -> None:
    row = {"instruction": "翻译", "input": "cat", "output": "猫", "system": "简短"}
    assert conversation(as_jsonl([row])) == [
        [("system", "简短"), ("user", "翻译\ncat"), ("assistant", "猫")]
    ]


@pytest.mark.parametrize("nothing", ["", None])
def test_an_empty_optional_column_is_none(nothing: str | None) -> None:
    row = {"instruction": "q", "input": nothing, "output": "a", "system": nothing}
    assert conversation(as_jsonl([row])) == [[("user", "q"), ("assistant", "a")]]


def test_an_optional_column_may_appear_later_than_the_first_row() -> None:
    rows = [{"instruction": "q", "output": "a"}, {"instruction": "q", "input": "x", "output": "a"}]
    assert conversation(as_jsonl(rows))[1] == [("user", "q\nx"), ("assistant", "a")]


CONVERSATION = [
    ("system", "s"),
    ("user", "1"),
    ("assistant", "2"),
    ("user", "3"),
    ("assistant", "4"),
]


def test_chat_and_sharegpt_rows_give_the_same_conversation() -> None:
    chat = {"messages": [{"role": role, "content": text} for role, text in CONVERSATION]}
    names = {"system": "system", "user": "human", "assistant": "gpt"}
    sharegpt = {
        "conversations": [{"from": names[role], "value": text} for role, text in CONVERSATION]
    }
    assert conversation(as_jsonl([chat])) == [CONVERSATION]
    assert conversation(as_jsonl([sharegpt])) == [CONVERSATION]


def test_a_chat_column_of_a_csv_file_holds_json() -> None:
    messages = json.dumps([{"role": role, "content": text} for role, text in CONVERSATION])
    assert conversation(as_csv([{"messages": messages}]), "data.csv") == [CONVERSATION]


def test_the_same_rows_have_the_same_digest_in_every_format() -> None:
    rows = [*pairs(60), {"instruction": 'a,"b"\nc', "output": "多行\n答"}]
    contents = {
        "a.jsonl": as_jsonl(rows),
        "b.json": as_json(rows),
        "c.csv": as_csv(rows),
        "d.csv": as_csv(rows, delimiter=";"),
        "e.tsv": as_csv(rows, delimiter="\t"),
        "f.csv": as_csv(rows).decode().encode("utf-8-sig"),
        "g.csv": as_csv(rows).decode().encode("utf-16"),
        "h.jsonl": as_jsonl(rows).replace(b"\n", b"\r\n"),
        "i.jsonl": as_jsonl(rows).decode().encode("utf-32"),
    }
    digests = {
        name: inspect_dataset(io.BytesIO(content), filename=name).digest
        for name, content in contents.items()
    }
    assert len(set(digests.values())) == 1, digests


def test_another_row_gives_another_digest() -> None:
    first, second = (
        inspect_dataset([as_jsonl(pairs(count))], filename="a.jsonl") for count in (30, 31)
    )
    assert first.digest != second.digest


def test_the_digests_are_those_of_the_written_files() -> None:
    content = as_jsonl(pairs(200))
    inspection = inspect_dataset(
        io.BytesIO(content), filename="a.jsonl", fractions=SplitFractions(test=0.1)
    )
    files = written(content, inspection)
    assert list(inspection.files) == [Split.TRAIN, Split.VALIDATION, Split.TEST]
    for split, file in inspection.files.items():
        assert file.digest == f"sha256:{hashlib.sha256(files[split]).hexdigest()}"
        assert file.size == len(files[split])
        assert file.rows == files[split].count(b"\n")


def test_splits_named_in_the_file_are_used() -> None:
    names = ["train", "validation", "test", "val", "Dev", " TEST "]
    rows = [pair | {"split": name} for pair, name in zip(pairs(6), names, strict=True)]
    inspection = inspect_dataset([as_csv(rows)], filename="a.csv")
    assert inspection.splits_given
    assert inspection.statistics.rows == {Split.TRAIN: 1, Split.VALIDATION: 3, Split.TEST: 2}


def test_columns_can_be_mapped_explicitly() -> None:
    mapping = ColumnMapping(instruction="地址", output="标签", split="组")
    rows = [{"地址": "q", "标签": "a", "组": "test", "编号": "7"}]
    inspection = inspect_dataset([as_csv(rows)], filename="a.csv", columns=mapping)
    assert inspection.schema is Schema.INSTRUCTION
    assert inspection.statistics.rows[Split.TEST] == 1
    assert inspection.ignored_columns == ("编号",)


def test_a_chat_column_can_be_mapped_explicitly() -> None:
    row = {"dialog": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
    inspection = inspect_dataset(
        [as_jsonl([row])], filename="a.jsonl", columns=ColumnMapping(messages="dialog")
    )
    assert inspection.schema is Schema.CHAT


def test_statistics_equal_hand_counted_values() -> None:
    rows: list[Fields] = [{"instruction": "q" * n, "output": "a" * (2 * n)} for n in range(1, 21)]
    rows.append({"instruction": "q", "output": "aa", "system": "s" * 9})
    statistics = inspect_dataset(
        [as_jsonl(rows)], filename="a.jsonl", fractions=ALL_TRAIN
    ).statistics
    # Prompts are 1 to 20 and one more of 10 characters; the 11th and the 20th of 21 are these.
    assert statistics.prompt == LengthStatistics(p50=10, p95=19, most=20)
    assert statistics.answer == LengthStatistics(p50=20, p95=38, most=40)
    assert statistics.roles == {
        MessageRole.SYSTEM: 1,
        MessageRole.USER: 21,
        MessageRole.ASSISTANT: 21,
    }
    # Whole rows are 3, 6, … 60 and one of 12: five and one below 16, five below 32, ten below 64.
    assert HISTOGRAM_EDGES[:4] == (0, 16, 32, 64)
    assert statistics.histogram[:4] == (6, 5, 10, 0)
    assert sum(statistics.histogram) == 21


def test_duplicate_rows_are_counted_and_kept() -> None:
    inspection = inspect_dataset([as_jsonl(pairs(30) + pairs(10))], filename="a.jsonl")
    assert inspection.duplicates == 10
    assert inspection.rows == sum(inspection.statistics.rows.values()) == 40


def test_a_preview_is_short_and_has_row_numbers() -> None:
    rows = [{"instruction": "字" * 1000, "output": "a"}, *pairs(5)]
    content = b"\n\n" + as_jsonl(rows)
    preview = inspect_dataset([content], filename="a.jsonl", limits=FileLimits(preview=2)).preview
    assert [row.row for row in preview] == [3, 4]
    assert preview[0].messages[0].content == "字" * 400 + "…"


@pytest.mark.parametrize(
    ("filename", "content", "expected"),
    [
        ("a.jsonl", as_jsonl(pairs(2)), FileFormat.JSONL),
        ("a.ndjson", as_jsonl(pairs(2)), FileFormat.JSONL),
        ("a.json", as_jsonl(pairs(2)), FileFormat.JSONL),
        ("a.json", as_json(pairs(2)), FileFormat.JSON),
        ("a.jsonl", as_json(pairs(2)), FileFormat.JSON),
        ("A.CSV", as_csv(pairs(2)), FileFormat.CSV),
        ("a.csv", b"\n\r\n" + as_csv(pairs(2)), FileFormat.CSV),
        ("upload", as_jsonl(pairs(2)), FileFormat.JSONL),
        ("a.txt", as_csv(pairs(2)), FileFormat.CSV),
    ],
)
def test_the_format_is_detected_by_name_and_content(
    filename: str, content: bytes, expected: FileFormat
) -> None:
    inspection = inspect_dataset([content], filename=filename)
    assert inspection.format is expected
    assert inspection.rows == 2


def test_a_stream_may_come_in_pieces_of_any_size() -> None:
    content = as_jsonl(pairs(50)).decode().encode("utf-16")
    whole = inspect_dataset([content], filename="a.jsonl")
    bytewise = inspect_dataset((bytes([value]) for value in content), filename="a.jsonl")
    assert bytewise == whole


def test_the_shipped_addresses_are_a_good_dataset() -> None:
    content = (resources("ninefold_runtime.samples") / "data" / "addresses.jsonl").read_bytes()
    inspection = inspect_dataset([content], filename="addresses.jsonl")
    assert inspection.schema is Schema.INSTRUCTION
    assert inspection.statistics.rows == {
        Split.TRAIN: 4000,
        Split.VALIDATION: 400,
        Split.TEST: 400,
    }
    assert inspection.duplicates == 0


def test_rows_with_images_give_a_warning_and_keep_only_text() -> None:
    rows: list[Fields] = [
        {"instruction": "What is this?", "output": "A cat.", "images": ["cat.png"]},
        {"instruction": "And this?", "output": "A dog.", "images": []},
        {"instruction": "And now?", "output": "Both.", "images": ["cat.png", "dog.png"]},
    ]
    found = inspect_dataset(io.BytesIO(as_jsonl(rows)), filename="a.jsonl")
    (warning,) = found.warnings
    assert (warning.kind, warning.total, warning.rows) == (WarningKind.MEDIA, 2, (1, 3))
    assert found.ignored_columns == ("images",)
    named = ColumnMapping(instruction="images", output="output")
    taken = inspect_dataset(
        io.BytesIO(as_jsonl([{"images": "Draw a cat.", "output": "=^.^="}])),
        filename="a.jsonl",
        columns=named,
    )
    assert taken.warnings == ()
