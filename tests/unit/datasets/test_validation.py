"""Bad files: each is refused with the row, the column and what would be right."""

from __future__ import annotations

import io
import json
import zipfile
from itertools import repeat

import pytest

from controlplane.domain.datasets import (
    ColumnMapping,
    DatasetRefused,
    FileLimits,
    FileProblem,
    SplitFractions,
    inspect_dataset,
)
from tests.unit.datasets.dataset_files import (
    SMALL,
    Fields,
    as_csv,
    as_json,
    as_jsonl,
    pairs,
    problem,
    refusal,
)


def workbook() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG image"),
        (workbook(), "an Excel workbook"),
        (b"%PDF-1.7\n%", "a PDF document"),
        (b"\x1f\x8b\x08\x00", "a gzip archive"),
        (b"PAR1\x15\x04", "a Parquet file"),
        (b"data.jsonl".ljust(257, b"\0") + b"ustar\x0000", "a tar archive"),
    ],
)
@pytest.mark.parametrize("filename", ["data.jsonl", "data.csv", "data.json"])
def test_another_kind_of_file_is_refused_by_what_it_is(
    content: bytes, kind: str, filename: str
) -> None:
    found = problem(content, filename)
    assert kind in found.message
    assert "expected JSON Lines (.jsonl)" in found.message


@pytest.mark.parametrize("content", [b"", b"\n\n  \n", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_an_empty_file_is_refused(content: bytes) -> None:
    assert problem(content).message.startswith("the file is empty")


@pytest.mark.parametrize(
    ("filename", "content"),
    [("a.json", b"[]"), ("a.json", b" [ ] \n"), ("a.csv", b"instruction,output\n")],
)
def test_a_file_without_rows_is_refused(filename: str, content: bytes) -> None:
    assert "the file has no rows" in problem(content, filename).message


def test_broken_json_at_row_3001_is_named_with_its_column_and_what_was_expected() -> None:
    lines = as_jsonl(pairs(4000)).splitlines(keepends=True)
    lines[3000] = b'{"instruction": "a" "output": "b"}\n'
    assert problem(b"".join(lines)) == FileProblem(
        row=3001,
        message="the value is not valid JSON at column 21: expected ',' delimiter "
        "(each line must be one JSON object)",
    )
    assert str(problem(b"".join(lines))).startswith(
        "row 3,001: the value is not valid JSON at column 21"
    )


def test_broken_json_inside_an_array_names_the_element() -> None:
    content = b'[{"instruction":"a","output":"b"},\n{"instruction":"a",output":"b"}]'
    assert problem(content, "a.json") == FileProblem(
        row=2,
        message="the value is not valid JSON at line 2, column 20: "
        "expected property name enclosed in double quotes",
    )


@pytest.mark.parametrize(
    ("tail", "expected"),
    [(b"", "expected ',' or ']'"), (b"] x", "expected nothing after the array"), (b",]", "value")],
)
def test_an_array_must_be_closed_and_end_the_file(tail: bytes, expected: str) -> None:
    content = as_json(pairs(2)).rstrip(b"]\n ") + tail
    assert expected in problem(content, "a.json").message


def test_every_problem_is_counted_and_the_first_ones_are_kept() -> None:
    rows = [{"instruction": "q", "output": ""}] * 10
    refused = refusal(as_jsonl(pairs(1) + rows), limits=FileLimits(problems=3))
    assert refused.total == 10
    assert [found.row for found in refused.problems] == [2, 3, 4]
    assert str(refused) == "row 2, column output: the value must not be empty (and 9 more)"


def test_a_csv_row_with_another_number_of_fields_is_named() -> None:
    content = as_csv(pairs(3)) + b"one field\n\na,b,c\n"
    refused = refusal(content, "a.csv")
    assert [(found.row, found.message.split(";")[0]) for found in refused.problems] == [
        (5, "the row has 1 fields, but the header has 2"),
        (7, "the row has 3 fields, but the header has 2"),
    ]


def test_rows_of_a_csv_file_are_counted_as_a_spreadsheet_shows_them() -> None:
    rows = [{"instruction": "two\nlines", "output": "a"}, {"instruction": "q", "output": " "}]
    assert problem(as_csv(rows), "a.csv") == FileProblem(
        row=3, column="output", message="the value must not be empty"
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'instruction,output\na,"b\n', "unexpected end of data"),
        (b'instruction,output\n"a"b,c\n', "expected after"),
        (b"instruction,output\ra,b\r", "bare carriage return"),
    ],
)
def test_broken_csv_is_refused_with_the_reason(content: bytes, expected: str) -> None:
    assert expected in problem(content, "a.csv").message


