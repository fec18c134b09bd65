"""Model hubs and imports from them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import F, Q, QuerySet, Sum

from apps.accounts.models import Team
from apps.models.models import HubImport, ModelVersion
from controlplane.domain.registry.versions import ModelState
from controlplane.ports import registry
from controlplane.ports.hubs import Hub


@dataclass(frozen=True, slots=True, kw_only=True)
class HubEndpoint:
    """A hub with the URL and the token by which this installation reaches it."""

    hub: Hub
    #: URL of the configured mirror, else of the hub.
    address: str
    token: str


def hub_endpoints() -> tuple[HubEndpoint, ...]:
    return tuple(hub_endpoint(name) for name in registry.hub_names())


def hub_endpoint(name: str) -> HubEndpoint:
    """:raises UnknownAdapter: if no package provides it."""
    hub = registry.hub(name)
    access = settings.NINEFOLD_HUBS.get(name)
    return HubEndpoint(
        hub=hub,
        address=(access.address if access else "") or hub.address,
        token=access.token if access else "",
    )


def hub_import_of(version: ModelVersion) -> HubImport | None:
    """The hub import of a version; None if it does not come from a hub."""
    return HubImport.objects.filter(version=version).first()


def imports_due(*, at: datetime) -> QuerySet[HubImport]:
    """Unfinished imports whose next attempt is due, least recently served first."""
    return (
        HubImport.objects.filter(version__state=ModelState.IMPORTING)
        .filter(Q(retry_at=None) | Q(retry_at__lte=at))
        .select_related("version__line__team")
        .order_by(F("served_at").asc(nulls_first=True), "id")
    )


def bytes_importing(team: Team) -> int:
    """Total size of the team's unfinished imports, in bytes."""
    rows = HubImport.objects.filter(version__state=ModelState.IMPORTING, version__line__team=team)
    return int(rows.aggregate(size=Sum("size"))["size"] or 0)


def versions_with_partial_downloads(*, failed_since: datetime) -> frozenset[str]:
    """Uids of versions whose partial downloads may still be resumed."""
    failed = Q(version__state=ModelState.FAILED, served_at__gte=failed_since)
    rows = HubImport.objects.filter(Q(version__state=ModelState.IMPORTING) | failed)
    return frozenset(rows.values_list("version__uid", flat=True))


def partial_downloads_folder() -> Path:
    """The folder of partial downloads, with one subfolder per version uid."""
    return Path(settings.NINEFOLD_HOME) / "tmp" / "hubs"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportProgress:
    """Bytes received by an import and its estimated time left."""

    received: int
    size: int
    #: Time left at the current speed; None if that is unknown.
    left: timedelta | None


def import_progress(found: HubImport) -> ImportProgress:
    missing = max(0, found.size - found.received)
    left = timedelta(seconds=missing / found.speed) if found.speed else None
    return ImportProgress(received=found.received, size=found.size, left=left)
