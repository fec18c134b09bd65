"""What holds for every file."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from controlplane.domain.datasets import (
    DatasetRefused,
    FileLimits,
    Split,
    SplitFractions,
    inspect_dataset,
)
from tests.properties import examples
from tests.unit.datasets.dataset_files import as_csv, as_json, as_jsonl, pairs, refusal

NAMES = st.sampled_from(["a.jsonl", "a.json", "a.csv", "a.tsv", "a.txt", "a"])
TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30
).filter(lambda text: not text.isspace())
ROWS = st.lists(
    st.fixed_dictionaries({"instruction": TEXT, "output": TEXT}), min_size=1, max_size=40
)
FRACTIONS = st.builds(
    SplitFractions, validation=st.floats(0, 0.4), test=st.floats(0, 0.4), seed=st.integers(-99, 99)
)


def canonical(
    content: bytes, filename: str, fractions: SplitFractions
) -> list[tuple[Split, bytes]]:
    inspection = inspect_dataset([content], filename=filename, fractions=fractions)
    return list(inspection.canonical([content]))


@given(rows=ROWS, fractions=FRACTIONS)
def test_every_format_gives_the_same_rows_in_the_same_splits(
    rows: list[dict[str, str]], fractions: SplitFractions
) -> None:
    lines = canonical(as_jsonl(rows), "a.jsonl", fractions)
    assert canonical(as_json(rows), "a.json", fractions) == lines
    assert canonical(as_csv(rows), "a.csv", fractions) == lines
    assert len(lines) == len(rows)


@given(rows=ROWS)
def test_canonical_rows_read_as_themselves(rows: list[dict[str, str]]) -> None:
    fractions = SplitFractions(validation=0, test=0)
    once = b"".join(line for _, line in canonical(as_jsonl(rows), "a.jsonl", fractions))
    twice = b"".join(line for _, line in canonical(once, "a.jsonl", fractions))
    assert once == twice


@given(before=ROWS, after=ROWS, fractions=FRACTIONS)
def test_rows_keep_their_split_when_others_follow(
    before: list[dict[str, str]], after: list[dict[str, str]], fractions: SplitFractions
) -> None:
    alone = canonical(as_jsonl(before), "a.jsonl", fractions)
    together = canonical(as_jsonl(before + after), "a.jsonl", fractions)
    assert together[: len(alone)] == alone


@given(rows=ROWS, fractions=FRACTIONS)
def test_equal_rows_are_never_in_two_splits(
    rows: list[dict[str, str]], fractions: SplitFractions
) -> None:
    found: dict[bytes, Split] = {}
    for split, line in canonical(as_jsonl(rows * 2), "a.jsonl", fractions):
        assert found.setdefault(line, split) is split


@given(place=st.integers(0, 199), cut=st.integers(1, 20))
def test_the_number_of_a_broken_row_is_exact(place: int, cut: int) -> None:
    lines = as_jsonl(pairs(200)).splitlines(keepends=True)
    lines[place] = lines[place].strip()[:-cut].decode(errors="ignore").encode() + b"\n"
    assert [found.row for found in refusal(b"".join(lines)).problems] == [place + 1]


@given(place=st.integers(0, 199), value=st.sampled_from(["", " ", "\t"]))
@pytest.mark.parametrize(("filename", "first"), [("a.csv", 2), ("a.json", 1), ("a.jsonl", 1)])
def test_the_number_of_a_row_with_an_empty_answer_is_exact(
    filename: str, first: int, place: int, value: str
) -> None:
    rows = pairs(200)
    rows[place]["output"] = value
    write: dict[str, Any] = {"a.csv": as_csv, "a.json": as_json, "a.jsonl": as_jsonl}
    refused = refusal(write[filename](rows), filename)
    assert [(found.row, found.column) for found in refused.problems] == [(place + first, "output")]


def read_or_refuse(content: bytes, filename: str) -> None:
    limits = FileLimits(size=2000, rows=20, row_size=500, array_size=1000)
    refused = None
    try:
        inspection = inspect_dataset(io.BytesIO(content), filename=filename, limits=limits)
    except DatasetRefused as error:
        refused = error
    if refused is None:
        assert inspection.rows == len(list(inspection.canonical([content])))
    else:
        assert refused.total >= len(refused.problems) >= 1
        assert all(str(found).encode() for found in refused.problems)


@given(content=st.binary(max_size=300), filename=NAMES)
@example(content=b"[", filename="a.json")
@example(content=b"\x0b[", filename="a.json")
@example(content=b"\xc2\xa0\n\xc2\xa0", filename="a.csv")
@example(content=b"\xff\xfe\x00", filename="a.csv")
@settings(max_examples=examples(500))
def test_bytes_of_any_kind_are_read_or_refused(content: bytes, filename: str) -> None:
    read_or_refuse(content, filename)


@given(data=st.data(), filename=NAMES)
@settings(max_examples=examples(500), suppress_health_check=[HealthCheck.data_too_large])
def test_a_good_file_with_any_damage_is_read_or_refused(data: st.DataObject, filename: str) -> None:
    chat = [
        {"messages": [{"role": "user", "content": "问"}, {"role": "assistant", "content": "a"}]}
    ]
    good = data.draw(
        st.sampled_from(
            [as_jsonl(pairs(5)), as_json(pairs(5)), as_csv(pairs(5)), as_jsonl(chat), as_json(chat)]
        )
    )
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030"]))
    damaged = bytearray(good.decode().encode(encoding))
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(damaged)))
        patch = data.draw(
            st.sampled_from([b"", b'"', b"\0", b"\xff", b"{", b"]", b"\r", b",", b"\\"])
        )
        damaged[place : place + data.draw(st.integers(0, 3))] = patch
    read_or_refuse(bytes(damaged), filename)


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["messages", "role", "content", "from", "value", "split", "", "x"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_value_is_read_or_refused(value: object) -> None:
    row = {"messages": value, "split": value}
    read_or_refuse(as_jsonl([row]), "a.jsonl")
    read_or_refuse(as_json([value, row]), "a.json")
