"""``manage.py create_token``: create a personal token on the server, so that a program has its first one."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apps.accounts.models import PersonalToken, Team, User
from apps.accounts.services import TokenRefused, token_create
from controlplane.domain.common.name_validation import InvalidName, normalize_name
from controlplane.domain.common.permissions import Scope

_DEFAULT_DAYS = 90


class Command(BaseCommand):
    help = "Create a personal token of an active user, and print it: it is shown this once only."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="user name of the owner, in whose name a program acts")
        parser.add_argument(
            "--name", required=True, help="purpose of the token, at most 80 characters"
        )
        parser.add_argument(
            "--scope",
            action="append",
            dest="scopes",
            metavar="SCOPE",
            help=f"what the token may be used for, repeatable: {', '.join(Scope)} "
            f"(default: {Scope.READ})",
        )
        parser.add_argument(
            "--days",
            type=int,
            default=_DEFAULT_DAYS,
            help="days until the token expires; 0: never, if NINEFOLD_TOKEN_MAX_DAYS permits it "
            "(default: %(default)s)",
        )
        parser.add_argument("--team", metavar="SLUG", help="the only team that the token may see")
        parser.add_argument(
            "--json", action="store_true", help="print a JSON object instead of the token only"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """:raises CommandError: if user, team, scope, name or number of days is invalid."""
        user = _find_user(options["username"])
        lifetime = _valid_lifetime(options["days"])
        try:
            token, text = token_create(
                user=user,
                name=_valid_name(options["name"]),
                scopes=_valid_scopes(options["scopes"] or [Scope.READ]),
                expires_at=timezone.now() + lifetime if lifetime else None,
                team=_find_team(options["team"]),
            )
        except TokenRefused as refusal:
            raise CommandError(f"no token for {user.username!r}: {refusal}") from refusal
        self.stdout.write(_token_json(token, text=text) if options["json"] else text)


def _find_user(username: str) -> User:
    """:raises CommandError: if there is no active user of that name."""
    user = User.objects.filter(username=username).first()
    if user is None:
        raise CommandError(f"there is no user with the user name {username!r}; /people lists them")
    if not user.is_active:
        raise CommandError(
            f"the user {username!r} is deactivated; activate the user at /people first"
        )
    return user


def _find_team(slug: str | None) -> Team | None:
    """:raises CommandError: if there is no team with that slug."""
    team = Team.objects.filter(slug=slug).first() if slug else None
    if slug and team is None:
        known = ", ".join(Team.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise CommandError(f"there is no team {slug!r}; teams: {known or 'none'}")
    return team


def _valid_name(name: str) -> str:
    """:raises CommandError: if a form would refuse it too."""
    longest = PersonalToken._meta.get_field("name").max_length or 0
    if not 1 <= len(name) <= longest:
        raise CommandError(f"--name has {len(name)} characters; it must have 1 to {longest}")
    try:
        return normalize_name(name)
    except InvalidName as error:
        raise CommandError(f"--name {name!r}: {error}") from error


def _valid_scopes(codes: list[str]) -> frozenset[Scope]:
    """:raises CommandError: if one of them is unknown."""
    unknown = sorted(set(codes) - set(Scope))
    if unknown:
        raise CommandError(
            f"--scope {', '.join(unknown)} is unknown; scopes are: {', '.join(Scope)}"
        )
    return frozenset(Scope(code) for code in codes)


def _valid_lifetime(days: int) -> timedelta | None:
    """Return None for a token that does not expire.

    :raises CommandError: unless it is a number from 0 to 3650.
    """
    if not 0 <= days <= 3650:
        raise CommandError(f"--days is {days}; it must be from 0 (never expires) to 3650")
    return timedelta(days=days) if days else None


def _token_json(token: PersonalToken, *, text: str) -> str:
    """The fields of ``POST /api/v1/tokens``, and the owner."""
    return json.dumps(
        {
            "uid": token.uid,
            "username": token.user.username,
            "name": token.name,
            "scopes": token.scopes,
            "team": token.team.uid if token.team else None,
            "prefix": token.prefix,
            "created_at": token.created_at.isoformat(),
            "expires_at": token.expires_at.isoformat() if token.expires_at else None,
            "text": text,
        },
        ensure_ascii=False,
    )
