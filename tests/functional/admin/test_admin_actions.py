"""Admin actions use the services and write audit events."""

from __future__ import annotations

from datetime import UTC, datetime

from django.test import Client

from apps.accounts.models import (
    AuditEntry,
    PersonalToken,
)
from apps.fleet.models import Node
from apps.jobs.models import Job
from apps.models.models import ModelVersion
from apps.monitoring.services.isolations import isolations_request
from apps.serving.models import ApiKey, Deployment, GatewaySnapshot
from tests.functional.admin.conftest import LivedIn
from tests.functional.admin.pages import run_action


def test_jobs_are_cancelled_and_retried(lived_in: LivedIn, browser: Client) -> None:
    job = lived_in.running
    assert run_action(browser, Job, "retry", job) == [
        "tune the parser: a job that is running cannot retry"
    ]
    assert run_action(browser, Job, "cancel", job) == ["tune the parser: is being cancelled."]
    job.refresh_from_db()
    assert job.cancel_requested_by == "boss"
    entry = AuditEntry.objects.get(action="job.cancel")
    assert (entry.actor, entry.object_uid) == (lived_in.boss, job.uid)

    lived_in.company.turn_jobs()
    lived_in.company.turn_jobs()
    assert run_action(browser, Job, "retry", job) == ["tune the parser: waits for cards again."]
    job.refresh_from_db()
    assert job.state == "waiting"


def test_a_deployment_is_stopped(lived_in: LivedIn, browser: Client) -> None:
    assert run_action(browser, Deployment, "stop", lived_in.deployment) == [
        "parser: is being stopped."
    ]
    assert (
        "a deployment that is stopping cannot stop"
        in run_action(browser, Deployment, "stop", lived_in.deployment)[-1]
    )
    assert AuditEntry.objects.filter(action="deployment.stop").count() == 1


def test_keys_and_tokens_are_revoked(lived_in: LivedIn, browser: Client) -> None:
    before = GatewaySnapshot.objects.latest("version")
    run_action(browser, ApiKey, "revoke", lived_in.key)
    run_action(browser, PersonalToken, "revoke", lived_in.token)

    lived_in.key.refresh_from_db()
    lived_in.token.refresh_from_db()
    assert lived_in.key.revoked_at is not None
    assert lived_in.token.revoked_at is not None
    assert GatewaySnapshot.objects.latest("version").version > before.version
    actions = AuditEntry.objects.filter(action__endswith=".revoke").values_list("action", flat=True)
    assert set(actions) == {"key.revoke", "token.revoke"}


def test_a_node_is_cordoned_and_uncordoned_with_audit_events(
    lived_in: LivedIn, browser: Client
) -> None:
    node = Node.objects.get()
    assert run_action(browser, Node, "cordon", node) == ["1 of 1 nodes changed; all are cordoned."]
    run_action(browser, Node, "cordon", node)
    node.refresh_from_db()
    assert node.cordoned
    run_action(browser, Node, "uncordon", node)
    node.refresh_from_db()
    assert not node.cordoned
    actions = AuditEntry.objects.filter(object_uid=node.uid).order_by("id")
    assert [entry.action for entry in actions] == ["node.cordon", "node.uncordon"]


def test_an_isolated_node_cannot_be_uncordoned(lived_in: LivedIn, browser: Client) -> None:
    node = Node.objects.get()
    began_at = datetime(2030, 5, 1, 12, 30, tzinfo=UTC)
    isolations_request(nodes=[node.uid], reason="new fans", actor=lived_in.boss, at=began_at)

    refusal, rest = run_action(browser, Node, "uncordon", node)

    assert refusal == (
        f"node {node} has been isolated since 2030-05-01 12:30 UTC; return the "
        "whole node to service instead"
    )
    assert rest == "0 of 1 nodes changed; all others are uncordoned."
    node.refresh_from_db()
    assert node.cordoned


def test_a_failed_import_can_be_retried(lived_in: LivedIn, browser: Client) -> None:
    broken = ModelVersion.objects.get(number=99)
    assert run_action(browser, ModelVersion, "retry", broken) == [
        "tiny v99: its import is tried again."
    ]
    broken.refresh_from_db()
    assert broken.state == "importing"
    assert "cannot retry" in run_action(browser, ModelVersion, "retry", lived_in.company.model)[-1]
