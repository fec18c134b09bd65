"""The memory of a replica: the sizing calculator's, for the fields of a deployment and for their defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apps.models import selectors as registry_selectors
from apps.models.models import ModelVersion
from apps.models.selectors import sizing
from apps.quotas import selectors as quotas
from apps.serving.selectors.revision_configurations import (
    RevisionConfiguration,
    revision_configuration_check,
)
from controlplane.domain.common.accelerators import ChipKind
from controlplane.ports import adapter_registry

#: Numbers of cards that divide what models have of everything.
CARDS_OF_A_NODE = (1, 2, 4, 8)
#: Fields of the calculator that a deployment's spec has under the same name.
_SAME_FIELDS = ("concurrency", "kv_precision", "memory_fraction")
_SAME_PARALLEL_FIELDS = ("tensor", "pipeline", "data")


def replica_memory(configuration: RevisionConfiguration) -> sizing.SizingResult:
    """The memory of one replica on the first chip of the configuration.

    Empty fields: the context length of the model, and one concurrent request, because engines admit more only as
    far as memory is left.

    :raises sizing.SizingRefused: if the model cannot be sized, or a field is invalid.
    """
    chosen = configuration.with_engine()
    subject = sizing.sizing_subject_of_version(chosen.model_version)
    longest = registry_selectors.engine_model_facts(chosen.model_version).context_length
    requested = _sizing_request(chosen, longest=longest or subject.architecture.context)
    return sizing.estimate_memory(subject, requested, chip=chosen.chips[0], engine=chosen.engine)


def default_configuration(version: ModelVersion) -> RevisionConfiguration:
    """What is deployed where no field is given: the chip of the fleet that holds the model on the fewest cards.

    A chip with enough free cards comes first. A model that cannot be sized gets one card; one that no card of the
    fleet serves gets the processor.
    """
    found: list[tuple[tuple[bool, int, int], RevisionConfiguration]] = []
    known = adapter_registry.all_chips()
    for chip, free in quotas.count_free_cards().items():
        if chip not in known or known[chip].kind is ChipKind.CPU:
            continue
        candidate = RevisionConfiguration(model_version=version, chips=(chip,)).with_engine()
        if candidate.engine and (chosen := _with_fewest_cards(candidate)):
            found.append(((free < chosen.cards, chosen.cards, -free), chosen))
    best = min(found, key=lambda each: each[0], default=None)
    return best[1] if best else RevisionConfiguration(model_version=version)


def _with_fewest_cards(candidate: RevisionConfiguration) -> RevisionConfiguration | None:
    """With the fewest cards of one node that hold one request and that its engine takes; None if none do."""
    for cards in CARDS_OF_A_NODE:
        chosen = replace(candidate, cards=cards)
        try:
            estimate = replica_memory(chosen).estimate
        except sizing.SizingRefused:
            return None if revision_configuration_check(candidate, replicas=1) else candidate
        if (
            estimate.fits
            and estimate.legal
            and not revision_configuration_check(chosen, replicas=1)
        ):
            return chosen
    return None


def _sizing_request(chosen: RevisionConfiguration, *, longest: int) -> dict[str, Any]:
    spec = chosen.spec
    given: dict[str, Any] = {"task": "serve", "concurrency": 1, "cards": chosen.cards}
    given |= {name: spec[name] for name in _SAME_FIELDS if spec.get(name) is not None}
    if context := spec.get("context_length") or longest:
        given["context"] = context
    if spec.get("precision", "auto") != "auto":
        given["precision"] = spec["precision"]
    plan = spec.get("parallel") or {}
    given["parallel"] = {name: plan[name] for name in _SAME_PARALLEL_FIELDS if plan.get(name)}
    configs = (registry_selectors.lora_config_facts(one.model_version) for one in chosen.adapters)
    if ranks := [facts.rank for facts in configs if facts is not None]:
        given |= {"adapters": len(ranks), "rank": max(ranks)}
    return given
