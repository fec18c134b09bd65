"""What a burn-in found, test by test, as it is written and as a person reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class BurninVerdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    #: There was nothing to test; ``message`` gives the reason. It blocks nothing.
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class BurninOutcome:
    """Of one test on one card."""

    test: str
    #: From 0, as the process sees them.
    card: int
    verdict: BurninVerdict
    #: None without a measurement.
    measured: float | None
    #: The minimum that passes; None where the value is not checked.
    expected: float | None
    unit: str
    #: The observation as a message; for a failure, with its location.
    message: str


def rate_outcome(
    *,
    test: str,
    card: int,
    measured: float,
    expected: float | None,
    floor: float,
    unit: str,
    message: str,
) -> BurninOutcome:
    """The outcome of a rate: at least ``floor`` of what is expected passes."""
    least = None if expected is None else expected * floor
    slow = least is not None and not measured >= least
    if least is None:
        message = f"{message}; nobody said what to expect"
    elif slow:
        message = f"{message}; less than {floor:.0%} of the {expected:.4g} that are expected"
    return BurninOutcome(
        test=test,
        card=card,
        verdict=BurninVerdict.FAILED if slow else BurninVerdict.PASSED,
        measured=measured,
        expected=least,
        unit=unit,
        message=message,
    )


def failed_outcome(
    *,
    test: str,
    card: int,
    message: str,
    measured: float | None = None,
    expected: float | None = None,
    unit: str = "",
) -> BurninOutcome:
    """The outcome of a test that failed for another reason than its rate."""
    return BurninOutcome(
        test=test,
        card=card,
        verdict=BurninVerdict.FAILED,
        measured=measured,
        expected=expected,
        unit=unit,
        message=message,
    )


def burnin_result(
    outcomes: Iterable[BurninOutcome], *, device: str, about: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of ``burnin.json``: ``passed`` is true only if something was tested and nothing failed."""
    listed = sorted(outcomes, key=lambda outcome: (outcome.card, outcome.test))
    verdicts = {outcome.verdict for outcome in listed}
    return {
        "kind": "burnin",
        "passed": BurninVerdict.PASSED in verdicts and BurninVerdict.FAILED not in verdicts,
        "device": device,
        **about,
        "tests": [asdict(outcome) for outcome in listed],
    }


def read_outcomes(rows: Iterable[Mapping[str, Any]]) -> list[BurninOutcome]:
    """Outcomes from the file of a card's process.

    :raises ValueError: if it is not such a file; also ``KeyError`` and ``TypeError``.
    """
    return [BurninOutcome(**{**row, "verdict": BurninVerdict(row["verdict"])}) for row in rows]
