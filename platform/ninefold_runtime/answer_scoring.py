"""Comparing an answer with its reference, in two ways that people quote.

*Exact match* compares the whole texts after normalisation. *Label accuracy* takes answers of the form
``value_LABEL,value_LABEL,…`` apart and asks, for each label of the reference, whether the answer has the
same value there. White space and a trailing comma carry no meaning in either: the two strings ::

    青海省_1,西宁市_3A,城北区_3A,三其村_4B, _5A-1,可以发圆通吗 谢谢_UNK,
    青海省_1,西宁市_3A,城北区_3A,三其村_4B, _5A-1,可以发圆通吗 谢谢 _UNK

are equal. A label may occur more than once; occurrences are compared in order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

_LABELLED = re.compile(r"(?P<value>.*?)(?P<label>_[0-9A-Za-z][0-9A-Za-z-]*)", re.DOTALL)


def normalise_text(text: str) -> str:
    """The text without white space and without trailing commas."""
    return "".join(text.split()).rstrip(",，")


def labelled_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """``(label, value)`` pairs in order; empty if the text is not labelled throughout.

    A comma belongs to the value unless it separates two pairs.
    """
    rest = normalise_text(text)
    pairs = []
    while rest:
        match = re.match(rf"(?:{_LABELLED.pattern})(?=,|$)", rest, re.DOTALL)
        if match is None:
            return ()
        pairs.append((match["label"], match["value"]))
        rest = rest[match.end() :].removeprefix(",")
    return tuple(pairs)


@dataclass(slots=True, kw_only=True)
class AnswerScore:
    """Counts over many pairs of answer and reference."""

    rows: int = 0
    exact: int = 0
    label_totals: Counter[str] = field(default_factory=Counter)
    label_hits: Counter[str] = field(default_factory=Counter)

    def add(self, *, answer: str, reference: str) -> bool:
        """Count one pair; whether it matches exactly."""
        self.rows += 1
        exact = normalise_text(answer) == normalise_text(reference)
        self.exact += exact
        given = _values_by_label_occurrence(labelled_pairs(answer))
        for key, value in _values_by_label_occurrence(labelled_pairs(reference)).items():
            label = key[0]
            self.label_totals[label] += 1
            self.label_hits[label] += given.get(key) == value
        return exact

    def exact_match(self) -> float:
        """Share of rows, from 0 to 1."""
        return self.exact / self.rows if self.rows else 0.0

    def label_accuracy(self) -> float | None:
        """Share of the references' labels, from 0 to 1; None if no reference has any."""
        total = self.label_totals.total()
        return self.label_hits.total() / total if total else None

    def per_label(self) -> Mapping[str, Mapping[str, float | int]]:
        return {
            label: {
                "total": total,
                "correct": self.label_hits[label],
                "accuracy": self.label_hits[label] / total,
            }
            for label, total in sorted(self.label_totals.items())
        }


def _values_by_label_occurrence(pairs: tuple[tuple[str, str], ...]) -> dict[tuple[str, int], str]:
    """Values by label and occurrence."""
    seen: Counter[str] = Counter()
    values = {}
    for label, value in pairs:
        values[label, seen[label]] = value
        seen[label] += 1
    return values
