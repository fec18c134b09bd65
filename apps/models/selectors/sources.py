"""Who else needs bytes: the apps above this one, which it cannot import.

Jobs and deployments refer to blobs and versions of the registry. Each such app offers a *source* that
answers for its own rows, and the project connects them when it starts. Nothing is deleted while one of them
is missing: what nobody asked about would look needless.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from controlplane.domain.storage.retention import RetentionItem
from controlplane.domain.storage.usage import StorageKind

#: Sources without which nothing may be deleted.
REQUIRED = frozenset({"jobs", "serving", "workflows"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Why an artifact's bytes must stay."""

    reason: str
    #: A person cannot delete it either; otherwise it is only kept from rules.
    firm: bool


class StorageSource(Protocol):
    """What one app keeps in the artifact store and on clusters, and what it needs of the registry's."""

    @property
    def name(self) -> str: ...

    def digests(self) -> Iterator[str]:
        """Every blob that a row of the app names, repetitions included."""
        ...

    def holds(self, *, at: datetime, of: Collection[int] | None = None) -> Mapping[int, Hold]:
        """Artifacts that it needs, by primary key; with ``of``, only what it needs of those."""
        ...

    def items(self) -> Iterable[RetentionItem]:
        """What a rule could remove of its own."""
        ...

    def items_largest(self, *, teams: Collection[int], count: int) -> Iterable[RetentionItem]:
        """Of those that are of the teams (by primary key) at least the ``count`` largest, in any order."""
        ...

    def items_of(self, uid: str) -> Iterable[RetentionItem]:
        """Those that the attempt of that uid left."""
        ...

    def uses(self) -> Iterable[tuple[int, StorageKind, int]]:
        """Team (by primary key), kind and bytes of what it stores beside artifacts."""
        ...

    def measure(self, *, at: datetime) -> None:
        """Bring the ``StorageMeasure`` rows of its own up to date."""
        ...

    def makers(self, uids: Collection[str]) -> Mapping[str, tuple[str, str]]:
        """Of those of the attempts that are its own: what people call them, and the uid of their job."""
        ...

    def remove(self, item: RetentionItem, *, at: datetime) -> bool:
        """Remove the bytes of one of its items; False if that is no longer possible or was done before."""
        ...


class OnlyHolds:
    """A source but for ``name`` and ``holds``: of an app that keeps nothing of its own."""

    def digests(self) -> Iterator[str]:
        return iter(())

    def items(self) -> Iterable[RetentionItem]:
        return ()

    def items_largest(self, *, teams: Collection[int], count: int) -> Iterable[RetentionItem]:
        return ()

    def items_of(self, uid: str) -> Iterable[RetentionItem]:
        return ()

    def uses(self) -> Iterable[tuple[int, StorageKind, int]]:
        return ()

    def measure(self, *, at: datetime) -> None:
        """There is nothing to measure."""

    def makers(self, uids: Collection[str]) -> Mapping[str, tuple[str, str]]:
        return {}

    def remove(self, item: RetentionItem, *, at: datetime) -> bool:
        return False


class SourcesMissing(RuntimeError):
    """An app that needs bytes has not said which."""


_sources: dict[str, StorageSource] = {}


def connect(source: StorageSource) -> None:
    """Have it asked from now on; one of the same name is replaced."""
    _sources[source.name] = source


def sources() -> tuple[StorageSource, ...]:
    """Every source, by name.

    :raises SourcesMissing: if one of those that must be asked is not connected.
    """
    if missing := REQUIRED - _sources.keys():
        raise SourcesMissing(f"nothing says what {', '.join(sorted(missing))} needs")
    return tuple(_sources[name] for name in sorted(_sources))
