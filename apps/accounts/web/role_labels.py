"""Labels of roles, permissions and scopes, with what each role and scope grants."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from controlplane.domain.common.permissions import (
    COMPANY_GRANTS,
    GRANTS,
    SCOPE_GRANTS,
    CompanyRole,
    Permission,
    Scope,
    TeamRole,
)

ROLE_LABELS: dict[TeamRole, Promise] = {
    TeamRole.VIEWER: _("viewer"),
    TeamRole.ENGINEER: _("engineer"),
    TeamRole.QUEUE_ADMIN: _("queue admin"),
    TeamRole.ADMINISTRATOR: _("administrator"),
}
COMPANY_ROLE_LABELS: dict[CompanyRole, Promise] = {CompanyRole.OPERATOR: _("operator")}
PERMISSION_LABELS: dict[Permission, Promise] = {
    Permission.VIEW: _("view all objects of the team"),
    Permission.CONTRIBUTE: _("upload datasets and register models"),
    Permission.RUN: _("submit, cancel and retry jobs"),
    Permission.DEPLOY: _("create, change and stop deployments"),
    Permission.MANAGE_KEYS: _("create and revoke API keys of the gateway"),
    Permission.MANAGE_QUEUES: _("change the team's queues"),
    Permission.OPERATE_FLEET: _(
        "operate the fleet: clusters, nodes, cards, health, alerts, metric sources and rollouts"
    ),
    Permission.MANAGE_TEAM: _("manage members and webhooks, and view the team's audit log"),
}
SCOPE_LABELS: dict[Scope, Promise] = {
    Scope.READ: _("read"),
    Scope.MODELS: _("models and datasets"),
    Scope.JOBS: _("jobs"),
    Scope.SERVING: _("serving"),
    Scope.ADMIN: _("administration"),
    Scope.ALL: _("everything"),
}
_READS: Promise = _("view everything that you can view")
_COMPANY: Promise = _("all actions in every team, in the fleet and in the queue tree")
_ALL: Promise = _("all actions that you can perform, including creating tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionGrantDescription:
    """A code with what it allows."""

    code: str
    name: Promise
    allows: list[Promise]
    #: A role of the whole company, not of a team.
    company: bool = False


def role_descriptions() -> list[PermissionGrantDescription]:
    """Every role with what it grants: those of a team, least first, then those of the whole company."""
    return [
        *(
            PermissionGrantDescription(
                code=role.value, name=ROLE_LABELS[role], allows=_permission_labels(GRANTS[role])
            )
            for role in TeamRole
        ),
        *(
            PermissionGrantDescription(
                code=role.value,
                name=COMPANY_ROLE_LABELS[role],
                allows=_permission_labels(COMPANY_GRANTS[role]),
                company=True,
            )
            for role in CompanyRole
        ),
        PermissionGrantDescription(
            code="company_administrator", name=_("administrator"), allows=[_COMPANY], company=True
        ),
    ]


def _permission_labels(permissions: Collection[Permission]) -> list[Promise]:
    return [PERMISSION_LABELS[one] for one in Permission if one in permissions]


def scope_descriptions() -> list[PermissionGrantDescription]:
    """Every scope with what it lets a token do."""
    return [
        PermissionGrantDescription(
            code=scope.value, name=SCOPE_LABELS[scope], allows=_scope_permission_labels(scope)
        )
        for scope in Scope
    ]


def _scope_permission_labels(scope: Scope) -> list[Promise]:
    if scope is Scope.ALL:
        return [_ALL]
    return _permission_labels(SCOPE_GRANTS[scope]) or [_READS]


def role_labels(codes: list[str]) -> list[Promise]:
    """In the order of :class:`Role`."""
    return [ROLE_LABELS[role] for role in TeamRole if role.value in codes]


def company_role_labels(codes: Collection[str]) -> list[Promise]:
    """In the order of :class:`CompanyRole`."""
    return [COMPANY_ROLE_LABELS[role] for role in CompanyRole if role.value in codes]
