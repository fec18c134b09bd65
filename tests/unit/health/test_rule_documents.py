"""A rule that cannot be understood is refused with its field, the value and what would be right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.health.faults import FaultLevel
from controlplane.domain.health.rules import (
    DEFAULT_RULES,
    HealthRuleInvalid,
    HealthRuleSpec,
    MetricTransform,
    health_condition_document,
    parse_health_condition,
    parse_health_rule,
)
from controlplane.domain.rules.conditions import Comparison
from controlplane.domain.telemetry.metrics import Metric

HOT: dict[str, Any] = {"metric": "temperature", "op": "≥", "value": 90, "for": "1m"}
ECC: dict[str, Any] = {
    "metric": "ecc_corrected",
    "how": "rate",
    "op": ">",
    "value": 10,
    "within": 600,
}


def test_a_condition_is_read_with_its_units() -> None:
    hot, ecc = parse_health_condition(HOT), parse_health_condition({**ECC, "chips": ["h100"]})
    assert (hot.metric, hot.op, hot.threshold) == (Metric.TEMPERATURE, Comparison.AT_LEAST, 90)
    assert hot.lasts == timedelta(minutes=1)
    assert (ecc.how, ecc.within) == (MetricTransform.RATE, timedelta(minutes=10))
    assert ecc.applies("h100")
    assert not ecc.applies("a100")


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        (
            {"metric": "heat"},
            "metric",
            "metric is 'heat'; it must be one of utilization, memory_used",
        ),
        ({"metric": None}, "metric", "metric is None"),
        ({"op": "=>"}, "op", "op is '=>'; it must be one of >, >=, <, <=, =="),
        ({"value": "90"}, "value", "value is '90'; it must be a number between"),
        ({"value": True}, "value", "value is True"),
        ({"value": float("nan")}, "value", "value is nan"),
        ({"value": 300}, "value", "value is 300; temperature must be between -60 and 250 celsius"),
        ({"how": "average"}, "how", "how is 'average'; it must be one of value, change, rate"),
        (
            {"for": "a while"},
            "for",
            'for is \'a while\'; write seconds, or "90s", "5m", "2h", "1d"',
        ),
        ({"for": "8d"}, "for", "for is '8d'; it must be between 0 and 7 days"),
        ({"for": -1}, "for", "for is -1; it must be between 0 and 7 days"),
        ({"within": "5m"}, "within", "within is only for a change or a rate"),
        ({"how": "rate", "within": 0}, "within", "within is 0; a change or a rate needs a time"),
        ({"chips": "h100"}, "chips", "chips is 'h100'; it must be a list"),
        (
            {"durration": "5m"},
            "durration",
            "durration is not a field of a rule; known are metric, how",
        ),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(HealthRuleInvalid) as refused:
        parse_health_condition({**HOT, **change})
    (finding,) = refused.value.findings
    assert finding.field == field
    assert says in finding.message


def test_everything_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(HealthRuleInvalid) as refused:
        parse_health_rule(
            {"name": "Hot", "level": 9, "condition": {**HOT, "op": "~", "for": "soon"}}
        )
    assert [each.field for each in refused.value.findings] == ["name", "level", "op", "for"]


def test_a_counter_cannot_have_changed_by_less_than_nothing() -> None:
    with pytest.raises(HealthRuleInvalid, match="ecc_corrected is a counter"):
        parse_health_condition({**ECC, "value": -1})


@pytest.mark.parametrize("name", ["Hot Chip", "", None, 7, "-hot", "h" * 61])
def test_the_name_of_a_rule_can_be_part_of_a_url(name: object) -> None:
    with pytest.raises(
        HealthRuleInvalid, match="use up to 60 lowercase letters, digits and hyphens"
    ):
        parse_health_rule({"name": name, "level": 1, "condition": HOT})


@pytest.mark.parametrize("level", [0, 7, "4", "worse", None])
def test_what_is_no_level_is_refused(level: object) -> None:
    with pytest.raises(HealthRuleInvalid, match=r"it must be one of 1 \(note\)"):
        parse_health_rule({"name": "hot", "level": level, "condition": HOT})


@pytest.mark.parametrize("rule", DEFAULT_RULES, ids=[rule.name for rule in DEFAULT_RULES])
def test_the_rules_that_are_shipped_can_be_written_down_and_read_back(rule: HealthRuleSpec) -> None:
    assert (
        parse_health_condition(json.loads(json.dumps(health_condition_document(rule.condition))))
        == rule.condition
    )


def test_no_rule_that_is_shipped_isolates_by_itself_and_each_tells_its_source() -> None:
    assert len({rule.name for rule in DEFAULT_RULES}) == len(DEFAULT_RULES)
    for rule in DEFAULT_RULES:
        assert rule.level < FaultLevel.ISOLATE
        assert rule.source


def refusal(document: Mapping[str, Any]) -> HealthRuleInvalid | None:
    """Why it is no condition; None: it is one."""
    try:
        parse_health_condition(document)
    except HealthRuleInvalid as refused:
        return refused
    return None


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.just(10**400) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*ECC, "for"]), inner),
)


@given(st.dictionaries(st.sampled_from([*ECC, "for", "chips"]), VALUES), VALUES)
def test_whatever_is_sent_is_a_rule_or_refused_in_words(
    document: dict[str, Any], value: object
) -> None:
    for sent in (document, {**ECC, "value": value}, {**ECC, "for": value}):
        refused = refusal(sent)
        assert refused is None or all(one.field and one.message for one in refused.findings)
