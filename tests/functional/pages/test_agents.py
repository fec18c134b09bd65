"""Agents that send the figures of their nodes: who is heard, and what becomes of their tokens."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from apps.fleet.models import Cluster, Node
from apps.fleet.services import inventory_record
from apps.telemetry.models import NodeToken, Source
from apps.telemetry.services.metric_sources import agent_push_source
from apps.telemetry.services.node_tokens import node_token_issue
from tests import factories
from tests.functional.pages.reading import CHINESE, text_of

_AT = "/fleet/sources"


@pytest.fixture
def token(cluster: Cluster) -> NodeToken:
    node_token_issue(node=Node.objects.get(), actor=None)
    return NodeToken.objects.get()


def test_a_source_that_is_pushed_to_is_not_paused(operator: Client, cluster: Cluster) -> None:
    source = agent_push_source(cluster)
    page = f"{_AT}/{source.uid}"
    assert "/pause" not in text_of(operator, page)
    answer = operator.post(f"{page}/pause", follow=True)
    assert "cannot be paused; revoke their tokens instead" in answer.text
    answer = operator.post(f"{page}/pause", follow=True, headers=CHINESE)
    assert "代理会主动向该来源推送指标，因此无法暂停；请改为吊销其令牌" in answer.text
    source.refresh_from_db()
    assert source.enabled
    # One that was paused before is let go on.
    Source.objects.update(enabled=False)
    assert "/resume" in text_of(operator, page)
    operator.post(f"{page}/resume")
    source.refresh_from_db()
    assert source.enabled


def test_a_source_that_is_pushed_to_is_not_tried_and_tells_of_its_agents(
    operator: Client, cluster: Cluster, token: NodeToken
) -> None:
    NodeToken.objects.update(used_at=timezone.now())
    source = agent_push_source(cluster)
    page = text_of(operator, f"{_AT}/{source.uid}")
    assert "/try" not in page
    assert "of 1 nodes with a token" in page
    form = text_of(operator, f"{_AT}/{source.uid}/change")
    assert 'name="token"' not in form
    assert operator.post(f"{_AT}/{source.uid}/change", {"every": "20"}).status_code == 302
    source.refresh_from_db()
    assert source.every == 20


def test_a_token_is_shown_once_with_the_command_that_uses_it(
    operator: Client, cluster: Cluster
) -> None:
    node = Node.objects.get()
    assert f'value="{cluster.name}/{node.name}"' in text_of(
        operator, f"{_AT}/tokens/new?node={node.uid}"
    )
    answer = operator.post(f"{_AT}/tokens/new", {"node": node.name})
    assert "nft-" in answer.text
    assert f"--node {node.name} " in answer.text
    assert "no-store" in answer.headers["Cache-Control"]
    assert "nft-" not in text_of(operator, f"{_AT}/agents")


def test_a_node_that_is_not_there_or_there_twice_has_no_token(
    operator: Client, cluster: Cluster
) -> None:
    name = Node.objects.get().name
    answer = operator.post(f"{_AT}/tokens/new", {"node": "nowhere-1"})
    assert answer.status_code == 422
    assert "Node “nowhere-1” does not exist." in answer.text
    other = factories.cluster(name="west", cards=1)
    Node.objects.filter(cluster=other).update(name=name)
    answer = operator.post(f"{_AT}/tokens/new", {"node": name})
    assert f"{cluster.name}/{name}, west/{name}" in answer.text
    assert not NodeToken.objects.exists()
    assert operator.post(f"{_AT}/tokens/new", {"node": f"west/{name}"}).status_code == 200


def test_agents_are_heard_silent_or_were_never_heard(
    operator: Client, cluster: Cluster, token: NodeToken
) -> None:
    assert "never connected" in text_of(operator, f"{_AT}/agents")
    agent = {"name": "ninefold-agent", "vendor": "nvidia", "reader_ok": False}
    NodeToken.objects.update(used_at=timezone.now(), agent=agent)
    page = text_of(operator, f"{_AT}/agents?state=well")
    assert "ninefold-agent · nvidia" in page
    assert "vendor tool on the node does not respond" in page
    assert "No results match these filters." in text_of(operator, f"{_AT}/agents?state=silent")
    NodeToken.objects.update(used_at=timezone.now() - timedelta(minutes=5))
    assert token.node.name in text_of(operator, f"{_AT}/agents?state=silent")
    assert operator.get(f"{_AT}/agents?format=csv").status_code == 200


def test_an_agent_whose_node_is_gone_is_shown_as_that(
    operator: Client, cluster: Cluster, token: NodeToken
) -> None:
    NodeToken.objects.update(used_at=timezone.now() - timedelta(minutes=5))
    inventory_record(cluster=cluster, nodes=[], isolation="", at=timezone.now())
    page = text_of(operator, f"{_AT}/agents?state=gone")
    assert token.node.name in page
    assert "node removed" in page
    assert "/revoke" in page
    for state in ("silent", "unseen", "well"):
        shown = text_of(operator, f"{_AT}/agents?state={state}")
        assert "No results match these filters." in shown
    assert "节点已移除" in operator.get(f"{_AT}/agents", headers=CHINESE).text
    assert ",gone," in operator.get(f"{_AT}/agents?format=csv").getvalue().decode()
    NodeToken.objects.update(used_at=None)
    assert token.node.name in text_of(operator, f"{_AT}/agents?state=gone")
    NodeToken.objects.update(used_at=timezone.now())
    assert token.node.name in text_of(operator, f"{_AT}/agents?state=well")


def test_a_revoked_token_leaves_the_list_of_those_that_are_good(
    operator: Client, token: NodeToken
) -> None:
    operator.post(f"{_AT}/tokens/{token.uid}/revoke")
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert "/revoke" not in text_of(operator, f"{_AT}/agents")
    listed = text_of(operator, f"{_AT}/agents?state=revoked")
    assert f">{token.node.name}</a>" in listed
    assert "/revoke" not in listed
