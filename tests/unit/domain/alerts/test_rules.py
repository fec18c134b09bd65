"""A rule says precisely what is wrong with it, and comes back as it was kept."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.domain.alerts.rules import (
    DEFAULTS,
    MEASURES,
    AlertRuleSpec,
    parse_matcher,
    parse_rule,
)
from controlplane.domain.rules.conditions import Comparison, RuleInvalid

HOT: dict[str, Any] = {
    "name": "hot",
    "title": "Too hot",
    "measure": "cards.temperature",
    "op": ">",
    "threshold": 90,
    "severity": "warning",
}


@pytest.mark.parametrize("rule", DEFAULTS, ids=lambda rule: rule.name)
def test_every_rule_that_is_shipped_can_be_kept_and_read_again(rule: AlertRuleSpec) -> None:
    assert parse_rule(rule.as_json()) == rule


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("name", "Hot cards", "'Hot cards' is not a valid name; use up to 60 lowercase letters"),
        ("title", " ", "describe the problem that the rule reports in 1 to 120 characters"),
        ("measure", "cards.mood", "measure is 'cards.mood'; it must be one of cards.utilization"),
        ("op", "~", "op is '~'; it must be one of >, >=, <, <=, =="),
        ("threshold", "hot", "threshold is 'hot'; it must be a number between -1e15 and 1e15"),
        ("threshold", float("nan"), "threshold is nan; it must be a number"),
        ("threshold", float("inf"), "threshold is inf; it must be a number"),
        ("threshold", True, "threshold is True; it must be a number"),
        ("lasts", -1, "lasts is -1; it must be between 0 and 7 days"),
        ("lasts", "soon", "lasts is 'soon'; write seconds, or"),
        ("severity", "fatal", "it must be one of info, warning, critical"),
        ("where", ["cluster"], "write cluster=west"),
        ("where", ["colour=red"], "no label 'colour'; its labels: cluster, node, card, chip"),
        (
            "where",
            "cluster=west",
            "where is 'cluster=west'; it must be a list of at most 10 strings",
        ),
        ("group_by", ["team"], "no label 'team'"),
        ("repeat", 10, "the repeat interval of 10 seconds is too short; the minimum is 300"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(field: str, value: object, says: str) -> None:
    with pytest.raises(RuleInvalid) as refused:
        parse_rule({**HOT, field: value})
    assert [one.field for one in refused.value.findings] == [field]
    assert says in refused.value.findings[0].message


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(RuleInvalid) as refused:
        parse_rule({})
    assert {one.field for one in refused.value.findings} == {
        "name",
        "title",
        "measure",
        "op",
        "threshold",
        "severity",
    }


@pytest.mark.parametrize(
    ("text", "labels", "fits"),
    [
        ("cluster=west", {"cluster": "west"}, True),
        ("cluster=west", {"cluster": "east"}, False),
        ("cluster!=west", {"cluster": "east"}, True),
        ("node=gpu-*", {"node": "gpu-17"}, True),
        ("node!=gpu-*", {"node": "gpu-17"}, False),
        ("node=*", {}, True),
        ("node = a b ", {"node": "a b"}, True),
    ],
)
def test_a_condition_fits_or_does_not(text: str, labels: dict[str, str], *, fits: bool) -> None:
    matcher = parse_matcher(text)
    assert matcher.fits(labels) is fits
    assert parse_matcher(str(matcher)) == matcher


def test_what_nobody_knows_neither_holds_nor_fails_to() -> None:
    rule = parse_rule(HOT)
    assert rule.op is Comparison.ABOVE
    assert rule.holds(None) is None
    assert rule.holds(90) is False
    assert rule.holds(90.1) is True


def test_every_measure_says_what_it_is_about_in_its_name() -> None:
    assert all(name.partition(".")[0] == one.topic for name, one in MEASURES.items())
