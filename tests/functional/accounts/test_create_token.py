"""``manage.py create_token``: the first token of a program, created on the server."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from apps.accounts.models import AuditEntry, PersonalToken
from tests.functional.accounts.conftest import Staffed


def create_token(*arguments: str) -> str:
    printed = StringIO()
    call_command("create_token", *arguments, stdout=printed)
    return printed.getvalue()


def test_a_token_is_printed_once_works_and_is_audited_like_one_of_the_pages(
    staffed: Staffed,
) -> None:
    text = create_token(staffed.engineer.username, "--name", "nightly export").strip()
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    assert client.get("/api/v1/me").json()["username"] == staffed.engineer.username

    token = PersonalToken.objects.get()
    assert token.scopes == ["read"]
    assert token.expires_at is not None
    assert timedelta(days=89) < token.expires_at - timezone.now() <= timedelta(days=90)
    entry = AuditEntry.objects.get(action="token.create")
    assert (entry.actor, entry.object_uid, entry.object_name) == (
        staffed.engineer,
        token.uid,
        "nightly export",
    )
    assert entry.detail == {"scopes": ["read"]}
    assert text not in json.dumps(entry.detail)


def test_json_has_the_token_with_its_scopes_team_and_expiry(staffed: Staffed) -> None:
    arguments = ("--scope", "jobs", "--scope", "models", "--days", "0", "--team", "maps", "--json")
    printed = json.loads(create_token(staffed.lead.username, "--name", "CI", *arguments))
    token = PersonalToken.objects.get()
    assert datetime.fromisoformat(printed.pop("created_at")) == token.created_at
    assert printed.pop("text").startswith(printed["prefix"])
    assert printed == {
        "uid": token.uid,
        "username": staffed.lead.username,
        "name": "CI",
        "scopes": ["jobs", "models"],
        "team": staffed.maps.uid,
        "prefix": token.prefix,
        "expires_at": None,
    }


def test_invalid_arguments_are_refused_by_name(staffed: Staffed, settings: Settings) -> None:
    settings.NINEFOLD_TOKEN_MAX_DAYS = 365
    user = staffed.engineer.username
    staffed.other.is_active = False
    staffed.other.save()
    create_token(user, "--name", "taken")
    cases = {
        "there is no user with the user name 'nobody'": ("nobody", "--name", "x"),
        "the user 'other' is deactivated": ("other", "--name", "x"),
        "--scope root, write is unknown; scopes are: read, models, jobs, serving, admin, all": (
            *(user, "--name", "x", "--scope", "write"),
            *("--scope", "root", "--scope", "read"),
        ),
        "--days is -1; it must be from 0 (never expires) to 3650": (
            *(user, "--name", "x"),
            "--days=-1",
        ),
        "a token is valid for at most 365 days": (user, "--name", "x", "--days", "400"),
        "there is no team 'nowhere'; teams: maps, search": (
            *(user, "--name", "x"),
            *("--team", "nowhere"),
        ),
        "you are not in that team": (user, "--name", "x", "--team", "search"),
        "--name has 81 characters; it must have 1 to 80": (user, "--name", "x" * 81),
        "--name 'a\\u202eb': U+202E is not allowed": (user, "--name", "a\u202eb"),
        "you have a token named taken already": (user, "--name", "taken"),
    }

    said = {}
    for expected, arguments in cases.items():
        with pytest.raises(CommandError) as refused:
            create_token(*arguments)
        said[expected] = str(refused.value)
    assert {expected: text for expected, text in said.items() if expected not in text} == {}
    assert PersonalToken.objects.count() == 1
