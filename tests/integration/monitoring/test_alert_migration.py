"""What is stored of alerts under the measures ``loops`` is migrated to ``controllers``, and back."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import apps
from django.db.models import Model

from apps.monitoring.models import (
    Alert,
    AlertGroup,
    AlertNotice,
    AlertRoute,
    AlertRule,
    AlertSilence,
)
from apps.monitoring.services import alert_evaluation, alerts
from controlplane.domain.alerts.rules import AlertSample
from tests.integration.monitoring.alerts import HOT, NOON, after, create_rule
from tests.integration.monitoring.conftest import Office

_MIGRATION = import_module("apps.monitoring.migrations.0009_names_of_controllers")
_SAMPLES = (
    AlertSample(labels={"controller": "apps.monitoring.tasks.diagnose_clusters"}, value=99.0),
)


_KINDS: tuple[type[Model], ...] = (
    Alert,
    AlertGroup,
    AlertNotice,
    AlertRoute,
    AlertRule,
    AlertSilence,
)


def _stored() -> list[list[dict[str, Any]]]:
    return [list(kind._default_manager.order_by("pk").values()) for kind in _KINDS]


def _title_as_migrated() -> None:
    """The migration knows the title of its time; default rules have been reworded since."""
    rule = AlertRule.objects.get(name="controller-late")
    (rule.title,) = _MIGRATION.TITLES.values()
    rule.document["title"] = rule.title
    rule.save(update_fields=["title", "document"])


def _measured_rule(office: Office) -> AlertRule:
    rule = create_rule(
        office.vera,
        measure="controllers.lag",
        where=["controller=apps.monitoring.*"],
        group_by=["controller"],
    )
    assert alert_evaluation.alert_rule_evaluate(rule=rule, samples=_SAMPLES, at=NOON) == 1
    return rule


def test_alerts_are_migrated_there_and_back(office: Office) -> None:
    alerts.default_alert_rules_sync(at=NOON)
    _title_as_migrated()
    rule = _measured_rule(office)
    silence = alerts.silence_create(
        name="repairs",
        matchers=["rule=controller-late", "controller!=apps.jobs.tasks.clean_up_launches"],
        ends_at=after(3600),
        reason="repairs",
        actor=office.vera,
        at=NOON,
    )
    AlertRoute.objects.create(name="nights", matchers=["controller=config.tasks.*"])
    present = _stored()

    _MIGRATION.rename(apps, reverse=True)

    shipped = AlertRule.objects.get(name="loop-late")
    assert shipped.document["measure"] == "loops.troubled"
    assert shipped.title == "A loop of the product does not keep up"
    rule.refresh_from_db()
    assert rule.document["where"] == ["loop=apps.monitoring.*"]
    assert rule.document["group_by"] == ["loop"]
    silence.refresh_from_db()
    assert silence.matchers == ["rule=loop-late", "loop!=apps.jobs.tasks.sweep_launches"]
    labels = {"loop": "apps.monitoring.tasks.read_signs"}
    assert Alert.objects.get().labels == AlertGroup.objects.get().labels == labels
    (notice,) = AlertNotice.objects.all()
    assert notice.content["measure"] == "loops.lag"
    assert [alert["labels"] for alert in notice.content["alerts"]] == [labels]

    _MIGRATION.rename(apps)

    assert _stored() == present


def test_a_migrated_alert_goes_on(office: Office) -> None:
    rule = _measured_rule(office)
    _MIGRATION.rename(apps, reverse=True)
    _MIGRATION.rename(apps)
    rule.refresh_from_db()
    assert alert_evaluation.alert_rule_evaluate(rule=rule, samples=_SAMPLES, at=after(5)) == 0
    assert Alert.objects.count() == AlertGroup.objects.count() == 1


def test_the_default_rule_keeps_its_name_where_a_user_has_taken_the_new_one(
    office: Office,
) -> None:
    alerts.default_alert_rules_sync(at=NOON)
    _MIGRATION.rename(apps, reverse=True)
    create_rule(office.vera, name="controller-late", measure=HOT["measure"])
    _MIGRATION.rename(apps)
    assert AlertRule.objects.get(name="loop-late").document["measure"] == "controllers.unhealthy"
    assert AlertRule.objects.get(name="controller-late").document["measure"] == HOT["measure"]


def test_silences_are_named_after_their_matchers(office: Office) -> None:
    for matchers in (["rule=hot", "node=a"], ["rule=hot", "node=a"], ["node=" + "b" * 200]):
        AlertSilence.objects.create(
            matchers=matchers, reason="x", began_at=NOON, ends_at=after(60), created_by_name="vera"
        )
    import_module("apps.monitoring.migrations.0013_silence_name").name_silences(apps, None)
    first, second, long = AlertSilence.objects.order_by("id")
    assert (first.name, second.name) == ("rule=hot, node=a", f"rule=hot, node=a ({second.pk})")
    assert long.name == "node=" + "b" * 55
