"""Rules become alerts, alerts become episodes, and an episode is told of once and ended once."""

from __future__ import annotations

import random
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.accounts.models import AuditEntry
from apps.accounts.selectors import PermissionRefused
from apps.fleet.models import Card, Node
from apps.monitoring.models import Alert, AlertGroup, AlertNotice, AlertRule, AlertSilence, Fault
from apps.monitoring.reconcilers.alerts import alerts_reconcile
from apps.monitoring.selectors.alerts import alert_rule_spec_of
from apps.monitoring.selectors.rule_samples import alert_rule_dry_run, rule_alert_samples
from apps.monitoring.services import alert_evaluation, alerts
from apps.telemetry.models import CardHistory, CardMetrics
from controlplane.domain.alerts.rules import DEFAULTS, MEASURES, parse_rule
from controlplane.domain.rules.conditions import RuleState
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from tests import factories
from tests.cases import for_each_case
from tests.integration.monitoring.alerts import (
    HOT,
    NOON,
    after,
    cards_of,
    create_rule,
    judged,
    seen,
    warm,
)
from tests.integration.monitoring.conftest import Office


def kinds() -> list[str]:
    return list(AlertNotice.objects.order_by("id").values_list("kind", flat=True))


def test_a_hot_card_fires_once_and_is_over_once(office: Office) -> None:
    rule = create_rule(office.vera, lasts=60)
    card = cards_of(factories.cluster())[0]
    for second in (0, 30, 59):
        warm([card], at=after(second))
        judged(rule, at=after(second))
    assert AlertGroup.objects.count() == 0
    for second in (60, 65, 65, 70):
        warm([card], at=after(second))
        judged(rule, at=after(second))
    group = AlertGroup.objects.get()
    assert (group.count, group.labels, group.began_at) == (1, {"cluster": "here"}, after(60))
    assert kinds() == ["firing"]
    warm([card], at=after(75), temperature=60.0)
    for second in (75, 75, 80):
        judged(rule, at=after(second))
    group.refresh_from_db()
    assert (group.count, group.most, group.ended_at) == (0, 1, after(75))
    assert kinds() == ["firing", "resolved"]
    assert Alert.objects.get().state == RuleState.RESOLVED


