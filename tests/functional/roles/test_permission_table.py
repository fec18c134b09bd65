"""Role × action × whose: everybody may do what the table says, and nothing more.

Nor does an answer show anything of another team: not in lists, counts, choices, messages, nor by its absence.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, resolve

from tests.functional.roles.conftest import VISITORS, Undone, World, client_of
from tests.functional.roles.leak_detection import leaked_texts, unknown_uids
from tests.functional.roles.permission_rules import Outcome, PermissionRow, Whose, expected
from tests.functional.roles.permission_table import ELSEWHERE, PAGES, REST
from tests.functional.roles.role_requests import (
    RoleResponse,
    difference,
    normalized,
    noting_role,
    response_of,
)
from tests.functional.roles.team_data import RANDOM

_PLACE = re.compile(r"\{[^}]*\}")
#: In whose answers nothing of the other team may be; the company's administrator belongs to all.
INSIDERS = ("viewer", "engineer", "queue_admin", "operator", "administrator")
#: Who asks for another team's things, and for some that never were.
COMPARERS = ("engineer", "administrator")
# The mark has the database made; the world is one for the module.
pytestmark = [pytest.mark.django_db, pytest.mark.slow]
ROWS = (*REST, *PAGES)


#: Whose thing it is matters only where a row speaks of one.
CASES = [
    pytest.param(row, whose, id=f"{row} ({whose})")
    for row in ROWS
    for whose in Whose
    if whose is Whose.OWN or row.of_a_team or row.names_a_team
]


@pytest.mark.parametrize(("row", "whose"), CASES)
def test_roles_have_the_permissions_of_the_table(
    world: World, row: PermissionRow, whose: Whose
) -> None:
    """All that differs, at once: one of eight people after the other, each as if nobody had come before."""
    differs = {}
    for who in VISITORS:
        with noting_role(who), Undone():
            answer = response_of(client_of(who, world), row, world.names(whose))
        wrong = [*_not_as_the_table_says(answer, row, who, whose)]
        if who in INSIDERS and whose is Whose.OWN and row.method == "GET":
            wrong += leaked_texts(answer.text, row, world.other.names)
        if who in COMPARERS and whose is Whose.OTHER and row.of_a_team:
            with noting_role(who), Undone():
                names = unknown_uids(world.other.names)
                absent = response_of(client_of(who, world), row, world.everybodys | names)
            wrong += _leaked_differences(answer, absent, world.other.names)
        if wrong:
            differs[who] = wrong
    assert differs == {}


def _not_as_the_table_says(
    answer: RoleResponse, row: PermissionRow, who: str, whose: Whose
) -> Iterator[str]:
    wanted = expected(row, who=who, whose=whose)
    if wanted is Outcome.ABSENT and not row.of_a_team and row.names_a_team:
        # Named in the body: refused as a value that there is not.
        if answer.status not in (400, 404, 422):
            yield f"answered {answer.status}, should be refused"
    elif answer.outcome != wanted:
        yield f"{answer.outcome}, should be {wanted}"


def _leaked_differences(
    found: RoleResponse, absent: RoleResponse, theirs: Mapping[str, str]
) -> list[str]:
    """What is another team's looks like what never was."""
    if found.status != absent.status:
        return [f"answered {found.status}, and {absent.status} where there is nothing"]
    return difference(normalized(found.text, theirs), normalized(absent.text, unknown_uids(theirs)))


def _routes(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in resolver.url_patterns:
        own = str(pattern.pattern)
        # As Django joins them.
        route = prefix + own.removeprefix("^") if prefix else own
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern, route)
        else:
            yield route, pattern


def _methods(pattern: URLPattern) -> frozenset[str]:
    """Those that a view of REST tells of."""
    view = pattern.callback
    actions = getattr(view, "actions", None)
    if actions:
        return frozenset(method.upper() for method in actions if method != "head")
    found = getattr(view, "cls", None)
    known = ("get", "post", "put", "patch", "delete")
    return frozenset(method.upper() for method in known if found and hasattr(found, method))


@functools.cache
def _route_of(path: str) -> str:
    return resolve(_PLACE.sub(RANDOM, path.partition("?")[0])).route


def test_every_url_is_in_the_permission_table() -> None:
    known = {_route_of(row.path) for row in ROWS} | {_route_of(path) for path in ELSEWHERE}
    routes = (route for route, _pattern in _routes(get_resolver()) if route not in known)
    missing = [route for route in routes if not route.startswith("admin/")]
    assert missing == [], "give each a row in tests/functional/roles/rows"


def test_every_rest_method_is_in_the_permission_table() -> None:
    known = {(row.method, _route_of(row.path)) for row in REST}
    elsewhere = {_route_of(path) for path in ELSEWHERE}
    missing = [
        (method, route)
        for route, pattern in _routes(get_resolver())
        if route.startswith("api/") and route not in elsewhere
        for method in sorted(_methods(pattern))
        if (method, route) not in known
    ]
    assert missing == [], "give each a row in tests/functional/roles/rows"
