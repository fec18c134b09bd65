"""Rules let go what nobody needs, and never anything else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.storage.team_storage import (
    RetentionItem,
    RetentionItemKind,
    RetentionPlan,
    RetentionRuleCode,
    RetentionRules,
    plan_retention,
)

NOW = datetime(2030, 5, 17, tzinfo=UTC)
ALL = RetentionRules(enabled=True, keep_versions=1, checkpoint_days=0, failed_days=0, log_days=0)
NONE = RetentionRules()


def version(number: int, **values: object) -> RetentionItem:
    given = {
        "kind": RetentionItemKind.VERSION,
        "uid": f"v{number}",
        "name": f"parser v{number}",
        "team": "maps",
        "size": 100,
        "at": NOW - timedelta(days=30),
        "series": "parser",
        "number": number,
    }
    return RetentionItem(**{**given, **values})  # type: ignore[arg-type]  # a test's own values


def left(kind: RetentionItemKind, *, days: float, **values: object) -> RetentionItem:
    given = {
        "kind": kind,
        "uid": f"{kind}-{days}",
        "name": "run",
        "team": "maps",
        "size": 10,
        "at": NOW - timedelta(days=days),
        "failed": True,
    }
    return RetentionItem(**{**given, **values})  # type: ignore[arg-type]  # a test's own values


def gone(found: RetentionPlan) -> set[str]:
    return {removal.item.uid for removal in found.removals}


def planned(*items: RetentionItem, rules: RetentionRules = ALL) -> RetentionPlan:
    return plan_retention(items, rules={"maps": rules}, default=NONE, at=NOW)


def test_the_newest_versions_of_each_model_are_retained() -> None:
    items = [version(n) for n in (1, 2, 3)] + [version(9, uid="o9", series="other")]
    found = planned(*items, rules=RetentionRules(enabled=True, keep_versions=2))
    assert gone(found) == {"v1"}
    assert found.removals[0].reason == "only the newest 2 versions of each model are kept"


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (RetentionItemKind.CHECKPOINTS, RetentionRuleCode.CHECKPOINT_DAYS),
        (RetentionItemKind.UPLOADS, RetentionRuleCode.FAILED_DAYS),
        (RetentionItemKind.LOG, RetentionRuleCode.LOG_DAYS),
    ],
)
def test_items_of_attempts_are_removed_after_their_retention(
    kind: RetentionItemKind, rule: RetentionRuleCode
) -> None:
    days = {"checkpoint_days": 3, "failed_days": 3, "log_days": 3}
    found = planned(
        left(kind, days=2.9), left(kind, days=3), rules=RetentionRules(enabled=True, **days)
    )
    assert [(one.item.uid, one.rule, one.limit) for one in found.removals] == [
        (f"{kind}-3", rule, 3)
    ]


def test_disabled_rules_remove_nothing() -> None:
    everything = [version(1), version(2), *(left(kind, days=99) for kind in RetentionItemKind)]
    off = RetentionRules(keep_versions=1, checkpoint_days=0, failed_days=0, log_days=0)
    assert gone(planned(*everything[:2], *everything[3:], rules=off)) == set()


def test_unlisted_uploads_of_a_success_are_removed_after_a_day() -> None:
    young, old = (left(RetentionItemKind.UPLOADS, days=days, failed=False) for days in (0.9, 1.0))
    assert gone(planned(young, old, rules=NONE)) == {old.uid}


def test_items_of_running_attempts_have_no_age() -> None:
    assert gone(planned(left(RetentionItemKind.CHECKPOINTS, days=0, at=None))) == set()


def test_a_team_without_rules_has_those_of_all_others() -> None:
    items = [version(1, team="other"), version(2, team="other")]
    assert gone(plan_retention(items, rules={"maps": ALL}, default=NONE, at=NOW)) == set()
    assert gone(plan_retention(items, rules={}, default=ALL, at=NOW)) == {"v1"}


def test_shared_versions_are_never_removed() -> None:
    assert (
        gone(
            plan_retention(
                [version(1, team=""), version(2, team="")], rules={}, default=ALL, at=NOW
            )
        )
        == set()
    )


def test_a_base_is_protected_while_a_remaining_version_needs_it() -> None:
    base, middle = version(1), version(2, needs=frozenset({"v1"}))
    adapter = version(5, uid="a", series="adapter", needs=frozenset({"v2"}))
    found = planned(base, middle, version(3), adapter)
    assert gone(found) == set()
    assert {item.uid for item in found.spared} == {"v1", "v2"}


def test_a_base_is_removed_together_with_versions_that_need_it() -> None:
    needs = frozenset({"v1"})
    assert gone(planned(version(1), version(2, needs=needs), version(3))) == {"v1", "v2"}


@st.composite
def inventories(draw: st.DrawFn) -> list[RetentionItem]:
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
                st.sampled_from(
                    [
                        RetentionItemKind.CHECKPOINTS,
                        RetentionItemKind.UPLOADS,
                        RetentionItemKind.LOG,
                    ]
                ),
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
    RetentionRules,
    enabled=st.booleans(),
    keep_versions=st.none() | st.integers(min_value=0, max_value=3),
    checkpoint_days=st.none() | st.integers(min_value=0, max_value=30),
    failed_days=st.none() | st.integers(min_value=0, max_value=30),
    log_days=st.none() | st.integers(min_value=0, max_value=30),
)


@given(items=inventories(), own=rules, default=rules)
def test_held_pinned_and_needed_items_are_never_removed(
    items: list[RetentionItem], own: RetentionRules, default: RetentionRules
) -> None:
    found = plan_retention(items, rules={"maps": own}, default=default, at=NOW)
    removed = {(one.item.kind, one.item.uid) for one in found.removals}
    retained = [item for item in items if (item.kind, item.uid) not in removed]
    assert not any(one.item.held or one.item.pinned or not one.item.team for one in found.removals)
    for item in retained:
        assert not any((RetentionItemKind.VERSION, uid) in removed for uid in item.needs)


@given(items=inventories(), own=rules)
def test_each_model_keeps_its_newest_version(
    items: list[RetentionItem], own: RetentionRules
) -> None:
    removed = gone(plan_retention(items, rules={}, default=own, at=NOW))
    for series in ("a", "b"):
        members = [
            item
            for item in items
            if item.kind is RetentionItemKind.VERSION and item.series == series
        ]
        if members:
            assert max(members, key=lambda item: item.number).uid not in removed


@given(items=inventories(), own=rules)
def test_a_second_plan_is_empty(items: list[RetentionItem], own: RetentionRules) -> None:
    first = plan_retention(items, rules={}, default=own, at=NOW)
    removed = {(one.item.kind, one.item.uid) for one in first.removals}
    rest = [item for item in items if (item.kind, item.uid) not in removed]
    second = plan_retention(rest, rules={}, default=own, at=NOW)
    assert {one.item.kind for one in second.removals} <= {RetentionItemKind.VERSION}
    assert first.size == sum(item.size for item in items) - sum(item.size for item in rest)