def test_a_thousand_cards_are_one_message_that_names_ten(
    office: Office, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    rule = create_rule(office.vera)
    node = Node.objects.get(cluster=factories.cluster(cards=1))
    cards = Card.objects.bulk_create(
        Card(node=node, index=index, chip="cpu") for index in range(1, 1000)
    )
    CardMetrics.objects.bulk_create(
        CardMetrics(card=card, at=NOON, received_at=NOON, temperature=99.0) for card in cards
    )
    with django_assert_max_num_queries(20):
        assert judged(rule, at=NOON) == 1
    (notice,) = AlertNotice.objects.all()
    assert notice.content["count"] == 999
    assert len(notice.content["alerts"]) == 10
    with django_assert_max_num_queries(12):
        assert judged(rule, at=after(5)) == 0


def test_figures_that_are_old_end_nothing(office: Office) -> None:
    rule = create_rule(office.vera)
    card = cards_of(factories.cluster())[0]
    warm([card], at=NOON)
    judged(rule, at=NOON)
    warm([card], at=NOON, temperature=40.0)
    judged(rule, at=after(3600))
    assert kinds() == ["firing"]
    warm([card], at=after(3600), temperature=40.0)
    judged(rule, at=after(3600))
    assert kinds() == ["firing", "resolved"]


def test_whatever_turns_are_lost_repeated_or_late_nothing_is_told_twice(office: Office) -> None:
    rule = create_rule(office.vera, lasts=5, keeps=5)
    chance = random.Random(8)
    second = 0
    for _ in range(60):
        second += chance.choice((5, 10, 400))
        cards = chance.sample(range(4), chance.choice((0, 0, 0, 1, 3)))
        seen(rule, *cards, at=after(second))
        if chance.random() < 0.3:
            seen(rule, *cards, at=after(second))
        if chance.random() < 0.3:
            seen(rule, *chance.sample(range(4), 2), at=after(second - 30))
    for _ in range(2):
        second += 60
        seen(rule, at=after(second))
    assert AlertGroup.objects.count() > 3
    for group in AlertGroup.objects.all():
        notices = list(group.notices.order_by("number").values_list("kind", flat=True))
        assert notices[0] == "firing"
        assert notices[-1] == "resolved"
        assert set(notices[1:-1]) <= {"more"}
        assert group.ended_at is not None


def test_a_turn_that_dies_on_its_way_leaves_nothing_and_the_next_one_tells(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = create_rule(office.vera)

    def dies(*_: object) -> None:
        raise OperationalError("the server closed the connection")

    with monkeypatch.context() as patched:
        patched.setattr(alert_evaluation, "_notice_content", dies)
        with pytest.raises(OperationalError):
            seen(rule, 1, at=NOON)
    assert not Alert.objects.exists()
    assert not AlertGroup.objects.exists()
    assert seen(rule, 1, at=after(5)) == 1
    assert seen(rule, 1, at=after(10)) == 0


def test_what_joins_later_is_told_of_after_a_while_and_repetitions_when_wanted(
    office: Office,
) -> None:
    rule = create_rule(office.vera, repeat=3600)
    assert seen(rule, 1, at=NOON) == 1
    assert seen(rule, 1, 2, at=after(60)) == 0
    assert seen(rule, 1, 2, at=after(300)) == 1
    assert seen(rule, 1, 2, at=after(3000)) == 0
    assert seen(rule, 1, 2, at=after(4000)) == 1
    assert kinds() == ["firing", "more", "repeat"]


def silence_request(**given: Any) -> dict[str, Any]:
    defaults = {
        "name": "repair",
        "matchers": ["rule=hot"],
        "ends_at": after(3600),
        "reason": "broken",
    }
    return {**defaults, **given}


def test_a_silence_holds_back_and_gives_way_by_itself(office: Office) -> None:
    rule = create_rule(office.vera)
    silence = alerts.silence_create(
        **silence_request(matchers=["rule=hot", "card=1"]), actor=office.vera, at=NOON
    )
    assert seen(rule, 1, at=after(5)) == 0
    group = AlertGroup.objects.get()
    assert (group.count, group.silenced, group.notified_at) == (1, 1, None)
    assert seen(rule, 1, 2, at=after(10)) == 1
    assert [one["labels"]["card"] for one in AlertNotice.objects.get().content["alerts"]] == ["2"]
    assert seen(rule, 1, 2, at=after(3600)) == 1
    assert kinds() == ["firing", "more"]
    alerts.silence_end(silence=silence, actor=office.vera, at=after(4000))
    silence.refresh_from_db()
    assert silence.ended_by_name == ""


def test_what_was_silenced_from_beginning_to_end_is_never_told_of(office: Office) -> None:
    rule = create_rule(office.vera)
    alerts.silence_create(**silence_request(matchers=["cluster=west"]), actor=office.vera, at=NOON)
    seen(rule, 1, at=after(5))
    seen(rule, at=after(10))
    assert AlertGroup.objects.get().ended_at == after(10)
    assert kinds() == []


def test_a_rule_that_is_switched_off_or_deleted_ends_what_it_fired(office: Office) -> None:
    rule = create_rule(office.vera, keeps=600)
    seen(rule, 1, at=NOON)
    rule = alerts.alert_rule_change(
        rule=rule, document={"enabled": False}, actor=office.vera, at=after(5)
    )
    seen(rule, 1, at=after(10))
    assert kinds() == ["firing", "resolved"]
    rule = alerts.alert_rule_change(
        rule=rule, document={"enabled": True}, actor=office.vera, at=after(15)
    )
    seen(rule, 1, at=after(20))
    alerts.alert_rule_delete(rule=rule, actor=office.vera, at=after(25))
    assert kinds() == ["firing", "resolved", "firing", "resolved"]
    assert not AlertGroup.objects.filter(ended_at=None).exists()
    actions = (
        AuditEntry.objects.filter(object_name="hot").order_by("id").values_list("action", flat=True)
    )
    assert list(actions) == [
        "alert_rule.create",
        "alert_rule.change",
        "alert_rule.change",
        "alert_rule.delete",
    ]


def test_samples_of_a_rule_that_was_changed_meanwhile_are_not_judged(office: Office) -> None:
    old = create_rule(office.vera)
    alerts.alert_rule_change(rule=old, document={"threshold": 99}, actor=office.vera, at=NOON)
    assert alert_evaluation.alert_rule_evaluate(rule=old, samples=(), at=after(5)) == 0
    assert AlertRule.objects.get(pk=old.pk).evaluated_at is None


def test_shipped_rules_come_with_the_first_turn_and_stay_as_people_left_them(
    office: Office,
) -> None:
    alerts_reconcile(at=NOON)
    assert AlertRule.objects.filter(shipped=True, error="").count() == len(DEFAULTS)
    hot = AlertRule.objects.get(name="card-hot")
    alerts.alert_rule_change(rule=hot, document={"threshold": 80}, actor=office.vera, at=NOON)
    AlertRule.objects.filter(name="controller-late").update(document={**HOT, "where": []})
    assert alerts.default_alert_rules_sync(at=after(5)) == 1
    hot.refresh_from_db()
    assert hot.document["threshold"] == 80
    assert (
        alert_rule_spec_of(AlertRule.objects.get(name="controller-late")).measure
        == "controllers.unhealthy"
    )
    with pytest.raises(alerts.AlertSettingsRefused, match="disable it instead"):
        alerts.alert_rule_delete(rule=hot, actor=office.vera, at=NOON)


def test_one_rule_that_cannot_be_judged_spoils_no_other(office: Office) -> None:
    broken = create_rule(office.vera, name="a-first")
    AlertRule.objects.filter(pk=broken.pk).update(document={**HOT, "measure": "cards.mood"})
    whole = create_rule(office.vera)
    warm(cards_of(factories.cluster()), at=NOON)
    alerts_reconcile(at=NOON)
    broken.refresh_from_db()
    whole.refresh_from_db()
    assert "cards.mood" in broken.error
    assert (whole.error, whole.evaluated_at) == ("", NOON)


@for_each_case("measure", MEASURES)
def test_every_measure_can_be_read(office: Office, measure: str) -> None:
    factories.cluster()
    rule = parse_rule({**HOT, "measure": measure, "group_by": []})
    for sample in rule_alert_samples(rule, at=NOON):
        assert set(sample.labels) == set(MEASURES[measure].labels)


def test_cards_of_which_nothing_is_known_are_counted_by_cluster(office: Office) -> None:
    cards = cards_of(factories.cluster(cards=4))
    Card.objects.filter(pk=cards[0].pk).update(state="unknown")
    rule = parse_rule({**HOT, "measure": "fleet.unknown_share", "op": ">="})
    (sample,) = rule_alert_samples(rule, at=NOON)
    assert (sample.value, sample.labels["cluster"]) == (25.0, "here")


def test_a_trial_counts_what_would_have_fired_in_the_last_day(office: Office) -> None:
    at = timezone.now().replace(second=30, microsecond=0)
    cards = cards_of(factories.cluster())
    warm(cards[:1], at=at)
    heats = [70, 95, 95, 95, 70, 70, 95, 70, 95, 95, 95]
    CardHistory.objects.bulk_create(
        CardHistory(
            card_id=cards[0].pk,
            at=at - timedelta(minutes=len(heats) - minute),
            temperature=heat,
        )
        for minute, heat in enumerate(heats)
    )
    trial = alert_rule_dry_run(parse_rule({**HOT, "lasts": 120}), at=at)
    assert (trial.now, trial.times, trial.things, trial.cut) == (1, 2, 1, False)
    assert alert_rule_dry_run(parse_rule({**HOT, "lasts": 600}), at=at).times == 0


def test_a_trial_counts_faults_that_stood_for_long_enough(office: Office) -> None:
    card = cards_of(factories.cluster())[0]
    for code, hours in (("79", 2), ("48", 0)):
        Fault.objects.create(
            node=card.node,
            card=card,
            origin="exporter",
            code=code,
            level=6,
            began_at=NOON - timedelta(hours=hours),
            reported_at=NOON,
            noticed_at=NOON,
        )
    severe = {**HOT, "measure": "faults.level", "op": ">=", "threshold": 5, "lasts": 3600}
    trial = alert_rule_dry_run(parse_rule(severe), at=NOON)
    assert (trial.now, trial.times, trial.things) == (2, 1, 1)


def test_a_trial_says_where_no_history_is_kept(office: Office) -> None:
    rule = parse_rule({**HOT, "measure": "queues.wait", "group_by": []})
    assert alert_rule_dry_run(rule, at=NOON).times is None


def test_only_operators_change_anything(office: Office) -> None:
    rule = create_rule(office.vera)
    silence = AlertSilence.objects.create(
        name="x",
        matchers=["rule=hot"],
        reason="x",
        began_at=NOON,
        ends_at=after(60),
        created_by_name="vera",
    )
    actions = (
        lambda: create_rule(office.ada, name="other"),
        lambda: alerts.alert_rule_change(rule=rule, document={}, actor=office.ada, at=NOON),
        lambda: alerts.alert_rule_delete(rule=rule, actor=office.ada, at=NOON),
        lambda: alerts.silence_end(silence=silence, actor=office.ada, at=NOON),
        lambda: alerts.silence_create(**silence_request(), actor=office.ada, at=NOON),
        lambda: alerts.silence_change(silence=silence, changes={}, actor=office.ada, at=NOON),
    )
    for action in actions:
        with pytest.raises(PermissionRefused):
            action()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", " "),
        ("matchers", []),
        ("matchers", ["cluster"]),
        ("ends_at", after(0)),
        ("ends_at", after(31 * 86_400)),
        ("reason", "  "),
    ],
)
def test_a_silence_needs_a_name_a_matcher_an_end_and_a_reason(
    office: Office, field: str, value: Any
) -> None:
    request = silence_request(**{field: value})
    with pytest.raises(alerts.AlertSettingsRefused) as refused:
        alerts.silence_create(**request, actor=office.vera, at=NOON)
    assert refused.value.field == field
    if field != "name":
        silence = alerts.silence_create(**silence_request(), actor=office.vera, at=NOON)
        with pytest.raises(alerts.AlertSettingsRefused) as refused:
            alerts.silence_change(
                silence=silence, changes={field: value}, actor=office.vera, at=NOON
            )
        assert refused.value.field == field


