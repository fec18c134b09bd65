"""Loading of the catalog's data files into rows, and linking of versions to entries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction

from apps.models.models import CatalogCell, CatalogModel, ModelVersion
from apps.models.selectors import catalog as selectors
from controlplane.domain.architectures import ConfigRefused, parse_architecture
from controlplane.domain.catalog import CatalogEntry, CompatibilityCell
from controlplane.domain.catalog.entries import match_entry
from controlplane.domain.catalog.parsing import Catalog
from controlplane.domain.registry.versions import ModelConfig
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogChange:
    """One changed field or cell of an entry."""

    #: A field, or ``task/vendor/engine`` of a cell.
    what: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogLoadChanges:
    """Changes of a load, by entry key."""

    added: tuple[str, ...] = ()
    changed: Mapping[str, tuple[CatalogChange, ...]] = field(default_factory=dict)
    #: Marked because the data files no longer contain them; their rows stay.
    withdrawn: tuple[str, ...] = ()
    #: Contained in the data files again.
    returned: tuple[str, ...] = ()
    unchanged: int = 0
    #: Versions linked to an entry.
    linked: int = 0

    def lines(self) -> list[str]:
        """One line per change and a summary line, as printed by ``catalog_load``."""
        lines = [f"+ {key}" for key in self.added]
        for key, changes in self.changed.items():
            lines += [f"~ {key}: {one.what}: {one.before!r} → {one.after!r}" for one in changes]
        lines += [f"- {key}: withdrawn" for key in self.withdrawn]
        lines += [f"+ {key}: there again" for key in self.returned]
        return [
            *lines,
            f"{len(self.added)} added, {len(self.changed)} changed, {len(self.withdrawn)} withdrawn, "
            f"{len(self.returned)} returned, {self.unchanged} unchanged; "
            f"{self.linked} versions linked",
        ]


#: Fields of an entry that are columns of its row by the same name.
_COLUMNS = tuple(name for name in selectors.COLUMNS if name != "key")


@transaction.atomic
def catalog_load(*, catalog: Catalog, at: datetime) -> CatalogLoadChanges:
    """Update the rows to the catalog; idempotent.

    Entries that the catalog no longer has are marked as withdrawn, never deleted, because versions refer to them.
    """
    lock_in_transaction(AdvisoryLock.LOAD_CATALOG)
    rows = {row.key: row for row in CatalogModel.objects.prefetch_related("cells")}
    added = [entry for key, entry in catalog.entries.items() if key not in rows]
    outdated = [
        (rows[key], entry)
        for key, entry in catalog.entries.items()
        if key in rows and rows[key].digest != entry.digest
    ]
    returned = [rows[key] for key in catalog.entries if key in rows and rows[key].withdrawn_at]
    gone = [row for key, row in rows.items() if key not in catalog.entries and not row.withdrawn_at]
    changed = {
        row.key: _entry_changes(selectors.catalog_entry_from_row(row), entry)
        for row, entry in outdated
    }
    created = CatalogModel.objects.bulk_create(
        CatalogModel(key=entry.key, digest=entry.digest, **_entry_columns(entry)) for entry in added
    )
    for row, entry in outdated:
        for name, value in _entry_columns(entry).items():
            setattr(row, name, value)
        row.digest = entry.digest
    CatalogModel.objects.bulk_update([row for row, _ in outdated], ["digest", *_COLUMNS])
    _cells_replace([*zip(created, added, strict=True), *outdated])
    CatalogModel.objects.filter(pk__in=[row.pk for row in returned]).update(withdrawn_at=None)
    CatalogModel.objects.filter(pk__in=[row.pk for row in gone]).update(withdrawn_at=at)
    return CatalogLoadChanges(
        added=tuple(entry.key for entry in added),
        changed=changed,
        withdrawn=tuple(row.key for row in gone),
        returned=tuple(row.key for row in returned),
        unchanged=len(catalog.entries) - len(added) - len(outdated),
        linked=_link_versions_to_catalog(catalog),
    )


def _entry_columns(entry: CatalogEntry) -> dict[str, Any]:
    return {name: _list_if_tuple(getattr(entry, name)) for name in _COLUMNS}


def _list_if_tuple(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _cells_replace(rows: Sequence[tuple[CatalogModel, CatalogEntry]]) -> None:
    CatalogCell.objects.filter(model__in=[row for row, _ in rows]).delete()
    CatalogCell.objects.bulk_create(
        CatalogCell(
            model=row,
            task=cell.task,
            vendor=cell.vendor,
            engine=cell.engine,
            status=cell.status,
            versions=cell.versions,
            methods=list(cell.methods),
            evidence=list(cell.evidence),
            caveat=cell.caveat or "",
        )
        for row, entry in rows
        for cell in entry.cells
    )


def _entry_changes(before: CatalogEntry, after: CatalogEntry) -> tuple[CatalogChange, ...]:
    fields = [
        CatalogChange(what=name, before=old, after=new)
        for name in _COLUMNS
        if (old := _list_if_tuple(getattr(before, name)))
        != (new := _list_if_tuple(getattr(after, name)))
    ]
    old_cells, new_cells = _cells_by_name(before), _cells_by_name(after)
    cells = [
        CatalogChange(
            what=name,
            before=_format_cell(old_cells.get(name)),
            after=_format_cell(new_cells.get(name)),
        )
        for name in sorted(old_cells | new_cells)
        if old_cells.get(name) != new_cells.get(name)
    ]
    return (*fields, *cells)


def _cells_by_name(entry: CatalogEntry) -> dict[str, CompatibilityCell]:
    return {f"{cell.task}/{cell.vendor}/{cell.engine}": cell for cell in entry.cells}


def _format_cell(cell: CompatibilityCell | None) -> str:
    if cell is None:
        return "nothing"
    more = (cell.versions, ", ".join(cell.methods), ", ".join(cell.evidence), cell.caveat or "")
    return "; ".join((cell.status.value, *(part for part in more if part)))


def _link_versions_to_catalog(catalog: Catalog) -> int:
    """Link versions without an entry; return the number of versions linked."""
    open_versions = ModelVersion.objects.filter(catalog_model=None, base=None).exclude(config=None)
    found = 0
    for version in open_versions.select_related("line"):
        row = catalog_model_of(
            config=version.config or {},
            parameters=version.parameters,
            names=folder_names(version.source_path),
            entries=catalog.entries,
        )
        if row is not None:
            found += ModelVersion.objects.filter(pk=version.pk, catalog_model=None).update(
                catalog_model=row
            )
    return found


def folder_names(source_path: str) -> list[str]:
    """The name of the folder that a version was imported from, and of the folder that it links to."""
    folder = Path(source_path)
    return [folder.name, folder.resolve().name] if source_path else []


def version_columns_from_config(
    *, config: ModelConfig, parameters: int, names: Sequence[str] = ()
) -> dict[str, Any]:
    """Columns of a version derived from its ``config.json`` and its weights."""
    raw = _to_postgres_json(config.raw)
    return {
        "architecture": config.architecture,
        "context_length": config.context_length,
        "parameters": parameters,
        "scheme": config.scheme,
        "format": config.format,
        "config": raw,
        "catalog_model": catalog_model_of(config=raw, parameters=parameters, names=names),
    }


def _to_postgres_json(config: Any) -> Any:
    """The value without NUL characters, lone surrogates and non-finite numbers, which PostgreSQL rejects."""
    if isinstance(config, Mapping):
        return {_to_postgres_json(key): _to_postgres_json(value) for key, value in config.items()}
    if isinstance(config, list):
        return [_to_postgres_json(value) for value in config]
    if isinstance(config, str):
        return config.replace("\0", "").encode("utf-8", "replace").decode()
    return None if isinstance(config, float) and not math.isfinite(config) else config


def catalog_model_of(
    *,
    config: Mapping[str, Any],
    parameters: int,
    names: Sequence[str] = (),
    entries: Mapping[str, CatalogEntry] | None = None,
) -> CatalogModel | None:
    """The row of the matching entry; None if none matches unambiguously.

    ``names`` are repositories or folders that the model came from, the most reliable first; the name in
    ``config.json`` is tried last. ``parameters`` are those of its weights, 0 if they were not counted.
    """
    known = selectors.catalog_snapshot().entries if entries is None else entries
    own = config.get("_name_or_path")
    try:
        built = parse_architecture(config, parameters=parameters or None)
    except ConfigRefused:
        built = None
    entry = match_entry(
        known.values(), names=[*names, own] if isinstance(own, str) else names, built=built
    )
    return None if entry is None else CatalogModel.objects.filter(key=entry.key).first()
