"""Where a model's own files and the catalog say different things."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.domain.architectures.values import Architecture

#: The catalog rounds parameters, and some makers leave the embeddings out; beyond this it is another model.
_PARAMETERS_TOLERANCE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """One field of which two things are said."""

    #: As the catalog calls it, for example ``kv_heads``.
    field: str
    #: As the model's ``config.json`` has it.
    config: Any
    catalog: Any


def contradictions(
    architecture: Architecture, catalog_facts: Mapping[str, Any]
) -> tuple[Contradiction, ...]:
    """Every field of the catalog's entry that the configuration contradicts; what either leaves open is none."""
    return tuple(_compared(architecture, catalog_facts))


def _compared(built: Architecture, facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    for field, own in _said(built).items():
        listed = facts.get(field)
        if listed is not None and own is not None and own != listed:
            yield Contradiction(field=field, config=own, catalog=listed)
    for group, own_group in (("mla", _mla(built)), ("moe", _moe(built))):
        listed_group = facts.get(group)
        if not isinstance(listed_group, Mapping):
            continue
        for name, listed in listed_group.items():
            value = own_group.get(name)
            if listed is not None and value != listed:
                yield Contradiction(field=f"{group}.{name}", config=value, catalog=listed)
    billions = facts.get("params_b")
    if isinstance(billions, (int, float)) and billions > 0:
        own_billions = built.parameters / 1e9
        if abs(own_billions - billions) > _PARAMETERS_TOLERANCE * billions:
            yield Contradiction(field="params_b", config=round(own_billions, 2), catalog=billions)


def _said(built: Architecture) -> Mapping[str, Any]:
    mixed = built.experts is not None and built.experts.dense_layers == 0
    return {
        "architecture": built.name,
        "layers": built.layers,
        "hidden_size": built.hidden,
        "attention_heads": built.heads,
        # The catalog leaves these open where keys are compressed.
        "kv_heads": None if built.latent else built.kv_heads,
        "head_dim": None if built.latent else built.head_dim,
        "intermediate_size": None if mixed else built.intermediate,
        "context_length": built.context or None,
        "dtype": built.dtype or None,
    }


def _mla(built: Architecture) -> Mapping[str, Any]:
    if built.latent is None:
        return {}
    return {
        "kv_lora_rank": built.latent.kv_rank,
        "qk_rope_head_dim": built.latent.rope_head_dim,
    }


def _moe(built: Architecture) -> Mapping[str, Any]:
    if built.experts is None:
        return {}
    return {
        "experts": built.experts.count,
        "top_k": built.experts.per_token,
        "shared_experts": built.experts.shared,
        "moe_intermediate_size": built.experts.intermediate,
    }
