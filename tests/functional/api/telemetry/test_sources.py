"""Sources and tokens of nodes over REST: for operators, and nothing secret ever comes back."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.fleet.models import Cluster
from apps.monitoring.api.metric_ingestion import MetricSourceChangeSerializer
from apps.monitoring.reconcilers.metric_sources import metric_sources_read
from apps.telemetry.models import NodeToken, Source
from apps.telemetry.services.metric_sources import agent_push_source
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.outbound.egress import EgressPolicy
from tests import factories

pytestmark = pytest.mark.django_db
SOURCES, TOKENS = "/api/v1/telemetry-sources", "/api/v1/node-tokens"


@pytest.fixture(autouse=True)
def loopback_may_be_read(settings: Settings) -> None:
    settings.NINEFOLD_TELEMETRY = EgressPolicy.parse(
        allow=["127.0.0.0/8"], schemes=["http"], ports=range(1, 65536)
    )


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.cluster(name="east")


def client_of(user: User) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


@pytest.fixture
def client() -> APIClient:
    return client_of(
        factories.user("olga", team=factories.team(), role=TeamRole.VIEWER, operator=True)
    )


def body(cluster: Cluster, **changes: Any) -> dict[str, Any]:
    return {
        "name": "dcgm",
        "cluster": cluster.uid,
        "kind": "exporter",
        "options": {"vendor": "nvidia", "targets": [{"url": "http://127.0.0.1:9/metrics"}]},
        "token": "s3cret",
        **changes,
    }


def test_a_source_is_made_shown_changed_and_deleted(client: APIClient, cluster: Cluster) -> None:
    created = client.post(SOURCES, body(cluster))
    assert created.status_code == 201, created.content
    assert created.json()["has_token"] is True
    assert "s3cret" not in created.content.decode()
    one = f"{SOURCES}/{created.json()['uid']}"

    changed = client.patch(one, {"every": 60, "enabled": False})
    assert (changed.json()["every"], changed.json()["enabled"]) == (60, False)
    assert client.get(SOURCES).json()["results"][0]["cluster"]["name"] == "east"

    assert client.delete(one).status_code == 204
    assert not Source.objects.exists()


def test_what_is_wrong_with_a_source_names_the_field(client: APIClient, cluster: Cluster) -> None:
    outside = body(cluster, options={"vendor": "nvidia", "targets": [{"url": "http://10.0.0.1/m"}]})
    refused = client.post(SOURCES, outside)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "options.targets[0]"
    assert "a private network" in refused.json()["detail"]
    assert client.post(SOURCES, body(cluster, every=1)).status_code == 400
    assert client.post(SOURCES, body(cluster, colour="red")).status_code == 400


def test_trying_a_source_says_what_it_told_or_why_not(client: APIClient, cluster: Cluster) -> None:
    one = f"{SOURCES}/{client.post(SOURCES, body(cluster)).json()['uid']}/try"
    answer = client.post(one)
    assert answer.status_code == 422
    assert "none of the exporters (1) responded" in answer.json()["detail"]


def test_a_source_is_paused_as_its_help_says_and_one_of_agents_is_not(
    client: APIClient, cluster: Cluster
) -> None:
    help_text = str(MetricSourceChangeSerializer().fields["enabled"].help_text)
    assert (
        "A source of agents is not read and cannot be paused: false is refused with 422"
        in help_text
    )
    read = client.post(SOURCES, body(cluster)).json()["uid"]
    assert client.patch(f"{SOURCES}/{read}", {"enabled": False}).json()["enabled"] is False
    assert metric_sources_read(at=timezone.now()) == 0
    assert Source.objects.get(uid=read).tried_at is None

    agents = agent_push_source(cluster)
    refused = client.patch(f"{SOURCES}/{agents.uid}", {"enabled": False})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "enabled")
    assert Source.objects.get(pk=agents.pk).enabled
    assert client.post(SOURCES, body(cluster, name="mine", kind="push")).status_code == 422


def test_others_see_no_sources_and_make_none(client: APIClient, cluster: Cluster) -> None:
    created = client.post(SOURCES, body(cluster)).json()
    other = client_of(factories.user("eve", team=factories.team("search")))
    assert other.get(SOURCES).json()["results"] == []
    assert other.get(f"{SOURCES}/{created['uid']}").status_code == 403
    assert other.post(SOURCES, body(cluster, name="mine")).status_code == 403
    assert other.post(TOKENS, {"node": cluster.nodes.get().uid}).status_code == 403
    assert APIClient().get(SOURCES).status_code == 401


def test_a_token_of_a_node_is_shown_once_and_revoked(client: APIClient, cluster: Cluster) -> None:
    node = cluster.nodes.get()
    created = client.post(TOKENS, {"node": node.uid})
    assert created.status_code == 201, created.content
    text = created.json()["token"]
    assert text.startswith("nft-")

    (listed,) = client.get(TOKENS, {"node": node.uid}).json()["results"]
    assert listed["node"]["name"] == node.name
    assert text not in str(listed)
    assert client.delete(f"{TOKENS}/{listed['uid']}").status_code == 204
    assert NodeToken.objects.get().revoked_at is not None
