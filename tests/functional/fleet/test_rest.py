"""Clusters by REST: the same acts, and a kubeconfig that goes in and never comes out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from apps.fleet.models import Cluster
from controlplane.adapters.fakes.clusters import FakeCluster

BODY: dict[str, Any] = {
    "name": "west",
    "kind": "fake",
    "kubeconfig": "the token",
    "options": {"secret": "token"},
}


def send(client: Client, method: str, path: str, body: object = None) -> tuple[int, Any]:
    answer = client.generic(
        method, f"/api/v1/{path}", json.dumps(body), content_type="application/json"
    )
    return answer.status_code, json.loads(answer.content) if answer.content else None


def test_a_cluster_is_registered_checked_changed_and_removed(browser: Client) -> None:
    status, created = send(browser, "POST", "clusters", BODY)
    assert status == 201, created
    assert "kubeconfig" not in created
    assert {check["verdict"] for check in created["checks"]} == {"passed"}
    address = f"clusters/{created['uid']}"

    status, changed = send(browser, "PATCH", address, {"binding": "card"})
    assert (status, changed["binding"], changed["options"]) == (200, "card", BODY["options"])
    status, checked = send(browser, "POST", f"{address}/check")
    assert status == 200
    assert checked["checked_at"] > created["checked_at"]
    assert send(browser, "DELETE", address)[0] == 204
    assert not Cluster.objects.exists()


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"options": {"lacking": ["api"]}}, "cluster-unfit", "checks.api"),
        ({"kubeconfig": "nothing"}, "cluster-refused", "kubeconfig"),
        ({"options": {"moon": 1}}, "cluster-refused", "options.moon"),
        ({"kind": "local"}, "cluster-refused", "kind"),
    ],
)
def test_a_refusal_names_the_field_and_what_to_do(
    browser: Client, changes: dict[str, Any], code: str, field: str
) -> None:
    status, problem = send(browser, "POST", "clusters", {**BODY, **changes})
    assert (status, problem["code"], problem["errors"][0]["field"]) == (422, code, field)
    assert not Cluster.objects.exists()


def test_a_cluster_that_fails_its_checks_is_kept_on_demand(
    browser: Client, cluster: Cluster, fake: FakeCluster
) -> None:
    change = {"options": {"lacking": ["api"]}}
    assert send(browser, "PATCH", f"clusters/{cluster.uid}", change)[0] == 422
    status, _ = send(
        browser, "PATCH", f"clusters/{cluster.uid}", {**change, "although_unfit": True}
    )
    assert status == 200
    cluster.refresh_from_db()
    assert cluster.options == {"lacking": ["api"]}
