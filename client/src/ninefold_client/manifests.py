"""Documents of ``apply``: parsing, and differences between what is wanted and what exists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from ninefold_client.errors import ManifestError

API_VERSION = "ninefold/v1"
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_TOP_FIELDS = ("apiVersion", "kind", "metadata", "spec")
_METADATA_FIELDS = ("name", "team", "labels")
#: Of an archive of code that is uploaded already; a folder of such a name is written as ``./name``.
_UID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One document: what an object should be."""

    kind: str
    name: str
    team: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)
    #: Where it was read, for messages.
    source: str = ""
    #: The folder that relative paths of files start from; None: the current one.
    folder: Path | None = None

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def code_folder(self) -> Path | None:
        """The folder with the program of a job; None if the document names none."""
        code = self.spec.get("code")
        if self.kind != "Job" or not is_code_folder(code):
            return None
        return (self.folder or Path()) / str(code)

    def as_document(self) -> dict[str, Any]:
        """As :func:`parse_manifests` reads it."""
        metadata = {"name": self.name, **({"team": self.team} if self.team else {})}
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "metadata": metadata,
            "spec": dict(self.spec),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field whose value is not the wanted one; a missing value is None."""

    field: str
    before: Any
    after: Any


def is_code_folder(code: Any) -> bool:
    """Return whether the field ``code`` of a job names a folder, not the uid of an archive."""
    return code is not None and not _UID.fullmatch(str(code))


def read_manifests(path: Path, *, kinds: Iterable[str]) -> list[Manifest]:
    """Return the documents of a file, or of all YAML and JSON files below a folder in the order of their names.

    A folder with the program of a job may contain other YAML and JSON files. A single file may be empty.

    :raises ManifestError: if a file cannot be read, a document is invalid, or a folder contains none.
    """
    files = (
        sorted(one for one in path.rglob("*") if one.suffix in _SUFFIXES)
        if path.is_dir()
        else [path]
    )
    if not files:
        raise ManifestError(f"{path} contains no .yaml, .yml or .json file")
    known = tuple(kinds)
    found: list[Manifest] = []
    errors: dict[Path, ManifestError] = {}
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            errors[file] = ManifestError(f"{file} cannot be read: {error}")
            continue
        try:
            found += [
                replace(one, folder=file.parent)
                for one in parse_manifests(text, source=str(file), kinds=known)
            ]
        except ManifestError as error:
            if API_VERSION in text:
                raise
            errors[file] = error
    programs = [folder.resolve() for one in found if (folder := one.code_folder) is not None]
    for file, refusal in errors.items():
        if not any(file.resolve().is_relative_to(folder) for folder in programs):
            raise refusal
    if not found and path.is_dir():
        raise ManifestError(f"{path} contains no document")
    return found


def parse_manifests(text: str, *, source: str, kinds: Iterable[str]) -> list[Manifest]:
    """Return the documents of a YAML or JSON text; none if it is empty.

    :raises ManifestError: naming document, field, value and fix.
    """
    try:
        documents = [one for one in yaml.safe_load_all(text) if one is not None]
    except yaml.YAMLError as error:
        raise ManifestError(f"{source} is not valid YAML: {error}") from error
    known = tuple(kinds)
    found = [
        _manifest(one, source=f"{source}, document {number}", kinds=known)
        for number, one in enumerate(documents, start=1)
    ]
    for index, one in enumerate(found):
        twins = [
            each
            for each in found[:index]
            if (each.kind, each.name, each.team) == (one.kind, one.name, one.team)
        ]
        if twins:
            raise ManifestError(
                f"{one.source}: {one} is declared twice; the first is in {twins[0].source}"
            )
    return found


def _manifest(document: Any, *, source: str, kinds: tuple[str, ...]) -> Manifest:
    if not isinstance(document, Mapping):
        raise ManifestError(f"{source} is not a mapping with the fields {', '.join(_TOP_FIELDS)}")
    _check_fields(document, _TOP_FIELDS, source=source, prefix="")
    if document.get("apiVersion") != API_VERSION:
        raise ManifestError(
            f"{source}: apiVersion is {document.get('apiVersion')!r}; it must be {API_VERSION!r}"
        )
    kind = document.get("kind")
    if kind not in kinds:
        raise ManifestError(f"{source}: kind is {kind!r}; it must be one of {', '.join(kinds)}")
    metadata = document.get("metadata")
    if (
        not isinstance(metadata, Mapping)
        or not isinstance(metadata.get("name"), str)
        or not metadata["name"]
    ):
        raise ManifestError(f"{source}: metadata.name is missing; give the {kind} a name")
    _check_fields(metadata, _METADATA_FIELDS, source=source, prefix="metadata.")
    if metadata.get("labels"):
        raise ManifestError(f"{source}: metadata.labels is not stored by this server; remove it")
    spec = document.get("spec") or {}
    if not isinstance(spec, Mapping):
        raise ManifestError(f"{source}: spec is {spec!r}; it must be a mapping")
    return Manifest(
        kind=str(kind),
        name=metadata["name"],
        team=str(metadata.get("team") or ""),
        spec=spec,
        source=source,
    )


def _check_fields(
    document: Mapping[str, Any], known: tuple[str, ...], *, source: str, prefix: str
) -> None:
    for name in document:
        if name not in known:
            raise ManifestError(
                f"{source}: unknown field {prefix}{name}; known fields: {', '.join(known)}"
            )


def differences(
    wanted: Mapping[str, Any], live: Mapping[str, Any], *, prefix: str = ""
) -> Iterator[Difference]:
    """Iterate over the fields of ``wanted`` with another value in ``live``; omitted fields are unmanaged."""
    for name, after in wanted.items():
        before, path = live.get(name), f"{prefix}{name}"
        if isinstance(after, Mapping) and isinstance(before, Mapping):
            yield from differences(after, before, prefix=f"{path}.")
        elif _are_lists_of_mappings(after, before):
            yield from differences(_by_index(after), _by_index(before), prefix=f"{path}.")
        elif before != after:
            yield Difference(field=path, before=before, after=after)


def _by_index(values: Any) -> dict[str, Any]:
    return {str(index): one for index, one in enumerate(values)}


def _are_lists_of_mappings(*values: Any) -> bool:
    """Return whether the values are lists of the same length that contain only mappings."""
    return len({len(one) if isinstance(one, list) else -1 for one in values}) == 1 and all(
        isinstance(one, list) and all(isinstance(each, Mapping) for each in one) for one in values
    )
