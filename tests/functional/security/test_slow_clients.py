"""Slow clients (Slowloris, slow POST, slow read) must not stall the web or the gateway."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests
from django.core.cache import cache

from apps.accounts import services as accounts
from apps.fleet.models import Card, Cluster, Node
from apps.telemetry.models import CardMetrics
from apps.telemetry.services.node_tokens import node_token_issue
from controlplane.domain.common.permissions import Scope, TeamRole
from tests import factories
from tests.functional.security.slow_clients import received, slow_clients
from tests.functional.security.web_process import web_process
from tests.integration.gateway.clients import post, user_message
from tests.integration.gateway.conftest import SECRET
from tests.integration.gateway.control_planes import FakeControl
from tests.integration.gateway.processes import GatewayProcess

pytestmark = pytest.mark.slow

MANY = 64
UPLOAD_THREADS = 8
#: A limit on each answer that the product owes while it is attacked; without an attack it takes milliseconds.
WITHIN = 120.0
#: Larger than what the kernel buffers for a connection on both sides.
LARGE_ROWS = 1200
SHORT = {"NINEFOLD_HEADER_SECONDS": "1", "NINEFOLD_CLIENT_GRACE_SECONDS": "1"}


@pytest.fixture
def token(transactional_db: None) -> str:
    """A personal token of an engineer."""
    user = factories.user(team=factories.team(), role=TeamRole.ENGINEER)
    _, text = accounts.token_create(
        user=user, name="test", scopes=frozenset({Scope.ALL}), team=None
    )
    return text


@pytest.fixture
def agent_token(transactional_db: None) -> str:
    cache.clear()
    cluster = Cluster.objects.create(name="east", kind="simulated")
    node = Node.objects.create(cluster=cluster, name="n0")
    Card.objects.create(node=node, index=0, chip="nvidia-h200")
    return node_token_issue(node=node, actor=None)


def row(number: int) -> str:
    return json.dumps({"instruction": f"{number} " + "x" * 10_000, "output": "y"})


def upload(url: str, token: str) -> str:
    """A dataset whose rows are a response of 12 MB; the path of its rows."""
    answer = requests.post(
        f"{url}/api/v1/datasets",
        headers={"Authorization": f"Bearer {token}"},
        data={"name": "orders"},
        files={"file": ("rows.jsonl", "\n".join(map(row, range(LARGE_ROWS))))},
        timeout=WITHIN * 2,
    )
    assert answer.status_code == 201, answer.text
    path = f"/api/v1/dataset-versions/{answer.json()['uid']}/rows?split=train"
    assert len(download(url, path, token).content) > 8_000_000
    return path


def download(url: str, path: str, token: str) -> requests.Response:
    return requests.get(
        f"{url}{path}", headers={"Authorization": f"Bearer {token}"}, timeout=WITHIN * 2
    )


def push(url: str, token: str) -> requests.Response:
    labels = 'gpu="0",UUID="GPU-1b",Hostname="n0"'
    return requests.post(
        f"{url}/api/v1/telemetry/push",
        data=f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 93\n",
        headers={
            "Authorization": f"Bearer {token}",
            "Content-Type": "text/plain; version=0.0.4",
            "X-Ninefold-Sequence": "1",
            "X-Ninefold-At": datetime.now(UTC).isoformat(),
            "X-Ninefold-Vendor": "nvidia",
            "X-Ninefold-Agent": "ninefold-agent/1.0",
        },
        timeout=WITHIN,
    )


def test_the_web_answers_while_64_clients_of_each_kind_are_slow(
    token: str, agent_token: str, tmp_path: Path
) -> None:
    with web_process(tmp_path / "home") as url:
        rows = upload(url, token)
        with slow_clients(url, headers=f"Authorization: Bearer {token}\r\n") as attackers:
            attackers.slow_headers(MANY)
            attackers.slow_bodies("/login", MANY)
            attackers.slow_bodies("/api/v1/telemetry/push", MANY)
            attackers.slow_bodies("/internal/gateway/usage", MANY)
            attackers.slow_readers(rows, MANY)

            assert requests.get(f"{url}/healthz", timeout=WITHIN).status_code == 200
            answer = requests.get(
                f"{url}/api/v1/me", headers={"Authorization": f"Bearer {token}"}, timeout=WITHIN
            )
            assert answer.status_code == 200
            assert push(url, agent_token).json()["taken"] is True
    assert CardMetrics.objects.get().utilization == 93


def test_large_slow_bodies_stall_uploads_only(token: str, tmp_path: Path) -> None:
    with web_process(tmp_path / "home") as url:
        with slow_clients(url, headers=f"Authorization: Bearer {token}\r\n") as attackers:
            # More than is read ahead, so that each takes a thread or waits for one.
            attackers.slow_uploads("/api/v1/datasets", 2 * UPLOAD_THREADS)
            assert requests.get(f"{url}/healthz", timeout=WITHIN).status_code == 200
            answer = requests.get(
                f"{url}/api/v1/me", headers={"Authorization": f"Bearer {token}"}, timeout=WITHIN
            )
            assert answer.status_code == 200
        # The attackers have left: uploads go on.
        upload(url, token)


def test_the_web_closes_connections_of_slow_clients(token: str, tmp_path: Path) -> None:
    with web_process(tmp_path / "home", **SHORT) as url, slow_clients(url) as attackers:
        slow = attackers.slow_headers(1) + attackers.slow_bodies("/login", 1)
        idle = attackers.connect(b"")
        for client in slow:
            assert received(client).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"HTTP/1.1 408" in received(idle)


def test_responses_that_nobody_reads_are_given_up(token: str, tmp_path: Path) -> None:
    headers = f"Authorization: Bearer {token}\r\n"
    with web_process(tmp_path / "home", **SHORT, NINEFOLD_CLIENT_MIN_RATE="1000000") as url:
        rows = upload(url, token)
        with slow_clients(url, headers=headers) as attackers:
            attackers.slow_readers(rows, MANY)
            deadline = time.monotonic() + WITHIN * 2
            # 408: on a busy machine the download itself may be slower than the least rate.
            while (answer := download(url, rows, token)).status_code in (408, 503):
                assert time.monotonic() < deadline, "no stream became free"
                time.sleep(0.2)
    assert answer.status_code == 200


def test_an_address_has_at_most_its_number_of_connections(
    transactional_db: None, tmp_path: Path
) -> None:
    cap = {"NINEFOLD_CONNECTIONS_PER_ADDRESS": "3"}
    with web_process(tmp_path / "home", **cap) as url, slow_clients(url) as attackers:
        for _ in range(3):
            attackers.connect(b"", source="127.0.0.2")
        refused = attackers.connect(b"", source="127.0.0.2")
        assert received(refused).startswith(b"HTTP/1.1 503 ")
        # Another address, and this machine's own.
        request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        for source in ("127.0.0.3", "127.0.0.1"):
            assert received(attackers.connect(request, source=source)).startswith(b"HTTP/1.1 200 ")


def test_headers_are_bounded_in_size(transactional_db: None, tmp_path: Path) -> None:
    with web_process(tmp_path / "home") as url, slow_clients(url) as attackers:
        flood = b"GET / HTTP/1.1\r\n" + b"".join(
            b"X-%d: %s\r\n" % (n, b"x" * 100) for n in range(1000)
        )
        assert received(attackers.connect(flood)).startswith(b"HTTP/1.1 431 ")


def test_the_gateway_answers_while_64_clients_of_each_kind_are_slow(
    stopped_gateway: GatewayProcess,
) -> None:
    stopped_gateway.start()
    long = json.dumps({"model": "parser", "messages": user_message("words 100000")})
    headers = f"Authorization: Bearer {SECRET}\r\n"
    with slow_clients(stopped_gateway.url, headers=headers) as attackers:
        attackers.slow_headers(MANY)
        attackers.slow_bodies("/v1/chat/completions", MANY)
        attackers.slow_readers("/v1/chat/completions", MANY, body=long.encode())
        assert stopped_gateway.status("/healthz") == 200
        status, _, _ = post(stopped_gateway, {"model": "parser", "messages": user_message("hi")})
        assert status == 200


def test_the_gateway_closes_connections_of_slow_clients(
    control: FakeControl,
    tmp_path: Path,
) -> None:
    process = GatewayProcess(home=tmp_path, control_url=control.url, **SHORT)
    process.start()
    try:
        headers = f"Authorization: Bearer {SECRET}\r\n"
        with slow_clients(process.url, headers=headers) as attackers:
            slow = attackers.slow_headers(1)
            slow += attackers.slow_bodies("/v1/chat/completions", 1)
            for client in slow:
                assert received(client).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    finally:
        process.stop()
