"""What a burn-in found, test by test, as it is written and as a person reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    #: There was nothing to test; the words say why. It stands in nobody's way.
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of one test on one card."""

    test: str
    #: From 0, as the process sees them.
    card: int
    verdict: Verdict
    #: None where it came to no figure.
    measured: float | None
    #: The least that passes; None where the figure is not judged.
    expected: float | None
    unit: str
    #: What was seen, in words; of a failure, where.
    words: str


def judged(
    *,
    test: str,
    card: int,
    measured: float,
    expected: float | None,
    floor: float,
    unit: str,
    words: str,
) -> Outcome:
    """The outcome of a rate: at least ``floor`` of what is expected passes."""
    least = None if expected is None else expected * floor
    slow = least is not None and not measured >= least
    if least is None:
        words = f"{words}; nobody said what to expect"
    elif slow:
        words = f"{words}; less than {floor:.0%} of the {expected:.4g} that are expected"
    return Outcome(
        test=test,
        card=card,
        verdict=Verdict.FAILED if slow else Verdict.PASSED,
        measured=measured,
        expected=least,
        unit=unit,
        words=words,
    )


def broken(
    *,
    test: str,
    card: int,
    words: str,
    measured: float | None = None,
    expected: float | None = None,
    unit: str = "",
) -> Outcome:
    """The outcome of a test that failed for another reason than its rate."""
    return Outcome(
        test=test,
        card=card,
        verdict=Verdict.FAILED,
        measured=measured,
        expected=expected,
        unit=unit,
        words=words,
    )


def result(outcomes: Iterable[Outcome], *, device: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """The content of ``burnin.json``: ``passed`` is true only if something was tested and nothing failed."""
    listed = sorted(outcomes, key=lambda outcome: (outcome.card, outcome.test))
    verdicts = {outcome.verdict for outcome in listed}
    return {
        "kind": "burnin",
        "passed": Verdict.PASSED in verdicts and Verdict.FAILED not in verdicts,
        "device": device,
        **about,
        "tests": [asdict(outcome) for outcome in listed],
    }


def read(rows: Iterable[Mapping[str, Any]]) -> list[Outcome]:
    """Outcomes from the file of a card's process.

    :raises ValueError: if it is not such a file; also ``KeyError`` and ``TypeError``.
    """
    return [Outcome(**{**row, "verdict": Verdict(row["verdict"])}) for row in rows]
