"""Three teams with somebody of each role, a newcomer, and an operator and the administrator of the company."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from apps.accounts.models import DeviceAuthorization, Team, User
from apps.accounts.services import company_roles_set, membership_set, token_create, token_revoke
from controlplane.domain.common.permissions import CompanyRole, Scope, TeamRole
from tests import factories
from tests.e2e.demo.clock import ago, before


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    maps: Team
    search: Team
    voice: Team
    research: Team
    #: The administrator of the company.
    admin: User
    #: An engineer of Maps; most of what there is, she made.
    ada: User
    #: The administrator of Maps.
    wei: User
    #: An engineer of Search.
    noor: User
    #: An engineer of Voice.
    lin: User


def users() -> Users:
    with ago(days=210):
        admin = factories.user("admin", admin=True)
        maps, search, voice, research = (
            Team.objects.create(name=name, slug=name.lower())
            for name in ("Maps", "Search", "Voice", "Research")
        )
    created = {}
    for name, first, last, team, role in (
        ("ada", "Ada", "Okafor", maps, TeamRole.ENGINEER),
        ("wei", "伟", "魏", maps, TeamRole.ADMINISTRATOR),
        ("vera", "Vera", "Lindqvist", maps, TeamRole.VIEWER),
        ("quinn", "Quinn", "Abara", maps, TeamRole.QUEUE_ADMIN),
        ("otto", "Otto", "Brandt", maps, TeamRole.VIEWER),
        ("noor", "Noor", "Haddad", search, TeamRole.ENGINEER),
        ("lin", "琳", "林", voice, TeamRole.ENGINEER),
        ("nova", "Nova", "Petrov", research, TeamRole.ENGINEER),
    ):
        with ago(days=190):
            created[name] = factories.user(name)
            User.objects.filter(pk=created[name].pk).update(
                first_name=first, last_name=last, email=f"{name}@example.com"
            )
            membership_set(team=team, user=created[name], roles=frozenset({role}), actor=admin)
    with ago(days=190):
        operator = frozenset({CompanyRole.OPERATOR})
        company_roles_set(user=created["otto"], roles=operator, actor=admin)
    _tokens(created["ada"])
    return Users(
        maps=maps,
        search=search,
        voice=voice,
        research=research,
        admin=admin,
        ada=created["ada"],
        wei=created["wei"],
        noor=created["noor"],
        lin=created["lin"],
    )


def _tokens(owner: User) -> None:
    everything = frozenset({Scope.ALL})
    with ago(days=60):
        token_create(
            user=owner,
            name="nightly evaluation",
            scopes=frozenset({Scope.JOBS, Scope.READ}),
            expires_at=before(days=-30),
        )
        token_create(user=owner, name="laptop", scopes=everything, expires_at=before(days=1))
        revoked, _text = token_create(user=owner, name="old notebook", scopes=everything)
    with ago(days=20):
        token_revoke(token=revoked, actor=owner)


def signing_in() -> str:
    """A command line that waits for approval; give back its code."""
    row = DeviceAuthorization.objects.create(
        digest="demo",
        user_code="WDJBMJHT",
        scopes=[Scope.READ.value, Scope.JOBS.value],
        host="ada-laptop",
        remote_address="192.0.2.17",
        expires_at=timezone.now() + timedelta(days=1),
        interval=5,
    )
    return row.user_code
