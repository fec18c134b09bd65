"""The dump of the earlier version in the present version: rows, checks, pages, REST, secrets and sign-in."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings as configured
from django.core.management import call_command
from django.test import Client
from django.urls import resolve
from drf_spectacular.generators import SchemaGenerator
from pytest_django import Settings

from apps.accounts.models import User
from apps.fleet.models import Card, Cluster, Node
from apps.jobs.models import Job, SecretVariable
from apps.jobs.services.launch_comparison import compare_launches_of_job
from apps.models.models import CatalogModel, ModelVersion
from apps.monitoring.models import AlertReceiver, AlertRule
from apps.monitoring.selectors.alerts import alert_rule_spec_of
from apps.notifications.models import Webhook
from config.settings import base
from controlplane.domain.alerts.rules import DEFAULTS
from controlplane.persistence.earlier_reasons import earlier_reason
from controlplane.persistence.encryption import decrypt
from controlplane.persistence.models import ControllerState
from controlplane.persistence.reasons import ReasonField
from controlplane.persistence.reconcile_runs import controller_intervals
from controlplane.ports import adapter_registry
from tests.integration.upgrade.old_database import Upgraded
from tests.integration.upgrade.recorded import INSTALLATION

pytestmark = pytest.mark.slow

#: Table of the dump → its present name, where that is another one.
RENAMED_TABLES: Mapping[str, str] = {"jobs_uploadedfile": "jobs_attemptupload"} | {
    f"monitoring_{name}": f"{app}_{name}"
    for app, names in {
        "telemetry": (
            "cardfigures",
            "cardhour",
            "history_20261125",
            "nodetoken",
            "source",
            "summedhour",
        ),
        "notifications": (
            "event",
            "mail",
            "notification",
            "notificationpreference",
            "webhook",
            "webhookdelivery",
            "webhooktry",
        ),
    }.items()
    for name in names
}
#: Table of the dump → column → its present name, where that is another one.
RENAMED_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "accounts_externalidentity": {"made_administrator": "granted_administrator"},
    "fleet_cluster": {"trouble": "error"},
    "monitoring_alert": {"told_at": "notified_at"},
    "monitoring_alertgroup": {"told_at": "notified_at"},
    "monitoring_alertreceiver": {"made_by_name": "created_by_name"},
    "monitoring_alertrule": {"trouble": "error"},
    "monitoring_alertsilence": {"made_by_name": "created_by_name"},
    "monitoring_fault": {"told_at": "reported_at"},
    "monitoring_rollout": {"made_by_id": "created_by_id", "trouble": "error"},
    "monitoring_source": {"silent": "unreachable", "trouble": "error"},
    "monitoring_webhook": {"trouble": "error"},
    "persistence_loop_state": {"failed_turns": "failed_runs", "turns": "runs"},
    "quotas_claim": {"person_id": "user_id"},
    "quotas_claimforecast": {"made_at": "created_at", "waits_for": "blocked_by"},
    "quotas_queue": {"running_per_person": "max_running_per_user"},
    "quotas_queuechange": {"act": "action"},
    "quotas_rearrangementmove": {"rearrangement_id": "defragmentation_id"},
    "quotas_usageday": {"person_id": "user_id"},
    "quotas_usagerecord": {"person_id": "user_id"},
    "quotas_whatif": {"person_id": "user_id"},
    "registry_artifact": {"made_by": "created_by"},
    "registry_hubimport": {"trouble": "error"},
    "workflows_step": {
        "figures": "metrics",
        "made_id": "output_version_id",
        "waved_by": "overridden_by",
        "waved_reason": "override_reason",
    },
}
#: Table of the dump → columns that are gone or that a migration filled with other values.
CONVERTED_COLUMNS: Mapping[str, Collection[str]] = {
    # The default rule of controllers is named and measures as they are now.
    "monitoring_alertrule": {"name", "title", "document"},
    # Is ``tainted`` of the node, in ``fleet_node``.
    "monitoring_isolation": {"marked_node"},
    # The lease of maintenance rollouts has another name.
    "persistence_lease": {"name"},
    # Eight controllers have other names.
    "persistence_loop_state": {"name"},
    # Names its metric by another key.
    "workflows_step": {"gate"},
}
#: Tables that Django keeps for itself: their rows follow from the models of a version.
_OF_DJANGO = {"auth_permission", "django_content_type", "django_migrations"}

_LINK = re.compile(r'href="(/[^"#]*)')
#: Files, REST, what ends the session, and the admin site, whose lists show rows of any table in the same way.
_NO_PAGES = re.compile(r"^/(static/|api/|logout|admin/)|/files/|/download")


def test_every_row_is_there_after_the_migration(upgraded: Upgraded) -> None:
    lost = []
    for table, count in INSTALLATION["rows"].items():
        rows = upgraded.before[table]
        assert len(rows) == count, f"{table} was not loaded completely"
        present = upgraded.after.get(RENAMED_TABLES.get(table, table))
        if table in _OF_DJANGO:
            continue
        if not present:
            lost.append(f"{table} is gone or empty: name its successor in RENAMED_TABLES")
        else:
            lost += _lost(table, rows, present)
    assert lost == []


def _lost(table: str, rows: list[dict[str, Any]], present: list[dict[str, Any]]) -> list[str]:
    """What the present rows lack, by the same columns or their successors."""
    renamed = RENAMED_COLUMNS.get(table, {})
    columns = sorted(rows[0].keys() - set(CONVERTED_COLUMNS.get(table, ())))
    gone = [name for name in columns if renamed.get(name, name) not in present[0]]
    if gone:
        return [f"{table} has no {', '.join(gone)}: name the successors in RENAMED_COLUMNS"]
    reasons = {
        field.column
        for model in apps.get_models()
        if model._meta.db_table == RENAMED_TABLES.get(table, table)
        for field in model._meta.fields
        if isinstance(field, ReasonField)
    }
    before = Counter(
        json.dumps(
            [
                _as_reason(row[name]) if renamed.get(name, name) in reasons else row[name]
                for name in columns
            ],
            sort_keys=True,
        )
        for row in rows
    )
    after = Counter(
        json.dumps([row[renamed.get(name, name)] for name in columns], sort_keys=True)
        for row in present
    )
    missing = before - after
    return [f"{table}: {missing.total()} rows, such as {min(missing)[:300]}"] if missing else []


def _as_reason(text: str) -> dict[str, Any]:
    """The form in which the text of an earlier version is stored now."""
    return earlier_reason(text) or ({"detail": text} if text else {})


def test_the_migrated_database_is_what_the_models_say(installation: Upgraded) -> None:
    call_command("migrate", "--check", verbosity=0)
    call_command("check", "--fail-level", "WARNING", "--database", "default")


def test_recorded_runs_are_those_of_present_controllers(installation: Upgraded) -> None:
    names = set(ControllerState.objects.values_list("name", flat=True))
    assert len(names) == INSTALLATION["rows"]["persistence_loop_state"]
    assert names <= set(controller_intervals())


def test_alert_rules_are_those_of_the_earlier_version_under_present_names(
    installation: Upgraded,
) -> None:
    rules = {rule.name: rule for rule in AlertRule.objects.all()}
    assert len(rules) == INSTALLATION["rows"]["monitoring_alertrule"]
    assert {rule.name for rule in DEFAULTS} <= set(rules)
    assert rules["controller-late"].document["measure"] == "controllers.unhealthy"
    assert all(alert_rule_spec_of(rule).name == name for name, rule in rules.items())


def test_an_audit_entry_is_found_by_the_present_name_of_its_action(
    installation: Upgraded, administrator: User, client: Client
) -> None:
    client.force_login(administrator)
    found = client.get("/audit", {"action": "pipeline.approve_anyway"}).context["rows"]
    assert [entry["audit_message"] for entry in found] == [
        "admin approved the pipeline sums, whole way despite its failed gate: the base is meant to be bad"
    ]


def test_every_page_that_links_lead_to_opens(
    installation: Upgraded, administrator: User, client: Client
) -> None:
    client.force_login(administrator)
    opened, failed = {""}, []
    queue = ["/"]
    for path in queue:
        # One page of each kind: the first to which a link leads.
        kind = resolve(path.partition("?")[0]).view_name
        if kind in opened:
            continue
        opened.add(kind)
        response = client.get(path)
        if response.status_code not in (200, 302):
            failed.append(f"{path} ({kind}): {response.status_code}")
        queue += [link for link in _links(response.content) if link not in queue]
    assert failed == []
    for uid in (
        INSTALLATION["running"]["job"],
        INSTALLATION["running"]["pipeline"],
        INSTALLATION["deployment"]["uid"],
    ):
        page = min((path for path in queue if uid in path), key=len)
        assert client.get(page).status_code == 200
    assert len(opened) > 80


def _links(content: bytes) -> Iterator[str]:
    for link in _LINK.findall(content.decode(errors="replace")):
        path = link.replace("&amp;", "&")
        if not _NO_PAGES.search(path):
            yield path


def test_rest_lists_and_their_first_objects_open_with_a_token_of_the_earlier_version(
    installation: Upgraded, client: Client
) -> None:
    bearer = {"authorization": f"Bearer {INSTALLATION['token']}"}
    schema = SchemaGenerator().get_schema(public=True)
    lists = [
        path for path, methods in schema["paths"].items() if "get" in methods and "{" not in path
    ]
    failed, objects = [], 0
    for path in lists:
        response = client.get(path, headers=bearer)
        if response.status_code != 200:
            failed.append(f"{path}: {response.status_code} {response.content[:200]!r}")
            continue
        content = response.json() if "json" in response.headers["Content-Type"] else {}
        found = content.get("results") if isinstance(content, dict) else None
        if found and "uid" in found[0] and "get" in schema["paths"].get(f"{path}/{{uid}}", ()):
            objects += 1
            detail = client.get(f"{path}/{found[0]['uid']}", headers=bearer)
            if detail.status_code != 200:
                failed.append(f"{path}/{{uid}}: {detail.status_code} {detail.content[:200]!r}")
    assert failed == []
    assert len(lists) > 40
    assert objects > 25


def test_what_was_encrypted_by_the_earlier_version_is_decrypted(installation: Upgraded) -> None:
    secrets = INSTALLATION["encrypted"]
    webhook = Webhook.objects.get(name="chat of the team")
    receiver = AlertReceiver.objects.get(name="night shift")
    variables = SecretVariable.objects.filter(name="HUB_TOKEN").exclude(value=None)
    assert decrypt(webhook.secret).decode() == secrets["webhook"]
    assert receiver.secret is not None
    assert decrypt(receiver.secret).decode() == secrets["receiver"]
    found = {decrypt(variable.value).decode() for variable in variables if variable.value}
    assert found == {secrets["job_variable"]}


def test_a_session_and_a_password_of_the_earlier_version_still_sign_in(
    installation: Upgraded, client: Client, settings: Settings
) -> None:
    client.cookies[configured.SESSION_COOKIE_NAME] = INSTALLATION["session"]
    assert client.get("/").status_code == 200
    settings.PASSWORD_HASHERS = base.PASSWORD_HASHERS
    stranger = Client()
    assert stranger.get("/").status_code == 302
    sent = {"username": "admin", "password": INSTALLATION["secrets"]["admin_password"]}
    assert stranger.post("/login", sent).status_code == 302
    assert stranger.get("/").status_code == 200


def test_starting_the_product_creates_nothing_a_second_time_and_completes_the_catalog(
    installation: Upgraded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NINEFOLD_ADMIN_PASSWORD", "another")
    before = [kind.objects.count() for kind in (User, Job, ModelVersion, Cluster, Node, Card)]
    assert CatalogModel.objects.count() == INSTALLATION["rows"]["registry_catalogmodel"]
    call_command("bootstrap", verbosity=0)
    assert [
        kind.objects.count() for kind in (User, Job, ModelVersion, Cluster, Node, Card)
    ] == before
    assert CatalogModel.objects.count() > 100
    assert Cluster.objects.exclude(error="").count() == 0


def test_every_job_can_still_be_rendered(installation: Upgraded) -> None:
    refused = []
    for job in Job.objects.exclude(kind="script"):
        chip = adapter_registry.all_chips()[job.chips[0]]
        rendered = compare_launches_of_job(job, chips=(chip, chip))
        refused += [f"{job.name}: {finding.message}" for finding in rendered.findings[0]]
    assert refused == []
