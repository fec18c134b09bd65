"""The internal API of gateways."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from apps.serving.models import Gateway, GatewayCall, UsageBatch
from apps.serving.services import gateways
from gateway.snapshots import verify_and_parse_snapshot
from tests.functional.api.callers import API, problem, wrong_fields
from tests.functional.api.test_serving import deploy, record, serve
from tests.integration.company import Company


def gateway(*, token: str | None = None, name: str = "g1") -> APIClient:
    client = APIClient()
    bearer = settings.NINEFOLD_GATEWAY_TOKEN if token is None else token
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {bearer}", HTTP_X_NINEFOLD_GATEWAY=name)
    return client


def poll(client: APIClient, *, after: int = 0, wait: int = 0) -> Any:
    return client.get(f"/internal/gateway/snapshot?after={after}&wait={wait}")


def test_a_snapshot_is_signed_and_the_gateway_reads_it(
    company: Company, engineer: APIClient
) -> None:
    deploy(engineer, company)
    serve(company)
    key = engineer.post(f"{API}/keys", {"name": "shop"}).json()
    answer = poll(gateway())
    signature = answer["X-Ninefold-Signature"]
    token = settings.NINEFOLD_GATEWAY_TOKEN
    assert signature == hmac.new(token.encode(), answer.content, hashlib.sha256).hexdigest()
    snapshot = verify_and_parse_snapshot(answer.content, signature=signature, token=token)
    assert [route.name for route in snapshot.routes] == ["address-parser"]
    assert snapshot.routes[0].backends[0].endpoints[0].url.startswith("http://")
    assert [each.uid for each in snapshot.keys] == [key["uid"]]
    assert snapshot.keys[0].digest == hashlib.sha256(key["text"].encode()).hexdigest()


def test_nothing_newer_is_304_without_a_body(company: Company) -> None:
    version = poll(gateway()).json()["version"]
    answer = poll(gateway(), after=version)
    assert (answer.status_code, answer.content) == (304, b"")
    seen = Gateway.objects.get(name="g1")
    assert (seen.version, timezone.now() - seen.last_seen_at < timedelta(minutes=1)) == (
        version,
        True,
    )


def test_a_poll_reports_open_requests_of_draining_replicas(company: Company) -> None:
    def report(text: str | None) -> Any:
        header = {} if text is None else {"X-Ninefold-Draining": text}
        return gateway().get("/internal/gateway/snapshot", headers=header)

    for text, stored in (('{"replica": 2}', {"replica": 2}), ("{}", {}), (None, {})):
        assert report(text).status_code == 200
        assert Gateway.objects.get(name="g1").draining_requests == stored
    for invalid in ("{", "[1]", '{"replica": "two"}'):
        assert "X-Ninefold-Draining" in wrong_fields(report(invalid))


def test_a_first_poll_need_not_wait_for_a_turn_of_the_loop(company: Company) -> None:
    assert poll(gateway()).status_code == 200


def test_a_waiting_poll_wakes_up_when_a_key_is_made(committed_company: Company) -> None:
    version = poll(gateway()).json()["version"]
    answers: list[tuple[Any, float]] = []

    def wait() -> None:
        started = time.monotonic()
        try:
            answers.append((poll(gateway(), after=version, wait=20), time.monotonic() - started))
        finally:
            connection.close()

    waiting = threading.Thread(target=wait)
    waiting.start()
    gateways.api_key_create(
        actor=committed_company.engineer,
        team=committed_company.team,
        name="shop",
        at=timezone.now(),
    )
    waiting.join(timeout=15)
    answer, took = answers[0]
    assert (answer.status_code, len(answer.json()["keys"])) == (200, 1)
    assert took < 10


@pytest.mark.django_db
def test_only_gateways_are_let_in() -> None:
    for token in ("", "wrong", "töken"):
        problem(poll(gateway(token=token)), 401, "authentication-failed")
        refused = gateway(token=token).post("/internal/gateway/usage", {})
        problem(refused, 401, "authentication-failed")


def test_a_person_is_no_gateway(engineer: APIClient) -> None:
    answer = engineer.get("/internal/gateway/snapshot", headers={"X-Ninefold-Gateway": "g1"})
    problem(answer, 401, "authentication-failed")


@pytest.mark.django_db
def test_a_gateway_says_who_it_is_and_asks_for_what_there_is() -> None:
    assert "X-Ninefold-Gateway" in wrong_fields(poll(gateway(name="")))
    assert "wait" in wrong_fields(poll(gateway(), wait=3600))
    assert "after" in wrong_fields(poll(gateway(), after=-1))


def test_an_old_snapshot_is_issued_anew(company: Company) -> None:
    version = poll(gateway()).json()["version"]
    gateways.gateway_snapshot_publish(at=timezone.now() + gateways.REISSUE_AFTER)
    assert poll(gateway(), after=version).json()["version"] > version


def test_usage_is_counted_once_however_often_it_is_sent(
    company: Company, engineer: APIClient
) -> None:
    key = engineer.post(f"{API}/keys", {"name": "shop"}).json()["uid"]
    batch = {
        "gateway": "g1",
        "sequence": 17,
        "records": [record(key, timezone.now()), record("0" * 32, timezone.now())],
    }
    answers = [gateway().post("/internal/gateway/usage", batch) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert [answer.json()["counted"] for answer in answers] == [True, False, False]
    assert GatewayCall.objects.count() == 2
    assert engineer.get(f"{API}/usage/totals").json()["calls"] == 1
    other = gateway(name="g2").post("/internal/gateway/usage", {**batch, "gateway": "g2"})
    assert other.json()["counted"] is True


@pytest.mark.django_db
def test_usage_of_another_form_is_refused_whole() -> None:
    good = record("0" * 32, timezone.now())
    for wrong in (
        {"prompt_tokens": -1},
        {"at": "noon"},
        {"status": "ok"},
        {"route": "x" * 81},
        {"surprise": 1},
    ):
        batch = {"gateway": "g1", "sequence": 1, "records": [good, {**good, **wrong}]}
        refused = gateway().post("/internal/gateway/usage", batch)
        field = next(iter(wrong))
        assert any(field in name for name in wrong_fields(refused)), json.dumps(wrong)
    posed = {"gateway": "g2", "sequence": 1, "records": [good]}
    assert "gateway" in wrong_fields(gateway().post("/internal/gateway/usage", posed))
    assert not UsageBatch.objects.exists()