def test_an_open_quote_does_not_swallow_the_file() -> None:
    content = b'instruction,output\na,"b\n' + b"c,d\n" * 200
    found = problem(content, "a.csv", limits=SMALL)
    assert found.row == 2
    assert "check for an unclosed quotation mark" in found.message


def test_a_missing_column_names_those_found_and_those_expected() -> None:
    found = problem(b"frage,antwort\na,b\n", "a.csv")
    assert found.row == 2
    assert (
        "the file has columns: frage, antwort; expected instruction and output; prompt"
        in found.message
    )


@pytest.mark.parametrize(
    ("header", "expected"),
    [(b"instruction,,output\n", "column 2 of the header"), (b"a,b,a\n", "more than once")],
)
def test_a_header_must_name_each_column_once(header: bytes, expected: str) -> None:
    found = problem(header + b"1,2,3\n", "a.csv")
    assert found.row == 1
    assert expected in found.message


def test_a_column_that_is_missing_in_a_later_row_is_named() -> None:
    assert problem(as_jsonl([*pairs(2), {"instruction": "q", "text": "a"}])) == FileProblem(
        row=3,
        column="output",
        message="the column is missing; the row has columns: instruction, text",
    )


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        (
            ColumnMapping(instruction="q", output="missing"),
            "the file has columns: q, a; not found: missing",
        ),
        (
            ColumnMapping(instruction="q"),
            "map either instruction and output, or only messages, or only text",
        ),
        (ColumnMapping(messages="q", system="a"), "or only messages, or only text"),
        (ColumnMapping(), "map either instruction and output, or only messages, or only text"),
    ],
)
def test_a_mapping_must_name_columns_that_are_there(mapping: ColumnMapping, expected: str) -> None:
    assert expected in problem(b"q,a\n1,2\n", "a.csv", columns=mapping).message


@pytest.mark.parametrize(
    ("value", "kind"),
    [(5, "a number"), (None, "null"), (True, "a boolean"), (["a"], "an array"), ({}, "an object")],
)
def test_a_content_must_be_text(value: object, kind: str) -> None:
    found = problem(as_jsonl([{"instruction": "q", "output": value}]))
    assert found.message == f"the value must be text, not {kind}"


@pytest.mark.parametrize("value", [5, "text", None, [1]])
def test_a_row_must_be_an_object(value: object) -> None:
    assert "must be a JSON object, not" in problem(as_jsonl([*pairs(1), value])).message
    assert "must be a JSON object, not" in problem(as_json([*pairs(1), value]), "a.json").message


def turn(role: str, content: object = "text") -> Fields:
    return {"role": role, "content": content}


USER, ASSISTANT, SYSTEM = turn("user"), turn("assistant"), turn("system")