def test_a_name_is_free_again_when_its_silence_has_ended(office: Office) -> None:
    first = alerts.silence_create(**silence_request(), actor=office.vera, at=NOON)
    with pytest.raises(alerts.AlertSettingsRefused) as refused:
        alerts.silence_create(**silence_request(), actor=office.vera, at=after(60))
    assert refused.value.field == "name"
    alerts.silence_end(silence=first, actor=office.vera, at=after(60))
    later = silence_request(ends_at=after(7200))
    second = alerts.silence_create(**later, actor=office.vera, at=after(60))
    assert (first.name, second.name) == ("repair", "repair")
    # The record of the first one does not change any more.
    same = alerts.silence_change(
        silence=first, changes={"reason": "broken"}, actor=office.vera, at=after(61)
    )
    assert (same.ended_by_name, same.reason) == ("vera", "broken")
    with pytest.raises(alerts.AlertSettingsRefused):
        alerts.silence_change(
            silence=first, changes={"ends_at": after(9000)}, actor=office.vera, at=after(61)
        )


def test_a_changed_silence_suppresses_what_matches_now(office: Office) -> None:
    rule = create_rule(office.vera)
    silence = alerts.silence_create(
        **silence_request(matchers=["card=1"]), actor=office.vera, at=NOON
    )
    assert seen(rule, 1, at=after(5)) == 0
    alerts.silence_change(
        silence=silence, changes={"matchers": ["card = 2"]}, actor=office.vera, at=after(10)
    )
    silence.refresh_from_db()
    assert silence.matchers == ["card=2"]
    assert seen(rule, 1, 2, at=after(15)) == 1
    assert [one["labels"]["card"] for one in AlertNotice.objects.get().content["alerts"]] == ["1"]


@pytest.mark.django_db(transaction=True)
def test_of_two_silences_that_are_created_at_once_one_has_the_name() -> None:
    vera = factories.user("vera", admin=True)
    outcomes = []

    def create() -> None:
        try:
            alerts.silence_create(**silence_request(), actor=vera, at=NOON)
            outcomes.append("created")
        except alerts.AlertSettingsRefused as refused:
            outcomes.append(refused.field)
        finally:
            connection.close()

    with transaction.atomic():
        lock_in_transaction(AdvisoryLock.NAME_SILENCE)
        threads = [Thread(target=create) for _ in range(2)]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(outcomes) == ["created", "name"]


def test_old_episodes_are_forgotten_with_what_was_told(office: Office) -> None:
    rule = create_rule(office.vera)
    seen(rule, 1, at=NOON)
    seen(rule, at=after(5))
    seen(rule, 2, at=after(10))
    assert alert_evaluation.alerts_prune(at=NOON + timedelta(days=91)) == 1
    assert AlertGroup.objects.get().ended_at is None
    assert kinds() == ["firing"]
