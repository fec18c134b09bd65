"""Who may do what: roles are held within a team or in the whole company, and each grants a set of permissions.

Nodes run the work of every team, so the permission to operate them is granted by a company role only.

A personal token never grants more than its owner has. Its scopes narrow that down to some parts of REST,
and every one of them lets it read: a program that submits a job wants to see how it goes.
"""

from __future__ import annotations

from enum import StrEnum


class TeamRole(StrEnum):
    VIEWER = "viewer"
    ENGINEER = "engineer"
    QUEUE_ADMIN = "queue_admin"
    ADMINISTRATOR = "administrator"


class CompanyRole(StrEnum):
    """A role that is bound to no team."""

    OPERATOR = "operator"


class Permission(StrEnum):
    VIEW = "view"
    #: Upload datasets, register models.
    CONTRIBUTE = "contribute"
    #: Submit, cancel and retry jobs.
    RUN = "run"
    #: Create, change and stop deployments.
    DEPLOY = "deploy"
    #: Create and revoke gateway keys.
    MANAGE_KEYS = "manage_keys"
    MANAGE_QUEUES = "manage_queues"
    OPERATE_FLEET = "operate_fleet"
    MANAGE_TEAM = "manage_team"


_ENGINEER = frozenset(
    {
        Permission.VIEW,
        Permission.CONTRIBUTE,
        Permission.RUN,
        Permission.DEPLOY,
        Permission.MANAGE_KEYS,
    }
)

GRANTS: dict[TeamRole, frozenset[Permission]] = {
    TeamRole.VIEWER: frozenset({Permission.VIEW}),
    TeamRole.ENGINEER: _ENGINEER,
    TeamRole.QUEUE_ADMIN: _ENGINEER | {Permission.MANAGE_QUEUES},
    TeamRole.ADMINISTRATOR: frozenset(Permission) - {Permission.OPERATE_FLEET},
}

COMPANY_GRANTS: dict[CompanyRole, frozenset[Permission]] = {
    CompanyRole.OPERATOR: frozenset({Permission.OPERATE_FLEET}),
}


def roles_grant(roles: frozenset[TeamRole], permission: Permission) -> bool:
    """Whether any of the roles grants it."""
    return any(permission in GRANTS[role] for role in roles)


class Scope(StrEnum):
    """What a personal token may be used for. Reading is part of each."""

    READ = "read"
    MODELS = "models"
    JOBS = "jobs"
    SERVING = "serving"
    ADMIN = "admin"
    #: Whatever its owner may do, making further tokens included.
    ALL = "all"


#: Changes that a scope permits, if the owner of the token has the permission.
SCOPE_GRANTS: dict[Scope, frozenset[Permission]] = {
    Scope.READ: frozenset(),
    Scope.MODELS: frozenset({Permission.CONTRIBUTE}),
    Scope.JOBS: frozenset({Permission.RUN}),
    Scope.SERVING: frozenset({Permission.DEPLOY, Permission.MANAGE_KEYS}),
    Scope.ADMIN: frozenset(
        {Permission.MANAGE_QUEUES, Permission.OPERATE_FLEET, Permission.MANAGE_TEAM}
    ),
    Scope.ALL: frozenset(Permission),
}


def scopes_allow(scopes: frozenset[Scope], wanted: Scope) -> bool:
    """Whether a token of those scopes may be used where ``wanted`` is needed."""
    return wanted in scopes or Scope.ALL in scopes or (wanted is Scope.READ and bool(scopes))
