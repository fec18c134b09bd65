"""``manage.py company_role``: grant or revoke a company role."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.models import User
from apps.accounts.selectors import company_roles_of
from apps.accounts.services import company_roles_set
from controlplane.domain.common.permissions import CompanyRole


class Command(BaseCommand):
    help = "Grant an active person a role in the whole company, or revoke it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="user name of the person")
        parser.add_argument("role", choices=list(CompanyRole), help="the company role")
        parser.add_argument("--revoke", action="store_true", help="revoke it instead")

    def handle(self, *args: Any, username: str, role: str, revoke: bool, **options: Any) -> None:
        """:raises CommandError: if there is no active person of that name."""
        user = User.objects.filter(username=username, is_active=True).first()
        if user is None:
            raise CommandError(f"there is no active person with the user name {username!r}")
        one = frozenset({CompanyRole(role)})
        current = company_roles_of(user)
        company_roles_set(user=user, roles=current - one if revoke else current | one, actor=None)
        done = "no longer has" if revoke else "has"
        self.stdout.write(f"{username} {done} the company role {role}")
