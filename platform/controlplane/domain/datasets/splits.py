"""Assignment of rows to training, validation and test splits.

If the file names no split, a hash of the row and a seed decide, so a row keeps its split when rows are added after
it, and equal rows are never in different splits. Two rules make small files usable: the first rows are always in
training, and a held-out split that is still empty after them gets the next row that was not seen before. Both
depend only on earlier rows, so they too hold when rows are added.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from controlplane.domain.common.reasons import ReasonedValueError

#: Rows that are always in training; a file with more of them, all different, has every requested split
#: once it has two more rows.
ALWAYS_TRAIN = 9

_SCALE = 2.0**-64


class Split(StrEnum):
    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitFractions:
    """Shares of rows to hold out, from 0 to 1, and the seed."""

    validation: float = 0.05
    test: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        """:raises ValueError: if a share is negative or nothing would be left to train on."""
        if not (min(self.validation, self.test) >= 0 and self.validation + self.test < 1):
            raise ReasonedValueError(
                "dataset.split.invalid_fractions",
                "validation {validation} and test {test} must not be negative and must "
                "leave rows for training",
                validation=self.validation,
                test=self.test,
            )


class SplitAssigner:
    """Assigns canonical rows in file order."""

    def __init__(self, fractions: SplitFractions) -> None:
        self._fractions = fractions
        self._salt = fractions.seed.to_bytes(16, "little", signed=True)
        #: By row digest: splits that deviate from the hash, and the split of each row seen.
        self._exceptions: dict[int, Split] = {}
        self._seen: dict[int, Split] = {}
        self._empty = [
            split
            for split, share in (
                (Split.VALIDATION, fractions.validation),
                (Split.TEST, fractions.test),
            )
            if share
        ]
        self.rows = 0
        #: Rows equal to an earlier one.
        self.duplicates = 0
        #: Split of an earlier row that the last row is equal to; None if there is none.
        self.duplicate_of: Split | None = None

    def assign(self, row: bytes, *, given: Split | None = None) -> Split:
        """Split of the next row: the given one, or else by hash."""
        self.rows += 1
        digest = hashlib.blake2b(row, digest_size=16, salt=self._salt).digest()
        identity = int.from_bytes(digest[:8], "little")
        self.duplicate_of = self._seen.get(identity)
        fresh = self.duplicate_of is None
        self.duplicates += not fresh
        split = given
        if split is None:
            place = int.from_bytes(digest[8:], "little") * _SCALE
            split = self._choose_split(identity, place, fresh=fresh)
            if split in self._empty:
                self._empty.remove(split)
        self._seen.setdefault(identity, split)
        return split

    def _choose_split(self, identity: int, place: float, *, fresh: bool) -> Split:
        if not fresh and identity in self._exceptions:
            return self._exceptions[identity]
        split = self._split_by_hash(place)
        if not fresh:
            return split
        if self.rows <= ALWAYS_TRAIN:
            exception = Split.TRAIN
        elif split is Split.TRAIN and self._empty:
            exception = self._empty[0]
        else:
            return split
        if exception is not split:
            self._exceptions[identity] = exception
        return exception

    def _split_by_hash(self, place: float) -> Split:
        if place < self._fractions.validation:
            return Split.VALIDATION
        if place < self._fractions.validation + self._fractions.test:
            return Split.TEST
        return Split.TRAIN
