"""Deployments, keys and the playground."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.services import digest_of
from apps.serving.models import ApiKey, Deployment, Revision
from apps.serving.services import deployments as services
from controlplane.domain.serving import DeploymentEvent
from tests.functional.pages.conftest import Filled

HTMX = {"HX-Request": "true"}


def form_of(filled: Filled, **changes: str) -> dict[str, str]:
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
        services.deployment_move(deployment, event, at=timezone.now(), reason="stopped")
    return deployment


def test_a_plain_form_makes_a_deployment(browser: Client, filled: Filled) -> None:
    response = browser.post("/deployments/new", form_of(filled))
    made = Deployment.objects.get(name="fresh")
    assert response["Location"] == f"/deployments/{made.uid}"
    assert made.replica_count == 2


def test_a_taken_name_is_refused_beside_the_field(browser: Client, filled: Filled) -> None:
    response = browser.post("/deployments/new", form_of(filled, name="parcels"))
    assert response.status_code == 422
    assert "is taken" in response.context["form"].errors["name"][0]


def test_a_viewer_may_not_deploy(viewer: Client, filled: Filled) -> None:
    assert viewer.post("/deployments/new", form_of(filled)).status_code == 403
    assert viewer.post(f"/deployments/of/{filled.tuned.uid}").status_code == 403


def test_a_replica_in_back_off_shows_its_crashes_and_its_next_start(
    browser: Client, filled: Filled
) -> None:
    text = browser.get(f"/deployments/{filled.degraded.uid}").text
    assert 'data-state="backoff"' in text
    assert "Next start" in text
    assert "out of memory" in text


def test_a_deployment_is_polled_until_it_is_settled(browser: Client, filled: Filled) -> None:
    moving = browser.get(f"/deployments/{filled.degraded.uid}", headers=HTMX)
    assert moving.status_code == 200
    settled = browser.get(f"/deployments/{filled.ready.uid}", headers=HTMX)
    assert settled.status_code == 286
    assert "<html" not in settled.text


def test_the_examples_name_the_gateway_and_the_deployment(
    browser: Client, filled: Filled, settings: Settings
) -> None:
    settings.NINEFOLD_GATEWAY_URL = "https://models.example"
    text = browser.get(f"/deployments/{filled.ready.uid}").text
    assert "curl https://models.example/v1/chat/completions" in text
    assert "parcels" in text


def test_scaling_keeps_to_its_bounds(browser: Client, filled: Filled) -> None:
    address = f"/deployments/{filled.ready.uid}/scale"
    browser.post(address, {"replicas": "3"})
    filled.ready.refresh_from_db()
    assert filled.ready.replica_count == 3
    assert "must be 1 to 64" in browser.post(address, {"replicas": "65"}, follow=True).text
    assert "whole number" in browser.post(address, {"replicas": "many"}, follow=True).text


def test_a_new_revision_begins_with_the_fields_of_the_last(browser: Client, filled: Filled) -> None:
    address = f"/deployments/{filled.ready.uid}/revise"
    assert f'value="{filled.tuned.uid}" selected' in browser.get(address).text
    form = {"model_version": filled.base.uid, "chip": "cpu", "cards": "1"}
    browser.post(address, form)
    newest = Revision.objects.filter(deployment=filled.ready).latest("number")
    assert newest.model_version == filled.base


def test_stopping_twice_is_a_message(browser: Client, filled: Filled) -> None:
    address = f"/deployments/{filled.ready.uid}/stop"
    assert "being stopped" in browser.post(address, follow=True).text
    assert "cannot stop" in browser.post(address, follow=True).text


def test_a_stopped_deployment_is_started_again(browser: Client, filled: Filled) -> None:
    stopped(filled.ready)
    browser.post(f"/deployments/{filled.ready.uid}/start")
    filled.ready.refresh_from_db()
    assert filled.ready.state == "starting"


def test_deleting_needs_the_name_typed_and_a_stop_before(browser: Client, filled: Filled) -> None:
    address = f"/deployments/{filled.ready.uid}/delete"
    assert "cannot be deleted" in browser.post(address, {"name": "parcels"}, follow=True).text
    stopped(filled.ready)
    assert "Nothing was deleted" in browser.post(address, {"name": "parcel"}, follow=True).text
    browser.post(address, {"name": "parcels"})
    assert browser.get(f"/deployments/{filled.ready.uid}").status_code == 404


@pytest.mark.parametrize("action", ["scale", "stop", "start", "delete"])
def test_actions_need_the_role_the_team_and_a_post(
    browser: Client, viewer: Client, outsider: Client, filled: Filled, action: str
) -> None:
    address = f"/deployments/{filled.ready.uid}/{action}"
    assert browser.get(address).status_code == 405
    assert viewer.post(address).status_code == 403
    assert outsider.post(address).status_code == 404


def test_a_new_key_is_shown_once(browser: Client, filled: Filled) -> None:
    form = {"team": filled.team.uid, "name": "ci", "expires": "30", "routes": ["parcels"]}
    response = browser.post("/keys/new", form)
    key = ApiKey.objects.get(name="ci")
    assert digest_of(response.context["text"]) == key.digest
    assert key.routes == ["parcels"]
    assert response.context["text"] not in browser.get("/keys").text


def test_a_limit_of_nothing_is_refused(browser: Client, filled: Filled) -> None:
    form = {"team": filled.team.uid, "name": "ci", "expires": "", "concurrency": "0"}
    assert browser.post("/keys/new", form).status_code == 422


def test_a_revoked_key_is_shown_only_when_asked_for(browser: Client, filled: Filled) -> None:
    browser.post(f"/keys/{filled.key.uid}/revoke")
    assert filled.key.prefix not in browser.get("/keys").text
    assert 'data-state="revoked"' in browser.get("/keys?all=1").text


def test_only_the_team_and_its_role_revoke_a_key(
    viewer: Client, outsider: Client, filled: Filled
) -> None:
    assert viewer.post(f"/keys/{filled.key.uid}/revoke").status_code == 403
    assert outsider.post(f"/keys/{filled.key.uid}/revoke").status_code == 404


def test_the_fleet_names_holders_only_to_their_team(
    browser: Client, outsider: Client, filled: Filled
) -> None:
    link = f"/jobs/{filled.running.uid}"
    assert link in browser.get("/fleet").text
    hidden = outsider.get("/fleet").text
    assert link not in hidden
    assert "team maps" in hidden


class Gateway:
    """Answers like the gateway: it hears of a key only at the second request."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.keys.append(self.headers["Authorization"].removeprefix("Bearer "))
                if len(outer.keys) == 1:
                    self._answer(401, "application/json", b'{"error": {"message": "no such key"}}')
                    return
                outer.bodies.append(body)
                if body.get("stream"):
                    content = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n'
                    self._answer(200, "text/event-stream", content)
                else:
                    content = b'{"choices": [{"message": {"content": "hi there"}}]}'
                    self._answer(200, "application/json", content)

            def _answer(self, status: int, kind: str, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_request(self, code: object = "-", size: object = "-") -> None:
                """Nothing: the test looks at what was asked."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def gateway(settings: Settings) -> Iterator[Gateway]:
    found = Gateway()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    settings.NINEFOLD_GATEWAY_URL = found.url
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def ask(client: Client, filled: Filled, body: object) -> Any:
    return client.post(
        f"/playground/{filled.ready.uid}/chat",
        json.dumps(body),
        content_type="application/json",
    )


QUESTION = {"messages": [{"role": "user", "content": "hello"}], "temperature": 0}


def test_the_playground_passes_the_stream_on_under_a_key_of_its_own(
    browser: Client, filled: Filled, gateway: Gateway
) -> None:
    response = ask(browser, filled, {**QUESTION, "model": "another", "n": 5})
    assert response.status_code == 200
    assert response["Content-Type"] == "text/event-stream"
    assert b"".join(response).endswith(b"data: [DONE]\n\n")
    asked = gateway.bodies[0]
    assert asked["model"] == "parcels"
    assert asked["stream_options"] == {"include_usage": True}
    assert "n" not in asked
    key = ApiKey.objects.get(name="playground (ada)")
    assert digest_of(gateway.keys[-1]) == key.digest
    assert key.expires_at is not None


def test_the_playgrounds_key_is_made_once_and_sealed_in_the_session(
    browser: Client, filled: Filled, gateway: Gateway
) -> None:
    for _ in range(2):
        b"".join(ask(browser, filled, QUESTION))
    assert ApiKey.objects.filter(name="playground (ada)").count() == 1
    assert gateway.keys[-1] not in json.dumps(dict(browser.session))


def test_without_scripts_the_answer_is_on_the_page(
    browser: Client, filled: Filled, gateway: Gateway
) -> None:
    form = {"deployment": filled.ready.uid, "message": "hello", "max_tokens": "8"}
    text = browser.post("/playground", form).text
    assert "hi there" in text
    assert gateway.bodies[0]["max_tokens"] == 8


def test_a_gateway_that_is_away_is_said_so(
    browser: Client, filled: Filled, settings: Settings
) -> None:
    settings.NINEFOLD_GATEWAY_URL = "http://127.0.0.1:9"
    response = ask(browser, filled, QUESTION)
    assert response.status_code == 502
    assert "does not answer" in response.json()["error"]["message"]


def test_a_body_that_is_no_json_is_refused(browser: Client, filled: Filled) -> None:
    response = browser.post(
        f"/playground/{filled.ready.uid}/chat", "hello", content_type="application/json"
    )
    assert response.status_code == 400


def test_the_playground_is_for_those_who_may_have_keys(
    viewer: Client, outsider: Client, filled: Filled
) -> None:
    assert ask(viewer, filled, QUESTION).status_code == 403
    assert ask(outsider, filled, QUESTION).status_code == 404
