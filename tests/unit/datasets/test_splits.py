"""The split of a row depends on the row, the seed and what came before it."""

from __future__ import annotations

from collections import Counter

import pytest

from controlplane.domain.datasets.splits import ALWAYS_TRAIN, Split, SplitAssigner, SplitFractions
from tests.cases import for_each_case


def splits(rows: list[bytes], fractions: SplitFractions) -> list[Split]:
    splitter = SplitAssigner(fractions)
    return [splitter.assign(row) for row in rows]


def numbered(count: int) -> list[bytes]:
    return [f"row {n}\n".encode() for n in range(count)]


HALF = SplitFractions(validation=0.3, test=0.2, seed=3)


def test_split_shares_are_about_those_requested() -> None:
    counts = Counter(splits(numbered(20_000), HALF))
    assert counts[Split.VALIDATION] == pytest.approx(6_000, rel=0.05)
    assert counts[Split.TEST] == pytest.approx(4_000, rel=0.05)


def test_the_seed_decides() -> None:
    rows = numbered(200)
    assert splits(rows, HALF) == splits(rows, HALF)
    assert splits(rows, HALF) != splits(rows, SplitFractions(validation=0.3, test=0.2, seed=4))


@for_each_case("seed", range(-3, 30))
def test_every_requested_split_has_a_row_in_a_small_file(
    seed: int,
) -> None:
    fractions = SplitFractions(validation=0.001, test=0.001, seed=seed)
    found = splits(numbered(ALWAYS_TRAIN + 2), fractions)
    assert Counter(found) == {Split.TRAIN: 9, Split.VALIDATION: 1, Split.TEST: 1}


def test_the_first_rows_train_whatever_their_hash() -> None:
    found = splits(numbered(ALWAYS_TRAIN), SplitFractions(validation=0.9))
    assert set(found) == {Split.TRAIN}


def test_a_file_without_splits_gets_validation_and_test_rows() -> None:
    counts = Counter(splits(numbered(1_000), SplitFractions()))
    assert counts[Split.TRAIN] > 850
    assert min(counts[Split.VALIDATION], counts[Split.TEST]) > 20


def test_nothing_is_held_out_with_zero_fractions() -> None:
    assert set(splits(numbered(500), SplitFractions(validation=0, test=0))) == {Split.TRAIN}


def test_equal_rows_stay_in_one_split() -> None:
    assert set(splits([b"same\n"] * 50, HALF)) == {Split.TRAIN}


def test_a_given_split_is_kept_and_duplicates_are_counted() -> None:
    splitter = SplitAssigner(SplitFractions())
    assert splitter.assign(b"a\n", given=Split.TEST) is Split.TEST
    assert splitter.assign(b"a\n", given=Split.TRAIN) is Split.TRAIN
    assert (splitter.rows, splitter.duplicates) == (2, 1)
