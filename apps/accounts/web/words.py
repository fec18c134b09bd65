"""Roles, permissions and scopes in the reader's words, put together from what the code grants."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from controlplane.domain.permissions import (
    COMPANY_GRANTS,
    GRANTS,
    SCOPE_GRANTS,
    CompanyRole,
    Permission,
    Role,
    Scope,
)

ROLE_NAMES: dict[Role, Promise] = {
    Role.VIEWER: _("viewer"),
    Role.ENGINEER: _("engineer"),
    Role.QUEUE_ADMIN: _("queue admin"),
    Role.ADMINISTRATOR: _("administrator"),
}
COMPANY_ROLE_NAMES: dict[CompanyRole, Promise] = {CompanyRole.OPERATOR: _("operator")}
PERMISSION_WORDS: dict[Permission, Promise] = {
    Permission.VIEW: _("look at everything of the team"),
    Permission.CONTRIBUTE: _("upload datasets and register models"),
    Permission.RUN: _("submit, cancel and retry jobs"),
    Permission.DEPLOY: _("create, change and stop deployments"),
    Permission.MANAGE_KEYS: _("make and revoke gateway keys"),
    Permission.MANAGE_QUEUES: _("change the team's queues"),
    Permission.OPERATE_FLEET: _(
        "operate the fleet: clusters, nodes, cards, health, alerts, metric sources and rollouts"
    ),
    Permission.MANAGE_TEAM: _("manage members, webhooks and the team's audit trail"),
}
SCOPE_NAMES: dict[Scope, Promise] = {
    Scope.READ: _("read"),
    Scope.MODELS: _("models and datasets"),
    Scope.JOBS: _("jobs"),
    Scope.SERVING: _("serving"),
    Scope.ADMIN: _("administration"),
    Scope.ALL: _("everything"),
}
_READS: Promise = _("look at what you may look at")
_COMPANY: Promise = _("everything in every team, in the fleet and in the queue tree")
_ALL: Promise = _("whatever you may do, making further tokens included")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A code with what it allows."""

    code: str
    name: Promise
    allows: list[Promise]
    #: Held in the whole company, not in a team.
    company: bool = False


def roles_explained() -> list[Explained]:
    """Every role with what it grants: those of a team, least first, then those of the whole company."""
    return [
        *(
            Explained(code=role.value, name=ROLE_NAMES[role], allows=_granted(GRANTS[role]))
            for role in Role
        ),
        *(
            Explained(
                code=role.value,
                name=COMPANY_ROLE_NAMES[role],
                allows=_granted(COMPANY_GRANTS[role]),
                company=True,
            )
            for role in CompanyRole
        ),
        Explained(
            code="company_administrator", name=_("administrator"), allows=[_COMPANY], company=True
        ),
    ]


def _granted(permissions: Collection[Permission]) -> list[Promise]:
    return [PERMISSION_WORDS[one] for one in Permission if one in permissions]


def scopes_explained() -> list[Explained]:
    """Every scope with what it lets a token do."""
    return [
        Explained(code=scope.value, name=SCOPE_NAMES[scope], allows=_allowed(scope))
        for scope in Scope
    ]


def _allowed(scope: Scope) -> list[Promise]:
    if scope is Scope.ALL:
        return [_ALL]
    return _granted(SCOPE_GRANTS[scope]) or [_READS]


def role_names(codes: list[str]) -> list[Promise]:
    """In the order of :class:`Role`."""
    return [ROLE_NAMES[role] for role in Role if role.value in codes]


def company_role_names(codes: Collection[str]) -> list[Promise]:
    """In the order of :class:`CompanyRole`."""
    return [COMPANY_ROLE_NAMES[role] for role in CompanyRole if role.value in codes]
