"""A stored credential goes to the scheme, host and port that it was given for, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from apps.fleet.models import Cluster
from apps.models.services.hub_imports import RangeDownloader
from apps.notifications.models import Webhook
from apps.telemetry.models import Source
from controlplane.adapters.model_hubs import HuggingFaceHub
from controlplane.adapters.outbound_http import HttpOutbound
from controlplane.domain.common.permissions import Scope, TeamRole
from controlplane.domain.outbound.egress import EgressPolicy, is_same_origin
from controlplane.persistence.encryption import decrypt
from controlplane.ports.model_hubs import HubUnreachable
from tests import factories
from tests.contract.web_servers import WebServer, web_server
from tests.functional.accounts.conftest import browser
from tests.functional.api.callers import API, caller, problem

OWN = "http://127.0.0.1:9/metrics"
ELSEWHERE = (
    "https://127.0.0.1:9/metrics",
    "http://127.0.0.2:9/metrics",
    "http://127.0.0.1:10/metrics",
)


def test_scheme_host_and_port_are_compared_as_they_are_called() -> None:
    wrong: list[tuple[object, object]] = []
    for before, after, stays in (
        ("https://a.example/x", "https://A.example:443/y?z=1", True),
        ("https://a.example./x", "https://a.example/x", True),
        ("http://[::1]/", "http://[0:0::1]:80/", True),
        ("https://a.example/", "http://a.example/", False),
        ("https://a.example/", "https://a.example:8443/", False),
        ("https://a.example/", "https://a.example.evil.example/", False),
        ("https://a.example/", "https://evil.example/a.example/", False),
        ({"targets": [{"url": OWN}]}, {"targets": []}, True),
        ({"targets": [{"url": OWN}]}, {"targets": [{"url": OWN}, {"url": ELSEWHERE[1]}]}, False),
        ({"url": "http://{node}:1/"}, {"url": "http://{node}.evil.example:1/"}, False),
        ({"vendor": "nvidia"}, {"vendor": "ascend"}, True),
    ):
        if is_same_origin(before=before, after=after) is not stays:
            wrong.append((before, after))
    assert wrong == []


@pytest.fixture
def cluster(db: None, settings: Settings) -> Cluster:
    settings.NINEFOLD_TELEMETRY = EgressPolicy.parse(
        allow=["127.0.0.0/8"], schemes=["http", "https"], ports=range(1, 65536)
    )
    return factories.cluster(name="east")


def options(*urls: str) -> dict[str, Any]:
    return {"vendor": "nvidia", "targets": [{"url": url} for url in urls]}


def token_of(source: Source) -> str:
    source.refresh_from_db()
    return decrypt(source.credential).decode() if source.credential else ""


def test_the_token_of_a_metric_source_is_given_again_when_the_origin_changes(
    cluster: Cluster,
) -> None:
    client = caller(factories.user("olga", operator=True), Scope.ADMIN)
    given = {"name": "dcgm", "cluster": cluster.uid, "kind": "exporter", "token": "s3cret"}
    created = client.post(f"{API}/telemetry-sources", {**given, "options": options(OWN)})
    source = Source.objects.get()
    address = f"{API}/telemetry-sources/{created.json()['uid']}"
    for url in ELSEWHERE:
        for changed in (options(url), options(OWN, url)):
            refused = problem(client.patch(address, {"options": changed}), 422, "source-refused")
            assert "the host of the URL has changed; enter the credential again" in str(refused)
            assert refused["errors"][0]["field"] == "token"
    source.refresh_from_db()
    assert source.options == options(OWN)
    assert token_of(source) == "s3cret"
    path = options("http://127.0.0.1:9/other")
    assert client.patch(address, {"options": path}).status_code == 200
    assert token_of(source) == "s3cret"
    moved = {"options": options(ELSEWHERE[1]), "token": "another"}
    assert client.patch(address, moved).status_code == 200
    assert token_of(source) == "another"
    assert client.patch(address, {"options": options(OWN), "token": ""}).status_code == 200
    assert token_of(source) == ""
    assert client.patch(address, {"options": options(ELSEWHERE[2])}).status_code == 200


def test_the_page_of_a_metric_source_says_so_at_the_token(cluster: Cluster) -> None:
    operator = factories.user("olga", operator=True)
    source = factories.source(cluster)
    caller(operator).patch(
        f"{API}/telemetry-sources/{source.uid}", {"options": options(OWN), "token": "s3cret"}
    )
    client: Client = browser(operator)
    page = f"/fleet/sources/{source.uid}/change"
    form = {"vendor": "nvidia", "targets": ELSEWHERE[1], "every": "10"}
    answer = client.post(page, form)
    assert answer.status_code == 422
    assert "enter the credential again" in answer.text
    assert token_of(source) == "s3cret"
    assert client.post(page, {**form, "token": "another"}).status_code == 302
    assert token_of(source) == "another"


@pytest.mark.django_db
def test_a_webhook_that_leads_to_another_host_gets_a_new_secret() -> None:
    team = factories.team()
    lead = factories.user("lead", team=team, role=TeamRole.ADMINISTRATOR)
    client = caller(lead, Scope.ADMIN)
    first = "https://hooks.example.com/a"
    given = {"team": team.uid, "name": "hook", "url": first, "kinds": ["job.failed"]}
    created = client.post(f"{API}/webhooks", given).json()
    address = f"{API}/webhooks/{created['uid']}"

    def stored_secret() -> str:
        return decrypt(Webhook.objects.get().secret).decode()

    same = client.patch(address, {"url": "https://HOOKS.example.com:443/b"}).json()
    assert same["secret"] == ""
    assert stored_secret() == created["secret"]
    moved = client.patch(address, {"url": "https://other.example.com/b"}).json()
    assert moved["secret"] == stored_secret() != created["secret"]
    form = {"url": first, "kinds": ["job.failed"]}
    shown = browser(lead).post(f"/webhooks/{created['uid']}/change", form)
    assert stored_secret() in shown.text
    assert stored_secret() != moved["secret"]


@pytest.fixture
def outbound() -> HttpOutbound:
    policy = EgressPolicy.parse(allow=["127.0.0.0/8"], schemes=["http"], ports=range(1, 65536))
    return HttpOutbound(policy=policy)


def tokens(server: WebServer) -> list[str | None]:
    return [request.headers.get("authorization") for request in server.requests]


def test_a_hub_that_names_its_next_page_on_another_host_gets_no_token_there(
    outbound: HttpOutbound,
) -> None:
    commit = "a" * 40
    with web_server() as hub, web_server() as other:
        model = "/api/models/o/m"
        link = {"Link": f'<http://127.0.0.1:{other.port}/next>; rel="next"'}
        hub.answers[f"{model}/revision/main"] = (200, {}, f'{{"sha": "{commit}"}}'.encode())
        hub.answers[f"{model}/tree/{commit}?recursive=true"] = (200, link, b"[]")
        other.answers["/next"] = (200, {}, b"[]")

        def listed(token: str) -> None:
            HuggingFaceHub().listing(
                outbound,
                address=f"http://127.0.0.1:{hub.port}",
                repository="o/m",
                revision="main",
                token=token,
            )

        with pytest.raises(HubUnreachable, match="the token is not sent there"):
            listed("s3cret")
        assert tokens(hub) == ["Bearer s3cret"] * 2
        assert tokens(other) == []
        listed("")
        assert tokens(other) == [None]


def test_a_redirect_to_another_port_takes_no_token_along(outbound: HttpOutbound) -> None:
    with web_server() as hub, web_server() as other:
        place = {"Location": f"http://127.0.0.1:{other.port}/blob"}
        hub.answers["/file"] = (302, place, b"")
        other.answers["/blob"] = (206, {}, b"abcd")
        source = RangeDownloader(
            outbound=outbound,
            url=f"http://127.0.0.1:{hub.port}/file",
            headers={"Authorization": "Bearer s3cret"},
            size=4,
        )
        assert source.next_chunk(0) == b"abcd"
        assert tokens(hub) == ["Bearer s3cret"]
        assert tokens(other) == [None]
