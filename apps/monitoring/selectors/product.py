"""How the product itself does, in one look."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.accounts import selectors as accounts
from apps.accounts.models import User
from apps.monitoring.selectors.components import (
    Component,
    Condition,
    Kind,
    broker_waiting,
    components,
    versions,
)
from apps.monitoring.selectors.loops import Loop, loops_now

ERRORS_SHOWN_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentError:
    """What went wrong lately, in the words of whoever met it."""

    #: ``loop`` or ``cluster``, and which.
    kind: str
    name: str
    text: str
    at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductStatus:
    at: datetime
    components: tuple[Component, ...]
    loops: tuple[Loop, ...]
    errors: tuple[RecentError, ...]
    versions: dict[str, str]

    @property
    def condition(self) -> Condition:
        """The worst of all parts, and of the loops."""
        found = {component.condition for component in self.components}
        if any(loop.troubled for loop in self.loops):
            found.add(Condition.TROUBLED)
        worst_first = (Condition.DOWN, Condition.TROUBLED, Condition.UNKNOWN, Condition.WELL)
        return next(condition for condition in worst_first if condition in found)


def product_status() -> ProductStatus:
    """Every part, every loop, and what went wrong within :data:`ERRORS_SHOWN_FOR`.

    :raises django.db.Error: if the database does not answer.
    """
    loops = loops_now()
    parts = components(loops, waiting=broker_waiting())
    failed = [
        RecentError(kind="loop", name=loop.name, text=loop.error, at=loop.failed_at)
        for loop in loops.all
        if loop.failed_at is not None and loops.at - loop.failed_at < ERRORS_SHOWN_FOR
    ]
    failed.sort(key=lambda error: error.at or loops.at, reverse=True)
    troubled = [
        RecentError(kind="cluster", name=part.name, text=part.facts["trouble"], at=None)
        for part in parts
        if part.kind is Kind.CLUSTER and part.facts["trouble"]
    ]
    return ProductStatus(
        at=loops.at,
        components=parts,
        loops=loops.all,
        errors=(*troubled, *failed),
        versions=versions(),
    )


def may_see_product(user: accounts.RequestUser) -> bool:
    """Whether they administer something or operate the fleet: the state of the product is for them."""
    return isinstance(user, User) and user.is_active and (user.is_staff or user.is_superuser)


def require_product(user: accounts.RequestUser) -> None:
    """:raises PermissionRefused: if it is not."""
    if not may_see_product(user):
        raise accounts.PermissionRefused(
            "how the product itself does is for operators, queue admins and administrators; you are none of"
            " these. An administrator of the company can change that."
        )
