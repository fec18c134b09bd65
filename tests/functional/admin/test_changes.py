"""Rows that may be changed in the admin: what is refused, and the trace of what is not."""

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
from apps.fleet.models import Cluster
from apps.models.models import Dataset
from apps.quotas.models import Queue
from tests.functional.admin.pages import errors_of, page
from tests.integration.company import Company


def queue_form(**changes: object) -> dict[str, object]:
    return {"name": "default", "parent": "", "team": "", "caps": "{}", "open": "on", **changes}


def test_the_caps_of_a_queue_are_changed_with_a_trace(company: Company, browser: Client) -> None:
    company.submit()
    company.schedule()
    address = page(Queue, "change", company.queue.pk)
    assert "1 × cpu" in browser.get(address).content.decode()

    assert browser.post(address, queue_form(caps='{"cpu": 8}')).status_code == 302

    company.queue.refresh_from_db()
    assert company.queue.caps == {"cpu": 8}
    entry = AuditEntry.objects.get(action="queue.change")
    assert entry.actor_name == "boss"
    assert entry.detail["by"] == "admin"
    assert entry.detail["change"] == [{"changed": {"fields": ["Caps"]}}]


@pytest.mark.parametrize(
    ("caps", "words"),
    [
        ('{"tpu-v9": 1}', "no chip is called 'tpu-v9'; known: cpu"),
        ('{"cpu": -1}', "the cap of 'cpu' must be a whole number of cards from 0, got -1"),
        ('{"cpu": 1.5}', "must be a whole number of cards from 0, got 1.5"),
        ('{"cpu": true}', "must be a whole number of cards from 0, got True"),
        ('{"cpu": "8"}', "must be a whole number of cards from 0, got '8'"),
        ("[1]", "caps must be a JSON object of chip to cards"),
        ("{cpu", "Enter a valid JSON."),
    ],
)
def test_caps_that_make_no_sense_are_refused_with_a_clear_message(
    company: Company, browser: Client, caps: str, words: str
) -> None:
    response = browser.post(page(Queue, "change", company.queue.pk), queue_form(caps=caps))

    assert response.status_code == 200
    assert words in errors_of(response)["caps"][0]
    company.queue.refresh_from_db()
    assert company.queue.caps == {}
    assert not AuditEntry.objects.filter(action="queue.change").exists()


def test_a_queue_cannot_be_its_own_ancestor(company: Company, browser: Client) -> None:
    child = Queue.objects.create(name="child", parent=company.queue)

    response = browser.post(
        page(Queue, "change", company.queue.pk), queue_form(parent=str(child.pk))
    )

    assert "a queue cannot be its own ancestor" in errors_of(response)["parent"][0]


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        (
            {"kind": "abacus"},
            "kind",
            "no cluster adapter is called 'abacus'; installed: fake, local",
        ),
        ({"options": "[1]"}, "options", "options must be a JSON object"),
    ],
)
def test_a_cluster_that_could_not_be_reached_is_refused(
    browser: Client, changes: dict[str, str], field: str, words: str
) -> None:
    form = {"name": "east", "kind": "fake", "options": "{}", "binding": "card", **changes}

    response = browser.post(page(Cluster, "add"), form)

    assert words in errors_of(response)[field][0]
    assert not Cluster.objects.filter(name="east").exists()


def test_a_team_is_created_with_its_members_and_a_membership_taken_away_again(
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


def test_a_person_is_created_and_their_password_changed_with_a_trace(
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


def test_a_dataset_keeps_its_name_and_takes_a_description(
    company: Company, browser: Client
) -> None:
    dataset = company.dataset.dataset
    form = {"name": "renamed", "description": "street names of 2026"}

    assert browser.post(page(Dataset, "change", dataset.pk), form).status_code == 302

    dataset.refresh_from_db()
    assert (dataset.name, dataset.description) == ("addresses", "street names of 2026")
    assert AuditEntry.objects.get(action="dataset.change").team == company.team
