"""The memory estimate of a replica: the sizing calculator's, for the fields of a deployment."""

from __future__ import annotations

from typing import Any

from apps.models import selectors as registry_selectors
from apps.models.selectors import sizing
from apps.serving.selectors.revision_configurations import RevisionConfiguration

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
