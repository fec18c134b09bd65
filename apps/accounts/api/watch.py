"""Whose changes the watches of a user read, and the problem details of watches."""

from __future__ import annotations

from collections.abc import Collection

from apps.accounts.models import User
from apps.accounts.selectors import RequestUser, is_company_administrator, teams_visible
from controlplane.web.problem_details import register_problem
from controlplane.web.watch import TooManyWatches, WatchPositionExpired, set_watch_owners


def _owners_of(user: RequestUser) -> Collection[str] | None:
    if is_company_administrator(user):
        return None
    own = [f"user:{user.pk}"] if isinstance(user, User) else []
    return [*own, *(f"team:{key}" for key in teams_visible(user).values_list("pk", flat=True))]


set_watch_owners(_owners_of)
register_problem(WatchPositionExpired, code="watch-position-expired", status=410)
register_problem(TooManyWatches, code="too-many-watches", status=429, headers={"Retry-After": "5"})
