"""Controllers of imports: folders are copied in one run, hub imports in time slices."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from apps.models.models import ModelVersion
from apps.models.selectors.model_versions import due_hub_imports
from apps.models.services import hub_imports, model_versions
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.registry.versions import ModelRefused, ModelState
from controlplane.domain.storage.team_storage import StorageQuotaExceeded
from controlplane.persistence.leases import LeaderLease, hold_leader_lease
from controlplane.persistence.state_transitions import LeaseLost
from controlplane.ports.artifacts import ArtifactError, StorageUnavailable

log = logging.getLogger(__name__)

LEASE = "registry.import"
HUB_IMPORTS_LEASE = "registry.hubs"
#: Renewed during a copy, so that the lease of a killed worker expires soon.
LEASE_TTL = timedelta(minutes=2)
RENEW_EVERY = timedelta(seconds=20)


def folder_imports_reconcile(*, at: datetime) -> int:
    """Import pending folders one after the other; return the number of versions that became ready."""
    with hold_leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        pending = ModelVersion.objects.filter(
            state=ModelState.IMPORTING, hub_import=None
        ).select_related("line__team")
        heartbeat = _lease_heartbeat(lease)
        try:
            return sum(
                _import_folder_version(version, at, heartbeat) for version in pending.order_by("id")
            )
        except LeaseLost:
            log.info("another worker imports now")
            return 0


def hub_imports_reconcile(*, at: datetime) -> int:
    """Fetch for the least recently served hub import; return the number of versions that became ready."""
    with hold_leader_lease(HUB_IMPORTS_LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        hub_imports.partial_downloads_cleanup(at=at)
        row = due_hub_imports(at=at).first()
        if row is None:
            return 0
        try:
            return int(
                hub_imports.hub_import_fetch(row, at=at, on_progress=_lease_heartbeat(lease))
            )
        except LeaseLost:
            log.info("another worker fetches now")
        except IllegalTransition:
            log.info("an import was ended meanwhile", extra={"version": row.version.uid})
        return 0


def _lease_heartbeat(lease: LeaderLease) -> Callable[[], None]:
    """Return a function that renews the lease at intervals and raises ``LeaseLost`` if another worker has it."""
    renewed = time.monotonic()

    def beat() -> None:
        nonlocal renewed
        if time.monotonic() - renewed < RENEW_EVERY.total_seconds():
            return
        if not lease.renew(ttl=LEASE_TTL):
            raise LeaseLost(
                "model_import.lease.lost", "another worker has the lease of the model imports"
            )
        renewed = time.monotonic()

    return beat


def _import_folder_version(
    version: ModelVersion, at: datetime, heartbeat: Callable[[], None]
) -> bool:
    try:
        files = model_versions.model_folder_store(
            version.source_path, team=version.line.team, on_progress=heartbeat
        )
        model_versions.model_version_complete_import(version=version, files=files, at=at)
    except StorageUnavailable:
        # The next run tries it again.
        raise
    except (ModelRefused, StorageQuotaExceeded, ArtifactError, OSError) as error:
        model_versions.model_version_fail_import(version=version, reason=str(error), at=at)
        return False
    except IllegalTransition:
        log.info("a version was imported by somebody else", extra={"version": version.uid})
        return False
    return True
