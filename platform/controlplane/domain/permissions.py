"""Who may do what: roles are held within a team, and each grants a set of permissions."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    VIEWER = "viewer"
    ENGINEER = "engineer"
    QUEUE_ADMIN = "queue_admin"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


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

GRANTS: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: frozenset({Permission.VIEW}),
    Role.ENGINEER: _ENGINEER,
    Role.QUEUE_ADMIN: _ENGINEER | {Permission.MANAGE_QUEUES},
    Role.OPERATOR: frozenset({Permission.VIEW, Permission.OPERATE_FLEET}),
    Role.ADMINISTRATOR: frozenset(Permission),
}


def allows(roles: frozenset[Role], permission: Permission) -> bool:
    """Whether any of the roles grants it."""
    return any(permission in GRANTS[role] for role in roles)
