"""The playground: calls through the gateway with a key that is never shown."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from apps.accounts.services import token_digest
from apps.models.models import ModelVersion
from apps.serving.models import ApiKey, Revision, RevisionAdapter
from tests import factories
from tests.functional.sample_rows import FilledCompany


class FakeGateway:
    """A fake gateway that accepts a new key only at the second request."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        #: The response to every request from the second on, if set.
        self.refusal: tuple[int, bytes] | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.keys.append(self.headers["Authorization"].removeprefix("Bearer "))
                if len(outer.keys) == 1:
                    self._answer(401, "application/json", b'{"error": {"message": "no such key"}}')
                    return
                outer.bodies.append(body)
                if outer.refusal is not None:
                    self._answer(outer.refusal[0], "application/json", outer.refusal[1])
                    return
                if body.get("stream"):
                    content = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n'
                    self._answer(200, "text/event-stream", content)
                else:
                    content = b'{"choices": [{"message": {"content": "hi there"}}]}'
                    self._answer(200, "application/json", content)

            def _answer(self, status: int, kind: str, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Retry-After", "7")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_request(self, code: object = "-", size: object = "-") -> None:
                """Do not log: the tests read the recorded requests."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def gateway(settings: Settings) -> Iterator[FakeGateway]:
    found = FakeGateway()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    settings.NINEFOLD_GATEWAY_URL = found.url
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def complete(client: Client, filled: FilledCompany, body: object) -> Any:
    return client.post(
        f"/playground/{filled.ready.uid}/chat",
        json.dumps(body),
        content_type="application/json",
    )


QUESTION = {"messages": [{"role": "user", "content": "hello"}], "temperature": 0}


def test_the_playground_passes_the_stream_on_under_a_key_of_its_own(
    browser: Client, filled: FilledCompany, gateway: FakeGateway
) -> None:
    response = complete(browser, filled, {**QUESTION, "n": 5})
    assert response.status_code == 200
    assert response["Content-Type"] == "text/event-stream"
    assert b"".join(response).endswith(b"data: [DONE]\n\n")
    asked = gateway.bodies[0]
    assert asked["model"] == "parcels"
    assert asked["stream_options"] == {"include_usage": True}
    assert "n" not in asked
    key = ApiKey.objects.get(name="playground (ada)")
    assert token_digest(gateway.keys[-1]) == key.digest
    assert key.expires_at is not None


def test_the_playground_offers_the_adapters_of_a_deployment(
    browser: Client, filled: FilledCompany, gateway: FakeGateway
) -> None:
    address = f"/playground?deployment={filled.ready.uid}"
    assert 'name="model"' not in browser.get(address).text.partition("</form>")[0]
    newest = Revision.objects.get(deployment=filled.ready)
    RevisionAdapter.objects.create(
        revision=newest, name="parcels-formal", model_version=filled.tuned, rank=8
    )
    page = browser.get(f"{address}&model=parcels-formal").text
    assert '<option value="parcels-formal" selected>' in page
    assert 'data-model="parcels-formal"' in page
    b"".join(complete(browser, filled, {**QUESTION, "model": "parcels-formal"}))
    assert gateway.bodies[-1]["model"] == "parcels-formal"
    form = {"deployment": filled.ready.uid, "model": "parcels-formal", "message": "hello"}
    browser.post("/playground", form)
    assert gateway.bodies[-1]["model"] == "parcels-formal"
    foreign = complete(browser, filled, {**QUESTION, "model": "another"})
    assert foreign.status_code == 404
    assert "it serves parcels, parcels-formal" in foreign.json()["error"]["message"]


def test_playground_key_is_created_once_and_encrypted_in_session(
    browser: Client, filled: FilledCompany, gateway: FakeGateway
) -> None:
    for _ in range(2):
        b"".join(complete(browser, filled, QUESTION))
    assert ApiKey.objects.filter(name="playground (ada)").count() == 1
    assert gateway.keys[-1] not in json.dumps(dict(browser.session))


def test_without_scripts_the_answer_is_on_the_page(
    browser: Client, filled: FilledCompany, gateway: FakeGateway
) -> None:
    form = {"deployment": filled.ready.uid, "message": "hello", "max_tokens": "8"}
    text = browser.post("/playground", form).text
    assert "hi there" in text
    assert gateway.bodies[0]["max_tokens"] == 8


def test_unreachable_gateway_is_reported(
    browser: Client, filled: FilledCompany, settings: Settings
) -> None:
    settings.NINEFOLD_GATEWAY_URL = "http://127.0.0.1:9"
    response = complete(browser, filled, QUESTION)
    assert response.status_code == 502
    assert "cannot be reached" in response.json()["error"]["message"]


def test_a_body_that_is_no_json_is_refused(browser: Client, filled: FilledCompany) -> None:
    response = browser.post(
        f"/playground/{filled.ready.uid}/chat", "hello", content_type="application/json"
    )
    assert response.status_code == 400


def test_the_playground_is_for_those_who_may_have_keys(
    viewer: Client, outsider: Client, filled: FilledCompany
) -> None:
    assert complete(viewer, filled, QUESTION).status_code == 403
    assert complete(outsider, filled, QUESTION).status_code == 404


def test_a_viewer_sees_why_they_may_not_ask(viewer: Client, filled: FilledCompany) -> None:
    text = viewer.get("/playground").text
    assert "does not allow requests" in text
    refused = complete(viewer, filled, QUESTION)
    assert "manage keys" in refused.json()["error"]["message"]
    assert not ApiKey.objects.filter(name__startswith="playground").exists()


def test_playground_key_is_refused_after_role_is_lost(
    browser: Client, filled: FilledCompany, gateway: FakeGateway
) -> None:
    b"".join(complete(browser, filled, QUESTION))
    filled.user.memberships.update(role="viewer")
    asked = len(gateway.keys)
    assert complete(browser, filled, QUESTION).status_code == 403
    assert len(gateway.keys) == asked


def test_the_playgrounds_key_has_limits(
    browser: Client, filled: FilledCompany, gateway: FakeGateway
) -> None:
    b"".join(complete(browser, filled, QUESTION))
    key = ApiKey.objects.get(name="playground (ada)")
    assert key.requests_per_minute == 60
    assert key.concurrency == 4


def test_gateway_error_keeps_status_message_and_retry_after(
    browser: Client, filled: FilledCompany, gateway: FakeGateway
) -> None:
    gateway.refusal = (429, b'{"error": {"message": "too many requests"}}')
    response = complete(browser, filled, QUESTION)
    assert response.status_code == 429
    assert response.json() == {"error": {"message": "too many requests"}}
    assert response["Retry-After"] == "7"


def test_gateway_error_without_json_is_reported(
    browser: Client, filled: FilledCompany, gateway: FakeGateway
) -> None:
    gateway.refusal = (504, b"<html>")
    assert "status 504" in complete(browser, filled, QUESTION).json()["error"]["message"]


def test_the_system_prompt_comes_before_the_question(
    browser: Client, filled: FilledCompany, gateway: FakeGateway
) -> None:
    form = {"deployment": filled.ready.uid, "message": "hello", "system": "Be brief."}
    browser.post("/playground", form)
    assert gateway.bodies[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
    ]


def test_missing_deployment_is_reported(browser: Client, filled: FilledCompany) -> None:
    assert "does not exist" in browser.get("/playground?deployment=gone").text


def test_playground_warns_if_no_replica_is_ready(browser: Client, filled: FilledCompany) -> None:
    text = browser.get(f"/playground?deployment={filled.degraded.uid}").text
    assert "No replica is ready" in text


def test_the_playground_opens_on_a_deployment_that_answers(
    browser: Client, filled: FilledCompany
) -> None:
    """Not on the first by name, which has no replica; ready ones come first in the list."""
    pending = factories.deployment(
        actor=filled.user, team=filled.team, queue=filled.queue, model=filled.base, name="a-new-one"
    )
    context = browser.get("/playground").context
    assert context["chosen"].state == "ready"
    states = [row.state for row in context["deployments"]]
    assert states == sorted(states, key=lambda state: state != "ready")
    assert pending in context["deployments"]


def test_a_deployment_that_does_not_chat_is_not_listed(
    browser: Client, filled: FilledCompany
) -> None:
    embedding = factories.deployment(
        actor=filled.user, team=filled.team, queue=filled.queue, model=filled.base, name="vectors"
    )
    ModelVersion.objects.filter(pk=filled.base.pk).update(architecture="BertModel")
    page = browser.get(f"/playground?deployment={embedding.uid}")
    assert embedding not in page.context["deployments"]
    assert page.context["missing"]
    own = browser.get(f"/deployments/{embedding.uid}").context["blockers"].playground
    assert "serves embeddings" in own
