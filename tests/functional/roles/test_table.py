"""Role × action × whose: everybody may do what the table says, and nothing more."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, resolve

from tests.functional.roles.asking import ask, outcome_of, text_of
from tests.functional.roles.conftest import World, client_of
from tests.functional.roles.rules import Outcome, Row, Whose, expected
from tests.functional.roles.sides import RANDOM
from tests.functional.roles.table import ELSEWHERE, PAGES, REST

_PLACE = re.compile(r"\{[^}]*\}")
PEOPLE = (
    "anonymous",
    "deactivated",
    "viewer",
    "engineer",
    "queue_admin",
    "operator",
    "administrator",
    "company",
)
# The mark has the database made; the world is one for the module.
pytestmark = pytest.mark.django_db
ROWS = (*REST, *PAGES)


#: Whose thing it is matters only where a row speaks of one.
CASES = [
    pytest.param(row, whose, id=f"{row} ({whose})")
    for row in ROWS
    for whose in Whose
    if whose is Whose.OWN or row.of_a_team or row.names_a_team
]


@pytest.mark.parametrize("who", PEOPLE)
@pytest.mark.parametrize(("row", "whose"), CASES)
def test_everybody_may_do_what_the_table_says(
    undone: World, row: Row, who: str, whose: Whose
) -> None:
    answer = ask(client_of(who, undone), row, undone.names(whose))
    text_of(answer)
    wanted = expected(row, who=who, whose=whose)
    if wanted is Outcome.ABSENT and not row.of_a_team and row.names_a_team:
        # Named in the body: refused as a value that there is not.
        assert answer.status_code in (400, 404, 422)
    else:
        assert outcome_of(answer) == wanted


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


def _route_of(path: str) -> str:
    return resolve(_PLACE.sub(RANDOM, path.partition("?")[0])).route


def test_no_address_is_forgotten() -> None:
    known = {_route_of(row.path) for row in ROWS} | {_route_of(path) for path in ELSEWHERE}
    routes = (route for route, _pattern in _routes(get_resolver()) if route not in known)
    missing = [route for route in routes if not route.startswith("admin/")]
    assert missing == [], "give each a row in tests/functional/roles/rows"


def test_no_method_of_rest_is_forgotten() -> None:
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