@pytest.mark.parametrize(
    ("messages", "column", "message"),
    [
        ([], "messages", "the last message must have the role assistant; its role is none"),
        ([USER], "messages", "the last message must have the role assistant; its role is user"),
        ([SYSTEM], "messages", "the last message must have the role assistant; its role is system"),
        ([ASSISTANT], "messages[0]", "an assistant message must follow a user message"),
        ([SYSTEM, ASSISTANT], "messages[1]", "an assistant message must follow a user message"),
        ([USER, USER, ASSISTANT], "messages[1]", "two user messages in a row"),
        (
            [USER, ASSISTANT, ASSISTANT],
            "messages[2]",
            "an assistant message must follow a user message",
        ),
        ([USER, SYSTEM, ASSISTANT], "messages[1]", "a system message must be the first message"),
        (
            [turn("tool"), ASSISTANT],
            "messages[0].role",
            "the role must be one of system, user, assistant",
        ),
        ([USER, turn("assistant", " ")], "messages[1].content", "the value must not be empty"),
        (
            [USER, turn("assistant", 3)],
            "messages[1].content",
            "the value must be text, not a number",
        ),
        (
            [USER, {"role": "assistant"}],
            "messages[1]",
            "the message has no content; it has columns: role",
        ),
        ([USER, ASSISTANT | {"tool_calls": [{}]}], "messages[1]", "the message has tool_calls"),
        ("hello", "messages", "the value is not valid JSON at column 1: expected value"),
        ({"role": "user"}, "messages", "the value must be a list of messages, not an object"),
        (["hello"], "messages[0]", "the message must be an object, not text"),
    ],
)
def test_a_conversation_must_alternate_roles(messages: object, column: str, message: str) -> None:
    found = problem(as_jsonl([{"messages": messages}]))
    assert (found.row, found.column) == (1, column)
    assert found.message.startswith(message)


@pytest.mark.parametrize("value", ["", "holdout", 3, None])
def test_a_split_must_be_one_of_three(value: object) -> None:
    rows: list[Fields] = [pairs(1)[0] | {"split": "train"}, pairs(1)[0] | {"split": value}]
    found = problem(as_jsonl(rows))
    assert (found.row, found.column) == (2, "split")
    assert found.message.startswith("the split must be train, validation or test, not")


def test_either_all_rows_name_a_split_or_none() -> None:
    plain, split = pairs(1)[0], pairs(1)[0] | {"split": "train"}
    assert problem(as_jsonl([split, plain])).message.startswith("the column is missing")
    assert problem(as_jsonl([plain, split])).message.startswith(
        "the row has a split, but the first row has none"
    )


CHINESE = '{"instruction":"你好","output":"青海省西宁市"}\n'


def test_gb18030_is_recognised_and_named_with_row_and_byte() -> None:
    start = CHINESE.encode()
    found = problem(start + CHINESE.encode("gb18030"))
    assert found.row == 2
    byte = len(start) + len('{"instruction":"')
    assert found.message.startswith(f"byte {byte:,} of the file (0xc4) is not UTF-8")
    assert found.message.endswith("the file looks like GB18030 (GBK): save it as UTF-8")


def test_a_gb18030_csv_file_is_refused_at_its_row() -> None:
    content = b"instruction,output\na,b\n" + "你好,青海省\n".encode("gb18030")
    assert problem(content, "a.csv").row == 3


def test_a_stray_byte_is_not_called_gb18030() -> None:
    found = problem(as_jsonl(pairs(1)) + b'{"instruction":"\xff","output":"a"}')
    assert found.row == 2
    assert "(0xff) is not UTF-8" in found.message
    assert "GB18030" not in found.message


def test_utf_16_without_a_mark_is_named() -> None:
    content = as_jsonl([{"prompt": "q", "response": "a"}]).decode().encode("utf-16-le")
    assert "looks like UTF-16 without a byte order mark" in problem(content).message


@pytest.mark.parametrize("place", ["front", "back"])
def test_half_a_utf_16_character_is_refused_with_row_and_byte(place: str) -> None:
    good = as_jsonl(pairs(2)).decode().encode("utf-16-le")
    content = b"\xff\xfe" + good + b"\x00\xd8a\x00\n\x00"
    if place == "back":
        content = b"\xff\xfe" + good * 400 + b"\x00\xd8a\x00\n\x00"
    found = problem(content)
    assert found.row == content[2:-6].decode("utf-16-le").count("\n") + 1
    assert found.message.startswith(f"byte {len(content) - 6:,} of the file is not UTF-16-LE")


