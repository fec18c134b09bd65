"""Tokens to text, and stop strings, whatever the boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ninefold_runtime.serving.text_generation import Detokenizer, StopScanner


def _decode_bytes(tokens: Sequence[int]) -> str:
    return bytes(tokens).decode("utf-8", "replace")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_text_spelt_in_bytes_arrives_whole(text: str) -> None:
    detokenizer = Detokenizer(_decode_bytes)
    pieces = [detokenizer.push(byte) for byte in text.encode()]
    assert "".join([*pieces, detokenizer.finish()]) == text


def test_half_a_character_is_held_back() -> None:
    detokenizer = Detokenizer(_decode_bytes)
    assert [detokenizer.push(byte) for byte in "省".encode()] == ["", "", "省"]


def test_bytes_that_never_make_a_character_are_let_go() -> None:
    detokenizer = Detokenizer(_decode_bytes)
    pieces = [detokenizer.push(0xFF) for _ in range(20)]
    assert any(pieces)


@given(
    st.text("ab<|", max_size=30),
    st.lists(st.text("ab<|", min_size=1, max_size=4), max_size=3),
    st.data(),
)
def test_a_stop_string_cuts_at_the_same_place_however_the_text_is_split(
    text: str, stops: list[str], data: st.DataObject
) -> None:
    whole = StopScanner(stops)
    expected = whole.push(text) + whole.finish()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    edges = [0, *cuts, len(text)]
    scanner = StopScanner(stops)
    pieces = [scanner.push(text[start:end]) for start, end in pairwise(edges)]
    arrived = "".join([*pieces, scanner.finish()])
    assert scanner.stopped == whole.stopped == any(stop in text for stop in stops)
    if not whole.stopped:
        assert arrived == expected == text
    else:
        assert text.startswith(arrived)
        assert not any(stop in arrived for stop in stops)


def test_what_might_become_a_stop_string_is_held_back_and_then_given() -> None:
    scanner = StopScanner(["STOP"])
    assert scanner.push("abcST") == "abc"
    assert scanner.push("ART") == "START"
    assert scanner.push("ST") == ""
    assert scanner.finish() == "ST"
