"""What a model of the registry or of the catalog takes in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from apps.accounts import selectors as accounts
from apps.models.models import ModelVersion
from apps.models.selectors import artifact_store, model_versions_visible
from apps.models.selectors.catalog import shelf
from controlplane.domain.architectures import Architecture, ConfigRefused, from_facts, read
from controlplane.domain.catalog.entries import architecture_facts
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import FieldFinding, check_fields, with_defaults
from controlplane.domain.sizing import (
    USUAL,
    Answer,
    EngineMemory,
    UnknownScheme,
    answer,
    serving_memory,
    serving_wanted,
)
from controlplane.domain.specs.sizing import SIZING, STORED
from controlplane.ports import registry as ports
from controlplane.ports.artifacts import ArtifactError

#: A configuration that is larger is none.
_LARGEST_CONFIG = 1 << 20


class SizingRefused(Exception):
    """Nothing can be said; ``findings`` names each field that is wrong."""

    def __init__(self, findings: tuple[FieldFinding, ...]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model whose memory is asked for."""

    name: str
    architecture: Architecture
    #: Of its stored weights; empty for plain ones.
    scheme: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """The answer, with what it was asked about."""

    subject: Subject
    chip: Chip
    #: With every default written out.
    question: Mapping[str, Any]
    answer: Answer


def architecture_of(version: ModelVersion) -> Architecture:
    """As its own ``config.json`` says, with the parameters that its weights have.

    :raises ConfigRefused: if that is not known, or does not say enough.
    """
    config = version.config
    if config is None and version.artifact is not None:
        digest = version.artifact.tree.get("config.json")
        config = _config(digest) if digest else None
    # Packed weights are fewer numbers than there are parameters.
    counted = None if version.scheme else version.parameters or None
    return read(config, parameters=counted)


@lru_cache(maxsize=256)
def _config(digest: str) -> Any:
    """What lies under a digest never changes, so it is read once."""
    try:
        with artifact_store().open(digest) as file:
            return json.loads(file.read(_LARGEST_CONFIG))
    except (ArtifactError, ValueError, RecursionError):
        return None


def subject_of_version(version: ModelVersion) -> Subject:
    """:raises SizingRefused: if its configuration does not say enough."""
    try:
        built = architecture_of(version)
    except ConfigRefused as refusal:
        raise SizingRefused(refusal.findings) from refusal
    return Subject(name=str(version), architecture=built, scheme=version.scheme)


def subject_of_entry(key: str) -> Subject:
    """:raises SizingRefused: if the catalog has no such model, or does not know how it is built."""
    entry = shelf().entries.get(key)
    if entry is None:
        message = f"the catalog has no model called {key!r:.80}"
        raise SizingRefused((FieldFinding(field="catalog", message=message),))
    facts = architecture_facts(entry)
    try:
        built = from_facts(facts)
    except ConfigRefused as refusal:
        raise SizingRefused(refusal.findings) from refusal
    stored = str(facts["dtype"] or "")
    scheme = "fp8-block" if stored.startswith("fp8") else "mxfp4" if "mxfp4" in stored else ""
    return Subject(name=entry.title, architecture=built, scheme=scheme)


def subject_of_config(config: Any) -> Subject:
    """:raises SizingRefused: if the configuration is not one that can be sized."""
    try:
        built = read(config)
    except ConfigRefused as refusal:
        raise SizingRefused(refusal.findings) from refusal
    return Subject(name=built.name, architecture=built)


def subject_called(name: str, *, user: accounts.RequestUser) -> Subject:
    """``catalog:KEY`` or ``version:UID``.

    :raises SizingRefused: if there is none of that name for them, or it cannot be sized.
    """
    kind, _separator, key = name.partition(":")
    if kind == "catalog":
        return subject_of_entry(key)
    version = model_versions_visible(user).filter(uid=key).first()
    if kind != "version" or version is None:
        message = (
            f"model must be catalog:KEY or version:UID of something that is there, got {name!r:.80}"
        )
        raise SizingRefused((FieldFinding(field="model", message=message),))
    return subject_of_version(version)


def size(subject: Subject, given: Mapping[str, Any], *, chip: str, engine: str = "") -> Sized:
    """What the model takes on that chip.

    :raises SizingRefused: if a field is wrong, or the chip or the engine is not known.
    """
    question = _question(given)
    memory = _engine_memory(engine)
    found = ports.chip_called(chip)
    if found is None:
        known = ", ".join(sorted(ports.chips()))
        raise SizingRefused(
            (
                FieldFinding(
                    field="chip", message=f"chip {chip!r:.80} is not known; known are {known}"
                ),
            )
        )
    try:
        said = answer(
            subject.architecture, question, chip=found, scheme=subject.scheme, memory=memory
        )
    except UnknownScheme as refusal:
        raise SizingRefused(refusal.findings) from refusal
    return Sized(subject=subject, chip=found, question=question, answer=said)


def _question(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """With every default written out."""
    if findings := check_fields(SIZING, given):
        raise SizingRefused(findings)
    return with_defaults(SIZING, given)


def _engine_memory(engine: str) -> EngineMemory:
    """A usual one where none is named."""
    if not engine:
        return USUAL
    known = ports.engine_names()
    if engine not in known:
        message = f"engine {engine!r:.80} is not known; known are {', '.join(known)}"
        raise SizingRefused((FieldFinding(field="engine", message=message),))
    return ports.engine(engine).profile().memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Memory of serving on one card by context, for one number of requests at once."""

    concurrency: int
    #: Tokens, ascending.
    contexts: tuple[int, ...]
    #: Bytes of the whole model and its cache, whatever the card.
    totals: tuple[int, ...]


#: Requests at once that the chart of a model draws.
DRAWN = (1, 4, 16, 64)
_SHORTEST_DRAWN = 1024
_LONGEST_DRAWN = 131_072


def curves_of(
    subject: Subject, *, scheme: str = STORED, engine: str = "", kv_precision: str = "auto"
) -> tuple[Curve, ...]:
    """Memory by context and batch, without a card's limit: the same on one card as on many together.

    :raises SizingRefused: if a field is wrong or the engine is not known.
    """
    given = {"scheme": scheme, "kv_precision": kv_precision}
    question = _question(given)
    memory = _engine_memory(engine)
    architecture = subject.architecture
    longest = min(architecture.context or _LONGEST_DRAWN, _LONGEST_DRAWN)
    contexts = tuple(_doublings(min(_SHORTEST_DRAWN, longest), longest))
    try:
        wanted = serving_wanted(architecture, question, scheme=subject.scheme, memory=memory)
    except UnknownScheme as refusal:
        raise SizingRefused(refusal.findings) from refusal
    return tuple(
        Curve(
            concurrency=many,
            contexts=contexts,
            totals=tuple(
                serving_memory(
                    architecture, replace(wanted, context=context, concurrency=many)
                ).total
                for context in contexts
            ),
        )
        for many in DRAWN
    )


def _doublings(first: int, last: int) -> Iterator[int]:
    while first < last:
        yield first
        first *= 2
    yield last
