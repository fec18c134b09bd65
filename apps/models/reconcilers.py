"""Import models: copy what was registered from a folder into the artifact store."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from apps.models.models import ModelVersion
from apps.models.services import versions
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.models import ModelRefused, ModelState
from controlplane.persistence.leases import loop_lease
from controlplane.ports.artifacts import ArtifactError

log = logging.getLogger(__name__)

LEASE = "registry.import"
LEASE_TTL = timedelta(minutes=30)


def models_import(*, at: datetime) -> int:
    """Import what waits, one after the other; say how many versions became ready."""
    with loop_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        waiting = ModelVersion.objects.filter(state=ModelState.IMPORTING).select_related("line")
        return sum(_import(version, at) for version in waiting.order_by("id"))


def _import(version: ModelVersion, at: datetime) -> bool:
    try:
        files = versions.folder_store(version.source_path)
        versions.model_version_imported(version=version, files=files, at=at)
    except (ModelRefused, ArtifactError, OSError) as error:
        versions.model_version_failed(version=version, reason=str(error), at=at)
        return False
    except IllegalTransition:
        log.info("a version was imported by somebody else", extra={"version": version.uid})
        return False
    return True
