"""Reading of rule documents: every invalid field is named with its value and what would be valid."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, describe_findings
from controlplane.domain.rules.conditions import Comparison

#: Retention of the history.
LONGEST_DURATION = timedelta(days=7)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_LONGEST_TITLE = 120
_LARGEST = 1e15
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SYMBOLS = {"≥": Comparison.AT_LEAST, "≤": Comparison.AT_MOST, "=": Comparison.EQUAL}

Choice = TypeVar("Choice", bound=StrEnum)


class RuleInvalid(ValueError):
    """The rule is not valid; ``findings`` has an entry for each invalid field."""

    def __init__(self, *findings: FieldFinding) -> None:
        super().__init__(describe_findings(findings))
        self.findings = findings


@dataclass(kw_only=True)
class RuleReader:
    """Reads a document field by field; an invalid field becomes a finding and has a placeholder as its value."""

    document: Mapping[str, Any]
    findings: list[FieldFinding] = field(default_factory=list)

    def check(self, refusal: type[RuleInvalid] = RuleInvalid) -> None:
        """:raises RuleInvalid: with all findings, if there are any."""
        if self.findings:
            raise refusal(*self.findings)

    def wrong(self, name: str, message: str) -> None:
        self.findings.append(FieldFinding(field=name, message=message))

    def only(self, fields: Sequence[str]) -> None:
        """Other fields are findings."""
        for name in self.document:
            if name not in fields:
                self.wrong(
                    str(name),
                    Reason(
                        "rule.field.unknown",
                        "{field} is not a field of a rule; known are {fields}",
                        field=str(name),
                        fields=", ".join(fields),
                    ),
                )

    def name(self) -> str:
        value = self.document.get("name")
        if isinstance(value, str) and _NAME.fullmatch(value):
            return value
        self.wrong(
            "name",
            Reason(
                "rule.name.invalid",
                "{name} is not a valid name; use up to 60 lowercase letters, digits and hyphens",
                name=_shown(value),
            ),
        )
        return str(value)

    def title(self, default: str = "") -> str:
        value = self.document.get("title") or default
        title = value.strip() if isinstance(value, str) else ""
        if not title or len(title) > _LONGEST_TITLE or "\0" in title:
            self.wrong(
                "title",
                Reason(
                    "rule.title.invalid",
                    "describe the problem that the rule reports in 1 to {limit} characters",
                    limit=_LONGEST_TITLE,
                ),
            )
        return title

    def choice(self, name: str, kind: type[Choice], default: Choice | None = None) -> Choice:
        value = self.document.get(name, default)
        try:
            return kind(value)
        except ValueError:
            self.not_a_choice(name, *kind)
        return next(iter(kind))

    def not_a_choice(self, name: str, *choices: str) -> None:
        self.wrong(
            name,
            Reason(
                "rule.field.not_a_choice",
                "{field} is {value}; it must be one of {choices}",
                field=name,
                value=_shown(self.document.get(name)),
                choices=", ".join(choices),
            ),
        )

    def comparison(self) -> Comparison:
        symbol = str(self.document.get("op"))
        return _SYMBOLS.get(symbol) or self.choice("op", Comparison)

    def number(self, name: str) -> float:
        number = _number(self.document.get(name))
        if number is not None:
            return number
        self.wrong(
            name,
            Reason(
                "rule.number.out_of_range",
                "{field} is {value}; it must be a number between -1e15 and 1e15",
                field=name,
                value=_shown(self.document.get(name)),
            ),
        )
        return 0.0

    def duration(self, name: str, default: timedelta = timedelta()) -> timedelta:
        """Seconds, or text with a unit."""
        if name not in self.document:
            return default
        value = self.document[name]
        seconds = _seconds(value)
        if seconds is None:
            self.wrong(
                name,
                Reason(
                    "rule.duration.invalid",
                    '{field} is {value}; write seconds, or "90s", "5m", "2h", "1d"',
                    field=name,
                    value=_shown(value),
                ),
            )
        elif not 0 <= seconds <= LONGEST_DURATION.total_seconds():
            self.wrong(
                name,
                Reason(
                    "rule.duration.out_of_range",
                    "{field} is {value}; it must be between 0 and {days} days",
                    field=name,
                    value=_shown(value),
                    days=LONGEST_DURATION.days,
                ),
            )
        else:
            return timedelta(seconds=seconds)
        return default

    def texts(self, name: str, *, most: int) -> tuple[str, ...]:
        value = self.document.get(name, ())
        if (
            isinstance(value, list | tuple)
            and len(value) <= most
            and all(isinstance(text, str) and text for text in value)
        ):
            return tuple(dict.fromkeys(value))
        self.wrong(
            name,
            Reason(
                "rule.list.invalid",
                "{field} is {value}; it must be a list of at most {limit} strings",
                field=name,
                value=_shown(value),
                limit=most,
            ),
        )
        return ()


def _shown(value: object) -> str:
    return repr(value)[:60]


def _seconds(value: object) -> float | None:
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[1]) * _SECONDS[match[2]] if match else _number(value)


def _number(value: object) -> float | None:
    """None for what is not a number within the limits, infinity and NaN among it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= _LARGEST else None
