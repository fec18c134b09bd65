"""What deployments need of the registry's storage."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from apps.models.selectors.sources import Hold, OnlyHolds
from apps.serving.models import Revision


class ServingStorage(OnlyHolds):
    """Implements ``apps.models.selectors.sources.StorageSource``.

    A deployment stores nothing of its own: replicas write to their cluster's scratch space. It needs the model
    of each of its revisions, for it can go back to any of them until it is deleted; a stopped one can be
    started again.
    """

    name = "serving"

    def holds(self, *, at: datetime, of: Collection[int] | None = None) -> Mapping[int, Hold]:
        live = Revision.objects.filter(
            deployment__deleted_at=None, model_version__artifact__isnull=False
        )
        if of is not None:
            live = live.filter(model_version__artifact__in=of)
        rows = live.values_list("model_version__artifact", "deployment__name", "number")
        return {
            key: Hold(reason=f"deployment {name} can serve it (revision {number})", firm=True)
            for key, name, number in rows.order_by("pk")
        }
