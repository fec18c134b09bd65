"""Registering a cluster: looked at first, kept encrypted, refused with what is missing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import AuditEntry, User
from apps.fleet import selectors
from apps.fleet.models import Cluster
from controlplane.domain.common.reasons import Reason
from controlplane.persistence.encryption import decrypt
from controlplane.persistence.reasons import with_reasons_as_json
from controlplane.ports.clusters import CheckVerdict, ClusterCheck
from tests import factories
from tests.cases import for_each_case
from tests.functional.fleet.conftest import text

CREDENTIAL = "apiVersion: v1 # token-of-the-cluster"
FORM = {
    "name": "west",
    "kind": "fake",
    "kubeconfig": CREDENTIAL,
    "options": '{"cards": 8, "secret": "token"}',
    "binding": "node",
}


def test_a_registered_cluster_keeps_its_kubeconfig_encrypted_and_says_what_was_checked(
    browser: Client, root: User
) -> None:
    answer = browser.post("/fleet/clusters/new", FORM)

    row = Cluster.objects.get(name="west")
    assert answer["Location"] == f"/fleet/clusters/{row.uid}"
    assert decrypt(row.kubeconfig or b"").decode() == CREDENTIAL
    assert "token" not in bytes(row.kubeconfig or b"").decode()
    assert (row.version, row.created_by_name, row.binding) == ("v0-fake", "root", "node")
    assert [(check.name, check.verdict) for check in selectors.stored_cluster_checks(row)] == [
        ("api", "passed"),
        ("permissions", "passed"),
    ]
    shown = text(browser, f"/fleet/clusters/{row.uid}")
    assert "api was looked at" in shown
    assert "token-of-the-cluster" not in shown
    entry = AuditEntry.objects.get(action="cluster.create")
    assert (entry.actor, entry.object_uid) == (root, row.uid)
    assert "token" not in str(entry.detail)


def test_the_adapter_gets_the_kubeconfig_and_the_uid_and_stays_while_nothing_changes(
    browser: Client,
) -> None:
    browser.post("/fleet/clusters/new", FORM)
    row = Cluster.objects.get(name="west")

    adapter: Any = selectors.cluster_adapter(row)

    assert adapter.installation == row.uid
    assert selectors.cluster_adapter(Cluster.objects.get(pk=row.pk)) is adapter
    browser.post(f"/fleet/clusters/{row.uid}/change", {**FORM, "kubeconfig": "another token"})
    assert selectors.cluster_adapter(Cluster.objects.get(pk=row.pk)) is not adapter


def test_what_fails_is_named_with_its_remedy_and_the_cluster_is_kept_only_if_asked_for(
    browser: Client,
) -> None:
    unfit = {**FORM, "options": '{"lacking": ["permissions"]}'}

    answer = browser.post("/fleet/clusters/new", unfit)

    said = answer.content.decode()
    assert answer.status_code == 422
    assert "permissions was looked at" in said
    assert "mend permissions" in said
    assert 'name="although_unfit"' in said
    assert answer["Cache-Control"].startswith("max-age=0")
    assert not Cluster.objects.filter(name="west").exists()

    browser.post("/fleet/clusters/new", {**unfit, "although_unfit": "on"})
    row = Cluster.objects.get(name="west")
    assert "mend permissions" in text(browser, f"/fleet/clusters/{row.uid}")


@for_each_case(
    ("changes", "message"),
    [
        ({"kubeconfig": "users: []"}, "does not know this kubeconfig"),
        ({"kubeconfig": ""}, "Paste a kubeconfig"),
        ({"name": "West Coast"}, "1 to 40 lower-case letters"),
        ({"name": "east"}, "a cluster named east already exists"),
        ({"options": '{"moon": 1}'}, "moon is not an option here"),
        (
            {"options": '{"kubeconfig": "x"}'},
            "is not an option; enter the kubeconfig in its own field",
        ),
        ({"options": "[1]"}, "Options must be a JSON object"),
        ({"options": '{"control_url": "x"}'}, "control_url has its own field"),
        ({"kind": "local"}, "Select a valid choice"),
    ],
)
def test_a_description_that_cannot_be_is_refused_beside_its_field(
    browser: Client, cluster: Cluster, changes: dict[str, str], message: str
) -> None:
    answer = browser.post("/fleet/clusters/new", {**FORM, **changes})

    assert answer.status_code == 422
    assert message in answer.content.decode()
    assert Cluster.objects.count() == 1


def test_changing_keeps_the_kubeconfig_unless_another_is_given(browser: Client) -> None:
    browser.post("/fleet/clusters/new", FORM)
    row = Cluster.objects.get(name="west")
    change = {**FORM, "kubeconfig": "", "control_url": "https://control.example.com/"}

    assert browser.post(f"/fleet/clusters/{row.uid}/change", change).status_code == 302

    row.refresh_from_db()
    assert decrypt(row.kubeconfig or b"").decode() == CREDENTIAL
    assert selectors.control_plane_url(row) == "https://control.example.com"
    assert AuditEntry.objects.get(action="cluster.change").detail["changed"] == [
        "options",
        "binding",
    ]
    form = text(browser, f"/fleet/clusters/{row.uid}/change")
    assert "token-of-the-cluster" not in form
    assert "https://control.example.com/" in form


def test_a_kubeconfig_whose_key_is_lost_is_trouble_that_names_the_remedy(
    browser: Client, cluster: Cluster
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(kubeconfig=b"sealed by nobody")

    browser.post(f"/fleet/clusters/{cluster.uid}/check")

    shown = text(browser, f"/fleet/clusters/{cluster.uid}")
    assert "add the old key to the list" in shown


def test_without_an_adapter_the_page_says_what_to_install(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "REMOTE_KINDS", ("not-installed",))
    assert "No cluster adapter installed" in text(browser, "/fleet/clusters/new")


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"exec": {"command": "curl"}}, "runs a program on this host"),
        ({"auth-provider": {"name": "oidc"}}, "runs a program on this host"),
        ({"client-key": "/etc/shadow"}, "the path of a file, which does not exist on this host"),
        ({}, "has neither a token nor client-certificate-data"),
    ],
)
def test_a_kubeconfig_that_would_run_or_read_something_is_refused_in_the_adapters_words(
    browser: Client, monkeypatch: pytest.MonkeyPatch, user: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr(selectors, "REMOTE_KINDS", ("kubernetes",))
    server = {"server": "https://cluster.example.com:6443"}
    document = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
        "clusters": [{"name": "one", "cluster": server}],
        "users": [{"name": "one", "user": user or {"name": "nobody"}}],
    }
    form = {**FORM, "kind": "kubernetes", "options": "{}", "kubeconfig": json.dumps(document)}

    answer = browser.post("/fleet/clusters/new", form)

    errors = answer.context["form"].errors
    assert (answer.status_code, list(errors)) == (422, ["kubeconfig"])
    assert message in errors["kubeconfig"][0]


def test_only_administrators_of_the_company_register(client: Client, db: None) -> None:
    team = factories.team()
    client.force_login(factories.user("ada", team=team))
    assert client.get("/fleet/clusters/new").status_code == 403
    assert client.post("/fleet/clusters/new", FORM).status_code == 403
    assert not Cluster.objects.exists()


def test_a_stored_check_keeps_its_code(cluster: Cluster) -> None:
    refused = Reason("cluster.api.not_reachable_here", "{host} is unreachable", host="10.0.0.1")
    check = ClusterCheck(name="api", verdict=CheckVerdict.FAILED, message=refused, remedy="")
    cluster.checks = with_reasons_as_json([asdict(check)])
    cluster.save(update_fields=("checks",))
    cluster.refresh_from_db()

    (stored,) = selectors.stored_cluster_checks(cluster)

    assert isinstance(stored.message, Reason)
    assert (stored.message.code, stored.message) == (refused.code, refused)
    assert stored.remedy == ""
