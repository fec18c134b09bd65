"""``ninefold chat``: the key it creates and stores, and a response that is streamed by a real HTTP server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from pytest_django import Settings

from apps.serving.models import ApiKey
from ninefold_client.configuration import configuration_path, load_configuration
from tests import factories
from tests.functional.client.conftest import Ninefold
from tests.integration.company import Company


class StreamingGateway(BaseHTTPRequestHandler):
    """Responds as the gateway does; learns of a new key and of its endpoint with later requests."""

    requests: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.headers["Authorization"], body))
        if len(self.requests) == 1:
            self._send(
                401, "application/json", b'{"error": {"code": "invalid_api_key", "message": "no"}}'
            )
            return
        if len(self.requests) == 2:
            error = {"code": "no_ready_endpoint", "message": "No endpoint is ready."}
            content = json.dumps({"error": error}).encode()
            self._send(503, "application/json", content, retry_after=0)
            return
        parts = ("青海省", " 西宁市")
        events = [{"choices": [{"delta": {"content": part}}]} for part in parts]
        lines = [f"data: {json.dumps(event)}\n\n" for event in events]
        self._send(200, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode())

    def _send(
        self, status: int, content_type: str, content: bytes, *, retry_after: int | None = None
    ) -> None:
        self.send_response(status)
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        """Nothing on standard error."""


@pytest.fixture
def gateway(settings: Settings) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Requests that the gateway got."""
    StreamingGateway.requests.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), StreamingGateway) as server:
        settings.NINEFOLD_GATEWAY_URL = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield StreamingGateway.requests
        server.shutdown()
        thread.join()


def test_a_dialogue_uses_one_stored_key_that_signing_out_deletes(
    signed_in: Ninefold, company: Company, gateway: list[tuple[str, dict[str, Any]]]
) -> None:
    deployment = factories.deployment(
        actor=company.engineer,
        team=company.team,
        queue=company.queue,
        model=company.model,
        name="parcels",
    )
    factories.replica(deployment, cluster=company.cluster_row)

    done = signed_in("chat", "parcels", "-m", "where?", "-m", "and then?", "--max-tokens", "8")
    assert (done.exit_code, done.errors) == (0, "")
    assert done.output == "青海省 西宁市\n" * 2
    assert [len(body["messages"]) for _, body in gateway] == [1, 1, 1, 3]
    assert gateway[-1][1]["model"] == "parcels"
    assert gateway[-1][1]["max_tokens"] == 8

    (key,) = ApiKey.objects.all()
    stored = load_configuration(configuration_path()).contexts["default"].gateway_keys
    assert stored[company.team.uid]["uid"] == key.uid
    assert signed_in("chat", "parcels", text="again\n").output == "青海省 西宁市\n"
    assert {authorization for authorization, _ in gateway} == {
        f"Bearer {stored[company.team.uid]['text']}"
    }
    assert ApiKey.objects.count() == 1
    assert signed_in("logout").exit_code == 0
    key.refresh_from_db()
    assert key.revoked_at is not None
