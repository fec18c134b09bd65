"""Memory estimates for models of the registry and of the catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from apps.accounts import selectors as accounts
from apps.models.models import ModelVersion
from apps.models.selectors import artifact_store, model_versions_visible
from apps.models.selectors.catalog import catalog_snapshot
from controlplane.domain.architectures import (
    Architecture,
    ConfigRefused,
    architecture_from_catalog,
    parse_architecture,
)
from controlplane.domain.catalog.entries import architecture_facts
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import join_reasons
from controlplane.domain.common.resources import Bytes
from controlplane.domain.common.spec_fields import (
    FieldsRefused,
    check_fields,
    with_defaults,
)
from controlplane.domain.sizing import (
    DEFAULT_ENGINE_MEMORY,
    EngineMemory,
    SizingEstimate,
    UnknownScheme,
    estimate_model_memory,
    serving_memory,
    serving_workload,
)
from controlplane.domain.specs.sizing import SIZING, STORED
from controlplane.ports import adapter_registry as ports
from controlplane.ports.artifacts import ArtifactError

#: Bytes. Larger files are not read.
_MAX_CONFIG_SIZE = 1 << 20


class SizingRefused(FieldsRefused):
    """The request cannot be estimated; ``findings`` names each invalid field."""

    def __str__(self) -> str:
        return join_reasons(finding.message for finding in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingSubject:
    """A model whose memory is estimated."""

    name: str
    architecture: Architecture
    #: Quantization scheme of its stored weights; empty if they are not quantized.
    scheme: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingResult:
    """The estimate with the model, chip and request that it is for."""

    subject: SizingSubject
    chip: Chip
    #: With all defaults filled in.
    request: Mapping[str, Any]
    estimate: SizingEstimate


def architecture_of(version: ModelVersion) -> Architecture:
    """The architecture from its own ``config.json``, with the parameter count of its weights.

    :raises ConfigRefused: if there is none, or it is incomplete.
    """
    config = version.config
    if config is None and version.artifact is not None:
        digest = version.artifact.tree.get("config.json")
        config = _read_model_config(digest) if digest else None
    # Quantized weights are packed, so their element count is not the number of parameters.
    counted = None if version.scheme else version.parameters or None
    return parse_architecture(config, parameters=counted)


@lru_cache(maxsize=256)
def _read_model_config(digest: str) -> Any:
    """Cached by digest: the content of a digest never changes."""
    try:
        with artifact_store().open(digest) as file:
            return json.loads(file.read(_MAX_CONFIG_SIZE))
    except (ArtifactError, ValueError, RecursionError):
        return None


def sizing_subject_of_version(version: ModelVersion) -> SizingSubject:
    """:raises SizingRefused: if its configuration is incomplete."""
    try:
        built = architecture_of(version)
    except ConfigRefused as refusal:
        raise SizingRefused(refusal.findings) from refusal
    return SizingSubject(name=str(version), architecture=built, scheme=version.scheme)


def sizing_subject_of_entry(key: str) -> SizingSubject:
    """:raises SizingRefused: if the catalog has no such model, or its architecture is unknown."""
    entry = catalog_snapshot().entries.get(key)
    if entry is None:
        raise SizingRefused.of(
            "catalog",
            "model.catalog_entry.not_found",
            "the model catalog has no entry {key}",
            key=f"{key!r:.80}",
        )
    facts = architecture_facts(entry)
    try:
        built = architecture_from_catalog(facts)
    except ConfigRefused as refusal:
        raise SizingRefused(refusal.findings) from refusal
    stored = str(facts["dtype"] or "")
    scheme = "fp8-block" if stored.startswith("fp8") else "mxfp4" if "mxfp4" in stored else ""
    return SizingSubject(name=entry.title, architecture=built, scheme=scheme)


def sizing_subject_of_config(config: Any) -> SizingSubject:
    """:raises SizingRefused: if the configuration is not one that can be sized."""
    try:
        built = parse_architecture(config)
    except ConfigRefused as refusal:
        raise SizingRefused(refusal.findings) from refusal
    return SizingSubject(name=built.name, architecture=built)


def sizing_subject_by_name(name: str, *, user: accounts.RequestUser) -> SizingSubject:
    """The subject with the name ``catalog:KEY`` or ``version:UID``.

    :raises SizingRefused: if the user can see no such model, or it cannot be sized.
    """
    kind, _separator, key = name.partition(":")
    if kind == "catalog":
        return sizing_subject_of_entry(key)
    version = model_versions_visible(user).filter(uid=key).first()
    if kind != "version" or version is None:
        raise SizingRefused.of(
            "model",
            "sizing.model.not_found",
            "model must be catalog:KEY or version:UID of an existing model, got {model}",
            model=f"{name!r:.80}",
        )
    return sizing_subject_of_version(version)


def estimate_memory(
    subject: SizingSubject,
    given: Mapping[str, Any],
    *,
    chip: str,
    engine: str = "",
    host_memory: Bytes | None = None,
) -> SizingResult:
    """The memory that the model requires on that chip.

    :param host_memory: limit for a chip that has no memory of its own; None for no limit.
    :raises SizingRefused: if a field is invalid, or the chip or the engine is unknown.
    """
    request = _validated_request(given)
    memory = _engine_memory(engine)
    found = ports.chip_by_name(chip)
    if found is None:
        known = ", ".join(sorted(ports.all_chips()))
        raise SizingRefused.of(
            "chip",
            "sizing.chip.unknown",
            "unknown chip {chip}; known are {chips}",
            chip=f"{chip!r:.80}",
            chips=known,
        )
    if host_memory is not None and not found.memory:
        found = replace(found, memory=host_memory)
    try:
        estimated = estimate_model_memory(
            subject.architecture, request, chip=found, scheme=subject.scheme, memory=memory
        )
    except UnknownScheme as refusal:
        raise SizingRefused(refusal.findings) from refusal
    return SizingResult(subject=subject, chip=found, request=request, estimate=estimated)


def _validated_request(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request with all defaults filled in."""
    if findings := check_fields(SIZING, given):
        raise SizingRefused(findings)
    return with_defaults(SIZING, given)


