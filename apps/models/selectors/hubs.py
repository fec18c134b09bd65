"""Hubs that models can be fetched from, and imports on their way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import F, Q, QuerySet, Sum

from apps.accounts.models import Team
from apps.models.models import HubImport, ModelVersion
from controlplane.domain.models import ModelState
from controlplane.ports import registry
from controlplane.ports.hubs import Hub


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPlace:
    """A hub, and how this installation reaches it."""

    hub: Hub
    #: Of the mirror that is set, else the hub's own.
    address: str
    token: str


def hub_places() -> tuple[HubPlace, ...]:
    return tuple(hub_place(name) for name in registry.hub_names())


def hub_place(name: str) -> HubPlace:
    """:raises UnknownAdapter: if no package provides it."""
    hub = registry.hub(name)
    access = settings.NINEFOLD_HUBS.get(name)
    return HubPlace(
        hub=hub,
        address=(access.address if access else "") or hub.address,
        token=access.token if access else "",
    )


def hub_import_of(version: ModelVersion) -> HubImport | None:
    """Where the version comes from, if it came from a hub."""
    return HubImport.objects.filter(version=version).first()


def imports_due(*, at: datetime) -> QuerySet[HubImport]:
    """Imports that wait for bytes, those that were served longest ago first."""
    return (
        HubImport.objects.filter(version__state=ModelState.IMPORTING)
        .filter(Q(retry_at=None) | Q(retry_at__lte=at))
        .select_related("version__line__team")
        .order_by(F("served_at").asc(nulls_first=True), "id")
    )


def bytes_arriving(team: Team) -> int:
    """Of the team's imports that are on their way."""
    rows = HubImport.objects.filter(version__state=ModelState.IMPORTING, version__line__team=team)
    return int(rows.aggregate(size=Sum("size"))["size"] or 0)


def versions_with_parts(*, failed_since: datetime) -> frozenset[str]:
    """Uids of versions whose parts are still of use."""
    failed = Q(version__state=ModelState.FAILED, served_at__gte=failed_since)
    rows = HubImport.objects.filter(Q(version__state=ModelState.IMPORTING) | failed)
    return frozenset(rows.values_list("version__uid", flat=True))


def parts_folder() -> Path:
    """Where files that are on their way lie, a folder for each version."""
    return Path(settings.NINEFOLD_HOME) / "tmp" / "hubs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headway:
    """How far an import is."""

    received: int
    size: int
    #: Until the last byte at the present speed; None where that is not known.
    left: timedelta | None


def headway(found: HubImport) -> Headway:
    missing = max(0, found.size - found.received)
    left = timedelta(seconds=missing / found.speed) if found.speed else None
    return Headway(received=found.received, size=found.size, left=left)