def test_a_nul_byte_is_refused_with_row_and_byte() -> None:
    start = as_jsonl(pairs(2))
    found = problem(start + b'{"instruction":"a\0b","output":"c"}\n')
    assert found == FileProblem(
        row=3, message=f"byte {len(start) + 17} of the file is NUL, which is not allowed in text"
    )


@pytest.mark.parametrize(
    ("escape", "expected"),
    [("\\u0000", "NUL character"), ("\\ud800", "contains an unpaired surrogate")],
)
def test_characters_that_cannot_be_stored_are_refused(escape: str, expected: str) -> None:
    content = f'{{"instruction":"{escape}","output":"a"}}\n'.encode()
    assert expected in problem(content).message


def test_odd_column_names_are_escaped_before_they_are_shown() -> None:
    found = problem(b'{"\\ud800\\u0000": 1}\n')
    assert "the file has columns: '\\ud800\\x00'" in found.message


def test_a_file_above_the_size_limit_is_refused() -> None:
    assert "larger than 4.0 KiB" in problem(as_jsonl(pairs(500)), limits=SMALL).message


def test_an_endless_stream_is_refused_at_the_limit() -> None:
    with pytest.raises(DatasetRefused, match="longer than 256 B"):
        inspect_dataset(repeat(b"x" * 1000), filename="a.jsonl", limits=FileLimits(row_size=256))
    with pytest.raises(DatasetRefused, match="larger than"):
        inspect_dataset(repeat(b"\n" + b"x" * 100), filename="a.jsonl", limits=SMALL)


def test_too_many_rows_are_refused() -> None:
    found = problem(as_jsonl(pairs(51)), limits=SMALL)
    assert found == FileProblem(row=51, message="the file has more than 50 rows; split it")


def test_a_row_that_is_too_long_is_refused() -> None:
    long = {"instruction": "q", "output": "a" * 300}
    found = problem(as_jsonl([*pairs(3), long]), limits=SMALL)
    assert found == FileProblem(row=4, message="the line is longer than 256 B")
    assert problem(as_json([*pairs(3), long]), "a.json", limits=SMALL).row == 4


def test_a_large_array_is_sent_to_json_lines() -> None:
    found = problem(as_json(pairs(60)), "a.json", limits=SMALL)
    assert "a JSON array may have at most 2.0 KiB; use JSON Lines" in found.message


def test_a_cell_that_the_csv_reader_cannot_hold_is_refused() -> None:
    content = as_csv([{"instruction": "q", "output": "a" * 200_000}])
    assert "field larger than field limit (131072)" in problem(content, "a.csv").message


@pytest.mark.parametrize("content", [as_jsonl(pairs(2)), as_json(pairs(2))])
def test_json_that_is_called_csv_is_refused(content: bytes) -> None:
    assert "is named .csv, but its content is " in problem(content, "a.csv").message


@pytest.mark.parametrize(
    "value", ["[" * 100_000, "1" * 5_000], ids=["nested too deeply", "a number too long"]
)
def test_json_that_python_cannot_hold_is_refused(value: str) -> None:
    content = f'{{"instruction": {value}}}\n'.encode()
    assert "is not readable JSON: " in problem(content).message
    assert "is not readable JSON: " in problem(b"[" + content, "a.json").message


@pytest.mark.parametrize(("validation", "test"), [(-0.1, 0.0), (0.5, 0.5), (0.0, 1.0)])
def test_fractions_must_leave_rows_to_train_on(validation: float, test: float) -> None:
    with pytest.raises(ValueError, match="must leave rows for training"):
        SplitFractions(validation=validation, test=test)


def test_a_problem_reads_as_a_sentence() -> None:
    assert str(FileProblem(message="the file is empty")) == "the file is empty"
    assert str(FileProblem(row=3001, column="output", message="the value must not be empty")) == (
        "row 3,001, column output: the value must not be empty"
    )
    assert json.dumps(str(FileProblem(column="split", message="m"))) == '"column split: m"'