def _engine_memory(engine: str) -> EngineMemory:
    """The engine's memory traits, or defaults if no engine is named."""
    if not engine:
        return DEFAULT_ENGINE_MEMORY
    known = ports.engine_names()
    if engine not in known:
        raise SizingRefused.of(
            "engine",
            "sizing.engine.unknown",
            "unknown engine {engine}; known are {engines}",
            engine=f"{engine!r:.80}",
            engines=", ".join(known),
        )
    return ports.engine_by_name(engine).profile().memory


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCurve:
    """Memory of serving on one card by context length, for one concurrency."""

    concurrency: int
    #: Tokens, ascending.
    contexts: tuple[int, ...]
    #: Bytes of the model and its cache, regardless of the card.
    totals: tuple[int, ...]


#: Concurrency of each curve in the chart.
CHART_CONCURRENCY = (1, 4, 16, 64)
_MIN_CHART_CONTEXT = 1024
_MAX_CHART_CONTEXT = 131_072


def memory_curves(
    subject: SizingSubject, *, scheme: str = STORED, engine: str = "", kv_precision: str = "auto"
) -> tuple[MemoryCurve, ...]:
    """Memory by context length and concurrency without a card limit, so it is the same for one card as for many.

    :raises SizingRefused: if a field is invalid or the engine is unknown.
    """
    given = {"scheme": scheme, "kv_precision": kv_precision}
    request = _validated_request(given)
    memory = _engine_memory(engine)
    architecture = subject.architecture
    longest = min(architecture.context or _MAX_CHART_CONTEXT, _MAX_CHART_CONTEXT)
    contexts = tuple(_powers_of_two(min(_MIN_CHART_CONTEXT, longest), longest))
    try:
        workload = serving_workload(architecture, request, scheme=subject.scheme, memory=memory)
    except UnknownScheme as refusal:
        raise SizingRefused(refusal.findings) from refusal
    return tuple(
        MemoryCurve(
            concurrency=concurrency,
            contexts=contexts,
            totals=tuple(
                serving_memory(
                    architecture, replace(workload, context=context, concurrency=concurrency)
                ).total
                for context in contexts
            ),
        )
        for concurrency in CHART_CONCURRENCY
    )


def _powers_of_two(first: int, last: int) -> Iterator[int]:
    while first < last:
        yield first
        first *= 2
    yield last
