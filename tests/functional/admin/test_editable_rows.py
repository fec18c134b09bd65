"""Editable rows of the admin: validation and audit events."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse

from apps.accounts.models import (
    AuditEntry,
    Membership,
    Team,
    User,
)
from apps.fleet import selectors
from apps.fleet.models import Cluster
from apps.models.models import Dataset
from apps.quotas.models import PriorityClass
from tests.functional.admin.pages import errors_of, page
from tests.integration.company import Company


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        (
            {"kind": "abacus"},
            "kind",
            "no cluster adapter is called 'abacus'; installed: fake, kubernetes, local",
        ),
        ({"options": "[1]"}, "options", "options must be a JSON object"),
    ],
)
def test_an_unreachable_cluster_is_refused(
    browser: Client, changes: dict[str, str], field: str, message: str
) -> None:
    form = {"name": "east", "kind": "fake", "options": "{}", "binding": "card", **changes}

    response = browser.post(page(Cluster, "add"), form)

    assert message in errors_of(response)[field][0]
    assert not Cluster.objects.filter(name="east").exists()


def test_the_address_of_a_remote_cluster_is_read_only(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = Cluster.objects.create(name="east", kind="fake", kubeconfig=b"sealed")
    form = {"name": "east", "kind": "local", "options": '{"namespace": "b"}', "binding": "node"}

    with monkeypatch.context() as patch:
        patch.setattr(selectors, "REMOTE_KINDS", ("fake",))
        assert browser.post(page(Cluster, "change", remote.pk), form).status_code == 302
    remote.refresh_from_db()
    assert (remote.kind, remote.options, remote.binding) == ("fake", {}, "node")
    assert bytes(remote.kubeconfig or b"") == b"sealed"

    assert browser.post(page(Cluster, "change", remote.pk), form).status_code == 302
    remote.refresh_from_db()
    assert (remote.kind, remote.options) == ("local", {"namespace": "b"})


def test_a_team_is_created_with_members_and_a_membership_removed(
    company: Company, browser: Client
) -> None:
    form = {
        "name": "Vision",
        "slug": "vision",
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "0",
        "memberships-MIN_NUM_FORMS": "0",
        "memberships-MAX_NUM_FORMS": "1000",
        "memberships-0-user": str(company.engineer.pk),
        "memberships-0-role": "viewer",
    }
    assert browser.post(page(Team, "add"), form).status_code == 302
    team = Team.objects.get(slug="vision")
    membership = Membership.objects.get(team=team)
    assert (membership.user, membership.role) == (company.engineer, "viewer")
    assert AuditEntry.objects.get(action="team.create").team == team

    browser.post(page(Membership, "delete", membership.pk), {"post": "yes"})

    assert not Membership.objects.filter(team=team).exists()
    gone = AuditEntry.objects.get(action="membership.delete")
    assert (gone.team, gone.object_name) == (team, "mei is viewer of Vision")


def test_a_user_is_created_and_the_password_changed_with_audit_events(
    browser: Client, boss: User
) -> None:
    secret = "correct horse battery"
    form = {
        "username": "ada",
        "usable_password": "true",
        "password1": secret,
        "password2": secret,
    }
    assert browser.post(page(User, "add"), form).status_code == 302
    ada = User.objects.get(username="ada")
    assert ada.check_password(secret)
    other = "another horse battery"
    changed = browser.post(
        reverse("admin:auth_user_password_change", args=[ada.pk]),
        {"usable_password": "true", "password1": other, "password2": other},
    )
    assert changed.status_code == 302
    ada.refresh_from_db()
    assert ada.check_password(other)
    trail = AuditEntry.objects.filter(object_uid=ada.uid).order_by("id")
    assert [entry.action for entry in trail] == ["user.create", "user.change"]
    assert secret not in json.dumps([entry.detail for entry in trail])


def test_the_description_of_a_dataset_is_editable_but_not_its_name(
    company: Company, browser: Client
) -> None:
    dataset = company.dataset.dataset
    form = {"name": "renamed", "description": "street names of 2026"}

    assert browser.post(page(Dataset, "change", dataset.pk), form).status_code == 302

    dataset.refresh_from_db()
    assert (dataset.name, dataset.description) == ("addresses", "street names of 2026")
    assert AuditEntry.objects.get(action="dataset.change").team == company.team


def test_a_priority_class_is_created_changed_and_deleted_with_audit_events(browser: Client) -> None:
    form = {"name": "soon", "value": "5", "description": "before the rest"}
    assert browser.post(page(PriorityClass, "add"), form).status_code == 302
    soon = PriorityClass.objects.get(name="soon")
    browser.post(page(PriorityClass, "change", soon.pk), {**form, "value": "6"})
    taken = browser.post(page(PriorityClass, "change", soon.pk), {**form, "value": "10"})
    assert "already exists" in errors_of(taken)["value"][0]
    browser.post(page(PriorityClass, "delete", soon.pk), {"post": "yes"})

    assert not PriorityClass.objects.filter(name="soon").exists()
    trail = AuditEntry.objects.filter(action__startswith="priority_class.").order_by("id")
    assert [entry.action.partition(".")[2] for entry in trail] == ["create", "edit", "delete"]
    assert (trail[1].detail["before"]["value"], trail[1].detail["after"]["value"]) == (5, 6)


def test_the_default_priority_class_cannot_be_deleted(browser: Client) -> None:
    default = PriorityClass.objects.get(value=0)

    assert (
        browser.post(page(PriorityClass, "delete", default.pk), {"post": "yes"}).status_code == 403
    )

    assert PriorityClass.objects.filter(pk=default.pk).exists()
