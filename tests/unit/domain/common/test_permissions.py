from __future__ import annotations

from itertools import product

from controlplane.domain.common.permissions import (
    COMPANY_GRANTS,
    GRANTS,
    CompanyRole,
    Permission,
    TeamRole,
    roles_grant,
)
from tests.cases import for_each_case

#: Which permissions each role has, as one letter a permission in the order of ``Permission``.
MATRIX = {
    #                      view contribute run deploy keys queues fleet team
    TeamRole.VIEWER: "         y    -          -   -      -    -      -     -   ",
    TeamRole.ENGINEER: "       y    y          y   y      y    -      -     -   ",
    TeamRole.QUEUE_ADMIN: "    y    y          y   y      y    y      -     -   ",
    TeamRole.ADMINISTRATOR: "  y    y          y   y      y    y      -     y   ",
}


@for_each_case(("role", "permission"), list(product(TeamRole, Permission)))
def test_each_role_may_do_what_the_matrix_says(role: TeamRole, permission: Permission) -> None:
    letter = MATRIX[role].split()[list(Permission).index(permission)]

    assert roles_grant(frozenset({role}), permission) is (letter == "y")


def test_the_fleet_is_operated_by_a_company_role_only() -> None:
    assert not roles_grant(frozenset(TeamRole), Permission.OPERATE_FLEET)
    assert {CompanyRole.OPERATOR: {Permission.OPERATE_FLEET}} == COMPANY_GRANTS


def test_every_role_is_granted_something_and_everybody_may_look() -> None:
    assert set(GRANTS) == set(TeamRole)
    assert all(Permission.VIEW in granted for granted in GRANTS.values())


def test_no_role_allows_nothing_and_several_add_up() -> None:
    both = frozenset({TeamRole.VIEWER, TeamRole.QUEUE_ADMIN})
    assert not any(roles_grant(frozenset(), permission) for permission in Permission)
    assert roles_grant(both, Permission.RUN)
    assert roles_grant(both, Permission.MANAGE_QUEUES)
    assert not roles_grant(both, Permission.MANAGE_TEAM)
