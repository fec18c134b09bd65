"""What deployments need of the registry's storage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from apps.models.selectors.sources import Hold
from apps.serving.models import Revision
from controlplane.domain.retention import Item
from controlplane.domain.storage import StorageKind


class ServingStorage:
    """Implements ``apps.models.selectors.sources.StorageSource``.

    A deployment stores nothing of its own. It needs the model of each of its revisions, for it can go back
    to any of them until it is deleted; a stopped one can be started again.
    """

    name = "serving"

    def digests(self) -> Iterator[str]:
        return iter(())

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

    def items(self) -> Iterable[Item]:
        return ()

    def items_largest(self, *, teams: Collection[int], count: int) -> Iterable[Item]:
        return ()

    def items_of(self, uid: str) -> Iterable[Item]:
        return ()

    def uses(self) -> Iterable[tuple[int, StorageKind, int]]:
        return ()

    def measure(self, *, at: datetime) -> None:
        """Nothing is measured: replicas write to their cluster's scratch space only."""

    def makers(self, uids: Collection[str]) -> Mapping[str, tuple[str, str]]:
        return {}

    def remove(self, item: Item, *, at: datetime) -> bool:
        return False
