"""Storage consumers: what the apps above this one store and which artifacts they require.

Jobs, deployments and pipelines refer to blobs and versions of the registry, and this app cannot import them. Each
of these apps has a *consumer* that answers for its own rows. ``settings.NINEFOLD_STORAGE_CONSUMERS`` lists
them: the artifacts of an app that is missing there would look unused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils.module_loading import import_string

from controlplane.domain.storage.team_storage import RetentionItem, StorageKind


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageHold:
    """Why an artifact's bytes must be kept."""

    reason: str
    #: True: users cannot delete it either. False: only retention rules skip it.
    firm: bool


class StorageConsumer:
    """What one app stores in the artifact store and on clusters, and which artifacts it requires.

    An app that stores nothing itself only says which artifacts it holds.
    """

    def holds(
        self, *, at: datetime, of: Collection[int] | None = None
    ) -> Mapping[int, StorageHold]:
        """Artifacts that it requires, by primary key; with ``of``, only those among the given keys."""
        raise NotImplementedError

    def digests(self) -> Iterator[str]:
        """Every blob that a row of the app references, including repetitions."""
        return iter(())

    def items(self) -> Iterable[RetentionItem]:
        """Items of its own that a retention rule may remove."""
        return ()

    def largest_items(self, *, teams: Collection[int], count: int) -> Iterable[RetentionItem]:
        """At least the ``count`` largest items of the teams (by primary key), in any order."""
        return ()

    def items_of_attempt(self, uid: str) -> Iterable[RetentionItem]:
        """Items of the attempt with that uid."""
        return ()

    def usage(self) -> Iterable[tuple[int, StorageKind, int]]:
        """Team (primary key), kind and bytes of what it stores outside artifacts."""
        return ()

    def measure(self, *, at: datetime) -> None:
        """Update its own ``StorageMeasure`` rows."""

    def attempt_labels(self, uids: Collection[str]) -> Mapping[str, tuple[str, str]]:
        """For those of the attempts that are its own: display name and uid of the job."""
        return {}

    def remove(self, item: RetentionItem, *, at: datetime) -> bool:
        """Remove the bytes of one of its items; False if that is no longer possible or was done before."""
        return False


def storage_consumers() -> tuple[StorageConsumer, ...]:
    """The consumers that ``settings.NINEFOLD_STORAGE_CONSUMERS`` lists.

    :raises ImportError: if one of them cannot be imported; nothing is deleted then.
    """
    return tuple(import_string(path)() for path in settings.NINEFOLD_STORAGE_CONSUMERS)
