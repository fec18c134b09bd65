"""Alert rules measure ``controllers``; what is stored of rules, alerts, notices, silences and routes follows."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from django.apps.registry import Apps as StateApps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

Names = Mapping[str, str]

MEASURES = {"loops.troubled": "controllers.unhealthy", "loops.lag": "controllers.lag"}
LABELS = {"loop": "controller"}
RULES = {"loop-late": "controller-late"}
TITLES = {"A loop of the product does not keep up": "A controller is unhealthy"}
#: Values of the label: names of tasks.
CONTROLLERS = {
    "apps.jobs.tasks.sweep_launches": "apps.jobs.tasks.clean_up_launches",
    "apps.monitoring.tasks.judge_alerts": "apps.monitoring.tasks.evaluate_alert_rules",
    "apps.monitoring.tasks.judge_figures": "apps.monitoring.tasks.evaluate_health_rules",
    "apps.monitoring.tasks.notice_silence": "apps.monitoring.tasks.detect_stale_cards",
    "apps.monitoring.tasks.prune_news": "apps.monitoring.tasks.prune_events",
    "apps.monitoring.tasks.read_signs": "apps.monitoring.tasks.diagnose_clusters",
    "apps.quotas.tasks.carry_out_rearrangements": "apps.quotas.tasks.reconcile_defragmentations",
    "apps.serving.tasks.sweep_launches": "apps.serving.tasks.clean_up_launches",
}
_MATCHER = re.compile(r"([a-z_]+)(!?=)(.*)", re.DOTALL)


class _Renaming:
    """Renames what rows say, in one direction."""

    def __init__(self, *, reverse: bool) -> None:
        def directed(names: Names) -> Names:
            return {new: old for old, new in names.items()} if reverse else names

        self.measures = directed(MEASURES)
        self.labels = directed(LABELS)
        self.rules = directed(RULES)
        self.titles = directed(TITLES)
        self.controllers = directed(CONTROLLERS)

    def labels_of(self, labels: Names) -> dict[str, str]:
        return {
            self.labels.get(name, name): self.controllers.get(value, value)
            if name in self.labels
            else value
            for name, value in labels.items()
        }

    def matcher(self, text: str) -> str:
        found = _MATCHER.fullmatch(text)
        if found is None:
            return text
        name, operator, value = found.groups()
        if name in self.labels:
            return f"{self.labels[name]}{operator}{self.controllers.get(value, value)}"
        if name == "rule":
            return f"{name}{operator}{self.rules.get(value, value)}"
        return text

    def document(self, document: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **document,
            "name": self.rules.get(document["name"], document["name"]),
            "title": self.titles.get(document["title"], document["title"]),
            "measure": self.measures[document["measure"]],
            "where": [self.matcher(text) for text in document["where"]],
            "group_by": [self.labels.get(name, name) for name in document["group_by"]],
        }


def _key(labels: Names) -> str:
    text = json.dumps(dict(sorted(labels.items())), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def rename(apps: StateApps, *, reverse: bool = False) -> None:
    """Rename the measures and their label, the rule that measures them, and the controllers in its alerts."""
    names = _Renaming(reverse=reverse)
    rules = apps.get_model("monitoring", "AlertRule").objects
    if rules.filter(name__in=names.rules.values()).exists():
        # A user has a rule of that name.
        names.rules = {}
    for rule in rules.filter(document__measure__in=names.measures):
        rule.document = names.document(rule.document)
        rule.name, rule.title = rule.document["name"], rule.document["title"]
        rule.save(update_fields=["document", "name", "title"])
    groups = apps.get_model("monitoring", "AlertGroup").objects
    for earlier, name in names.rules.items():
        for title, present in names.titles.items():
            groups.filter(rule_name=earlier, title=title).update(title=present)
        groups.filter(rule_name=earlier).update(rule_name=name)
    for model in ("Alert", "AlertGroup"):
        labelled = apps.get_model("monitoring", model).objects
        for row in labelled.filter(labels__has_any_keys=list(names.labels)):
            row.labels = names.labels_of(row.labels)
            row.key = _key(row.labels)
            row.save(update_fields=["labels", "key"])
    notices = apps.get_model("monitoring", "AlertNotice").objects
    for notice in notices.filter(content__measure__in=names.measures):
        notice.content["measure"] = names.measures[notice.content["measure"]]
        for alert in notice.content["alerts"]:
            alert["labels"] = names.labels_of(alert["labels"])
        notice.save(update_fields=["content"])
    for model in ("AlertSilence", "AlertRoute"):
        for row in apps.get_model("monitoring", model).objects.all():
            matchers = [names.matcher(text) for text in row.matchers]
            if matchers != row.matchers:
                row.matchers = matchers
                row.save(update_fields=["matchers"])


def _forwards(apps: StateApps, _editor: BaseDatabaseSchemaEditor) -> None:
    rename(apps)


def _backwards(apps: StateApps, _editor: BaseDatabaseSchemaEditor) -> None:
    rename(apps, reverse=True)


class Migration(migrations.Migration):
    """Measures, labels and a rule of alerts have the terms of the glossary."""

    dependencies = [("monitoring", "0008_isolation_on_nodes")]

    operations = [migrations.RunPython(_forwards, _backwards)]
