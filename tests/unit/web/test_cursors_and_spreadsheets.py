"""What goes into an address or a spreadsheet comes out as it went in, and does nothing on the way."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.web import downloads, tables

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**63), max_value=2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=60),
    st.datetimes(timezones=st.just(UTC)),
    st.dates(),
    st.timedeltas(),
    st.decimals(allow_nan=False, allow_infinity=False),
)


@given(value=VALUES, key=st.integers(min_value=1, max_value=2**63 - 1))
def test_a_cursor_round_trips(value: object, key: int) -> None:
    position = tables.CursorPosition(value=value, key=key)
    found = tables.decode_table_cursor(
        tables.encode_table_cursor(position, order="-at"), order="-at"
    )
    assert found == position
    assert type(found.value) is type(value)


@given(text=st.text(max_size=200))
def test_a_forged_cursor_is_ignored(text: str) -> None:
    assert tables.decode_table_cursor(text, order="-at") is None


def test_a_cursor_is_valid_for_its_order_only() -> None:
    text = tables.encode_table_cursor(tables.CursorPosition(value=1, key=2), order="-at")
    assert tables.decode_table_cursor(text, order="at") is None


def test_a_value_that_has_no_place_in_a_cursor_is_named() -> None:
    with pytest.raises(TypeError, match="cannot be paged by a dict"):
        tables.encode_table_cursor(tables.CursorPosition(value={}, key=1), order="spec")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("+49", "'+49"),
        ("-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        (-5, -5),
        (-0.5, -0.5),
        (True, True),
        (None, ""),
        ("plain", "plain"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (Decimal("1.50"), "1.50"),
        (timedelta(seconds=90), "0:01:30"),
    ],
)
def test_a_cell_never_becomes_a_formula(value: object, shown: object) -> None:
    assert downloads.csv_cell(value) == shown


@given(lines=st.lists(st.lists(st.text(max_size=20), min_size=2, max_size=2), max_size=5))
def test_text_survives_its_quotes_and_line_ends(lines: list[list[str]]) -> None:
    text = "".join(downloads.csv_lines(head=["a", "b"], lines=lines))
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert [[cell.removeprefix("'") for cell in line] for line in read[1:]] == [
        [str(downloads.csv_cell(cell)).removeprefix("'") for cell in line] for line in lines
    ]
