"""Deployments."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.serving.models import Deployment, Revision
from apps.serving.services import deployments as services
from controlplane.domain.serving.lifecycle import DeploymentEvent
from tests.functional.sample_rows import FilledCompany

HTMX = {"HX-Request": "true"}


def form_of(filled: FilledCompany, **changes: str) -> dict[str, str]:
    return {
        "team": filled.team.uid,
        "model_version": filled.tuned.uid,
        "name": "fresh",
        "replicas": "2",
        "chip": "cpu",
        "cards": "1",
        **changes,
    }


def stopped(deployment: Deployment) -> Deployment:
    deployment.refresh_from_db()
    for event in (DeploymentEvent.STOP, DeploymentEvent.CONFIRM):
        services.deployment_transition(deployment, event, at=timezone.now(), reason="stopped")
    return deployment


def test_plain_form_creates_a_deployment(browser: Client, filled: FilledCompany) -> None:
    response = browser.post("/deployments/new", form_of(filled))
    created = Deployment.objects.get(name="fresh")
    assert response["Location"] == f"/deployments/{created.uid}"
    assert created.replica_count == 2


def test_a_taken_name_is_refused_beside_the_field(browser: Client, filled: FilledCompany) -> None:
    response = browser.post("/deployments/new", form_of(filled, name="parcels"))
    assert response.status_code == 422
    assert (
        "is already in use; model names are unique across the company"
        in response.context["form"].errors["name"][0]
    )


def test_a_viewer_may_not_deploy(viewer: Client, filled: FilledCompany) -> None:
    assert viewer.post("/deployments/new", form_of(filled)).status_code == 403
    assert viewer.post(f"/deployments/of/{filled.tuned.uid}").status_code == 403


def test_a_replica_in_back_off_shows_its_crashes_and_its_next_start(
    browser: Client, filled: FilledCompany
) -> None:
    text = browser.get(f"/deployments/{filled.degraded.uid}").text
    assert 'data-state="backoff"' in text
    assert "Next start" in text
    assert "It keeps its cards until then." in text
    assert "out of memory" in text


def test_deployment_page_polls_until_state_is_settled(
    browser: Client, filled: FilledCompany
) -> None:
    moving = browser.get(f"/deployments/{filled.degraded.uid}", headers=HTMX)
    assert moving.status_code == 200
    settled = browser.get(f"/deployments/{filled.ready.uid}", headers=HTMX)
    assert settled.status_code == 286
    assert "<html" not in settled.text


def test_the_examples_name_the_gateway_and_the_deployment(
    browser: Client, filled: FilledCompany, settings: Settings
) -> None:
    settings.NINEFOLD_GATEWAY_URL = "https://models.example"
    text = browser.get(f"/deployments/{filled.ready.uid}").text
    assert "curl https://models.example/v1/chat/completions" in text
    assert "<dt>Operations</dt><dd>chat, completions, responses</dd>" in text
    assert "parcels" in text


def test_scaling_keeps_to_its_bounds(browser: Client, filled: FilledCompany) -> None:
    address = f"/deployments/{filled.ready.uid}/scale"
    browser.post(address, {"replicas": "3"})
    filled.ready.refresh_from_db()
    assert filled.ready.replica_count == 3
    assert "must be 1 to 64" in browser.post(address, {"replicas": "65"}, follow=True).text
    assert "whole number" in browser.post(address, {"replicas": "many"}, follow=True).text


def test_a_new_revision_begins_with_the_fields_of_the_last(
    browser: Client, filled: FilledCompany
) -> None:
    address = f"/deployments/{filled.ready.uid}/revise"
    assert f'value="{filled.tuned.uid}" selected' in browser.get(address).text
    form = {"model_version": filled.base.uid, "chip": "cpu", "cards": "1"}
    browser.post(address, form)
    newest = Revision.objects.filter(deployment=filled.ready).latest("number")
    assert newest.model_version == filled.base


def test_stopping_twice_is_a_message(browser: Client, filled: FilledCompany) -> None:
    address = f"/deployments/{filled.ready.uid}/stop"
    assert "is stopping" in browser.post(address, follow=True).text
    assert "cannot stop" in browser.post(address, follow=True).text


def test_a_stopped_deployment_is_started_again(browser: Client, filled: FilledCompany) -> None:
    stopped(filled.ready)
    browser.post(f"/deployments/{filled.ready.uid}/start")
    filled.ready.refresh_from_db()
    assert filled.ready.state == "starting"


def test_deleting_needs_the_name_typed(browser: Client, filled: FilledCompany) -> None:
    page = f"/deployments/{filled.ready.uid}"
    assert "Not deleted" in browser.post(f"{page}/delete", {"name": "parcel"}, follow=True).text
    assert (
        "is being deleted" in browser.post(f"{page}/delete", {"name": "parcels"}, follow=True).text
    )
    assert "The deployment is being deleted." in browser.get(page).text
    services.deployment_confirm_stopped(deployment=filled.ready, at=timezone.now())
    assert browser.get(page).status_code == 404


def test_a_stopped_deployment_is_deleted_at_once(browser: Client, filled: FilledCompany) -> None:
    stopped(filled.ready)
    browser.post(f"/deployments/{filled.ready.uid}/delete", {"name": "parcels"})
    assert browser.get(f"/deployments/{filled.ready.uid}").status_code == 404


def test_a_rollout_is_paused_resumed_and_undone(browser: Client, filled: FilledCompany) -> None:
    page = f"/deployments/{filled.ready.uid}"
    form = {"model_version": filled.base.uid, "chip": "cpu", "cards": "1"}
    browser.post(f"{page}/rollout/pause")
    assert "Rollouts are paused." in browser.get(page).text
    browser.post(f"{page}/revise", {**form, "max_surge": "50%", "max_unavailable": "0"})
    text = browser.get(page).text
    assert "The rollout of revision 2 is paused" in text
    assert "50%" in text
    browser.post(f"{page}/rollout/resume")
    assert "0 of 1 replicas ready" in browser.get(page).text
    assert "Rolling back to revision 1." in browser.post(f"{page}/rollout/undo", follow=True).text
    assert (
        "The rollout of revision 2 was undone by ada. Revision 1 serves." in browser.get(page).text
    )
    both = {"max_surge": "0", "max_unavailable": "0"}
    wrong = browser.post(f"{page}/revise/check", {**form, **both}).text
    assert "may not be 0 when max_surge is 0" in wrong


@pytest.mark.parametrize("action", ["scale", "stop", "start", "delete"])
def test_actions_need_the_role_the_team_and_a_post(
    browser: Client, viewer: Client, outsider: Client, filled: FilledCompany, action: str
) -> None:
    address = f"/deployments/{filled.ready.uid}/{action}"
    assert browser.get(address).status_code == 405
    assert viewer.post(address).status_code == 403
    assert outsider.post(address).status_code == 404


def test_fleet_shows_workloads_only_to_their_team(
    browser: Client, outsider: Client, filled: FilledCompany
) -> None:
    link = f"/jobs/{filled.running.uid}"
    assert link in browser.get("/fleet").text
    hidden = outsider.get("/fleet").text
    assert link not in hidden
    assert "team maps" in hidden
