"""Rules let go what nobody needs, and never anything else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.retention import Item, ItemKind, Plan, RuleCode, Rules, plan

NOW = datetime(2030, 5, 17, tzinfo=UTC)
ALL = Rules(enabled=True, keep_versions=1, checkpoint_days=0, failed_days=0, log_days=0)
NONE = Rules()


def version(number: int, **values: object) -> Item:
    given = {
        "kind": ItemKind.VERSION,
        "uid": f"v{number}",
        "name": f"parser v{number}",
        "team": "maps",
        "size": 100,
        "at": NOW - timedelta(days=30),
        "series": "parser",
        "number": number,
    }
    return Item(**{**given, **values})  # type: ignore[arg-type]  # a test's own values


def left(kind: ItemKind, *, days: float, **values: object) -> Item:
    given = {
        "kind": kind,
        "uid": f"{kind}-{days}",
        "name": "run",
        "team": "maps",
        "size": 10,
        "at": NOW - timedelta(days=days),
        "failed": True,
    }
    return Item(**{**given, **values})  # type: ignore[arg-type]  # a test's own values


def gone(found: Plan) -> set[str]:
    return {removal.item.uid for removal in found.removals}


def planned(*items: Item, rules: Rules = ALL) -> Plan:
    return plan(items, rules={"maps": rules}, default=NONE, at=NOW)


def test_the_newest_versions_of_each_model_stay() -> None:
    items = [version(n) for n in (1, 2, 3)] + [version(9, uid="o9", series="other")]
    found = planned(*items, rules=Rules(enabled=True, keep_versions=2))
    assert gone(found) == {"v1"}
    assert found.removals[0].reason == "only the newest 2 versions of each model are kept"


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (ItemKind.CHECKPOINTS, RuleCode.CHECKPOINT_DAYS),
        (ItemKind.UPLOADS, RuleCode.FAILED_DAYS),
        (ItemKind.LOG, RuleCode.LOG_DAYS),
    ],
)
def test_what_a_run_left_goes_after_its_days(kind: ItemKind, rule: RuleCode) -> None:
    days = {"checkpoint_days": 3, "failed_days": 3, "log_days": 3}
    found = planned(left(kind, days=2.9), left(kind, days=3), rules=Rules(enabled=True, **days))
    assert [(one.item.uid, one.rule, one.kept) for one in found.removals] == [
        (f"{kind}-3", rule, 3)
    ]


def test_rules_that_are_not_applied_let_nothing_go() -> None:
    everything = [version(1), version(2), *(left(kind, days=99) for kind in ItemKind)]
    off = Rules(keep_versions=1, checkpoint_days=0, failed_days=0, log_days=0)
    assert gone(planned(*everything[:2], *everything[3:], rules=off)) == set()


def test_what_a_success_handed_over_and_nothing_lists_goes_after_a_day_without_any_rule() -> None:
    young, old = (left(ItemKind.UPLOADS, days=days, failed=False) for days in (0.9, 1.0))
    assert gone(planned(young, old, rules=NONE)) == {old.uid}


def test_what_still_runs_has_no_age() -> None:
    assert gone(planned(left(ItemKind.CHECKPOINTS, days=0, at=None))) == set()


def test_a_team_without_rules_has_those_of_all_others() -> None:
    items = [version(1, team="other"), version(2, team="other")]
    assert gone(plan(items, rules={"maps": ALL}, default=NONE, at=NOW)) == set()
    assert gone(plan(items, rules={}, default=ALL, at=NOW)) == {"v1"}


def test_what_belongs_to_everybody_stays() -> None:
    assert (
        gone(plan([version(1, team=""), version(2, team="")], rules={}, default=ALL, at=NOW))
        == set()
    )


def test_a_base_stays_as_long_as_something_that_stays_is_loaded_with_it() -> None:
    base, middle = version(1), version(2, needs=frozenset({"v1"}))
    adapter = version(5, uid="a", series="adapter", needs=frozenset({"v2"}))
    found = planned(base, middle, version(3), adapter)
    assert gone(found) == set()
    assert {item.uid for item in found.spared} == {"v1", "v2"}


def test_a_base_goes_together_with_all_that_need_it() -> None:
    needs = frozenset({"v1"})
    assert gone(planned(version(1), version(2, needs=needs), version(3))) == {"v1", "v2"}


@st.composite
def inventories(draw: st.DrawFn) -> list[Item]:
    count = draw(st.integers(min_value=1, max_value=12))
    versions = [
        version(
            number,
            series=draw(st.sampled_from(["a", "b"])),
            team=draw(st.sampled_from(["maps", "search", ""])),
            pinned=draw(st.booleans()),
            held=draw(st.sampled_from(["", "", "deployment x can serve it"])),
            needs=frozenset(
                draw(st.sets(st.sampled_from([f"v{n}" for n in range(number)]), max_size=2))
                if number
                else ()
            ),
        )
        for number in range(count)
    ]
    others = draw(
        st.lists(
            st.builds(
                left,
                st.sampled_from([ItemKind.CHECKPOINTS, ItemKind.UPLOADS, ItemKind.LOG]),
                days=st.floats(min_value=0, max_value=60),
                held=st.sampled_from(["", "job x is running"]),
                failed=st.booleans(),
            ),
            max_size=6,
            unique_by=lambda item: (item.kind, item.uid),
        )
    )
    return [*versions, *others]


rules = st.builds(
    Rules,
    enabled=st.booleans(),
    keep_versions=st.none() | st.integers(min_value=0, max_value=3),
    checkpoint_days=st.none() | st.integers(min_value=0, max_value=30),
    failed_days=st.none() | st.integers(min_value=0, max_value=30),
    log_days=st.none() | st.integers(min_value=0, max_value=30),
)


@given(items=inventories(), own=rules, default=rules)
def test_nothing_that_is_held_pinned_or_needed_ever_goes(
    items: list[Item], own: Rules, default: Rules
) -> None:
    found = plan(items, rules={"maps": own}, default=default, at=NOW)
    removed = {(one.item.kind, one.item.uid) for one in found.removals}
    kept = [item for item in items if (item.kind, item.uid) not in removed]
    assert not any(one.item.held or one.item.pinned or not one.item.team for one in found.removals)
    for item in kept:
        assert not any((ItemKind.VERSION, uid) in removed for uid in item.needs)


@given(items=inventories(), own=rules)
def test_each_model_keeps_its_newest_version(items: list[Item], own: Rules) -> None:
    removed = gone(plan(items, rules={}, default=own, at=NOW))
    for series in ("a", "b"):
        members = [
            item for item in items if item.kind is ItemKind.VERSION and item.series == series
        ]
        if members:
            assert max(members, key=lambda item: item.number).uid not in removed


@given(items=inventories(), own=rules)
def test_a_second_round_finds_nothing_left(items: list[Item], own: Rules) -> None:
    first = plan(items, rules={}, default=own, at=NOW)
    removed = {(one.item.kind, one.item.uid) for one in first.removals}
    rest = [item for item in items if (item.kind, item.uid) not in removed]
    second = plan(rest, rules={}, default=own, at=NOW)
    assert {one.item.kind for one in second.removals} <= {ItemKind.VERSION}
    assert first.size == sum(item.size for item in items) - sum(item.size for item in rest)
