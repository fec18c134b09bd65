"""Architectures from catalog facts, and contradictions between a model's configuration and the catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from controlplane.domain.architectures.architecture import Architecture
from controlplane.domain.architectures.config_parsing import ConfigRefused, parse_architecture

_T = TypeVar("_T")

#: Beginning of the catalog's id → entries of the vocabulary, as in the published configurations; the
#: longest beginning that fits counts.
_VOCABULARIES: Mapping[str, int] = {
    "qwen": 151_936,
    "qwen1.5-32b": 152_064,
    "qwen1.5-72b": 152_064,
    "qwen2-7b": 152_064,
    "qwen2-72b": 152_064,
    "qwen2.5-7b": 152_064,
    "qwen2.5-14b": 152_064,
    "qwen2.5-32b": 152_064,
    "qwen2.5-72b": 152_064,
    "qwen2.5-coder-32b": 152_064,
    "qwen2-vl-7b": 152_064,
    "qwen2-vl-72b": 152_064,
    "qwen2.5-vl-7b": 152_064,
    "qwen2.5-vl-32b": 152_064,
    "qwen2.5-vl-72b": 152_064,
    "qwen2.5-omni": 152_064,
    "qwen2-audio": 156_032,
    "gte-qwen2": 151_646,
    "gme-qwen2": 151_936,
    "qwq": 152_064,
    "onerec": 151_936,
    "llama-2": 32_000,
    "llama-3": 128_256,
    "baichuan": 64_000,
    "baichuan2": 125_696,
    "chatglm": 65_024,
    "glm-4": 151_552,
    "internlm2": 92_544,
    "internlm3": 128_512,
    "internvl": 92_553,
    "internvl3": 151_674,
    "yi": 64_000,
    "deepseek": 102_400,
    "deepseek-v3": 129_280,
    "deepseek-r1": 129_280,
    "deepseek-r1-distill-qwen-1.5b": 151_936,
    "deepseek-r1-distill-qwen": 152_064,
    "deepseek-r1-distill-llama": 128_256,
    "mistral": 32_768,
    "mistral-7b-instruct-v0.2": 32_000,
    "mistral-nemo": 131_072,
    "mistral-small": 131_072,
    "mixtral": 32_000,
    "mixtral-8x22b": 32_768,
    "bloom": 250_880,
    "falcon": 65_024,
    "gemma-2": 256_000,
    "gemma-3": 262_208,
    "phi-3": 32_064,
    "phi-4": 100_352,
    "minicpm3": 73_448,
    "minicpm-v": 151_700,
    "gpt-oss": 201_088,
    "kimi": 163_840,
    "moonlight": 163_840,
    "ernie": 103_424,
    "llava": 32_064,
    "llava-onevision": 152_000,
    "cogvlm2": 128_256,
    "bge": 250_002,
    "bge-large-zh": 21_128,
}
_DEEPSEEK: Mapping[str, Any] = {
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "first_k_dense_replace": 1,
}
#: Class, or beginning of the catalog's id → what the catalog leaves open, as in the published configurations.
#: What an id says goes before what its class says.
_PUBLISHED: Mapping[str, Mapping[str, Any]] = {
    "DeepseekV2ForCausalLM": _DEEPSEEK,
    "DeepseekV3ForCausalLM": _DEEPSEEK,
    "KimiVLForConditionalGeneration": {**_DEEPSEEK, "intermediate_size": 11_264},
    "MiniCPM3ForCausalLM": {"qk_nope_head_dim": 64, "v_head_dim": 64, "q_lora_rank": 768},
    "Qwen2MoeForCausalLM": {"shared_expert_intermediate_size": 20_480},
    "Qwen3NextForCausalLM": {
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
    },
    "Glm4MoeForCausalLM": {"first_k_dense_replace": 1},
    "Ernie4_5_MoeForCausalLM": {"moe_layer_start_index": 1, "intermediate_size": 12_288},
    "Gemma2ForCausalLM": {"sliding_window": 4096},
    "Gemma3ForConditionalGeneration": {"sliding_window": 1024},
    "GptOssForCausalLM": {"sliding_window": 128},
    "deepseek-v2-chat": {"q_lora_rank": 1536},
    "deepseek-v3": {"q_lora_rank": 1536, "first_k_dense_replace": 3},
    "deepseek-r1": {"q_lora_rank": 1536, "first_k_dense_replace": 3},
    "kimi-k2": {"q_lora_rank": 1536},
    "glm-4.5": {"first_k_dense_replace": 3},
    "glm-4.5-air": {"first_k_dense_replace": 1},
}
_NAMES: Mapping[str, str] = {
    "layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "attention_heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "intermediate_size": "intermediate_size",
    "context_length": "max_position_embeddings",
    "dtype": "dtype",
}
_BILLION = 1_000_000_000
_MAX_BILLIONS = 100_000
#: Of all parameters, above which a second matrix for tokens shows in their rounded sum.
_LARGE_SHARE = 0.05


def architecture_from_catalog(facts: Mapping[str, Any]) -> Architecture:
    """The architecture of a catalog entry, by the keys of the catalog's data files.

    :raises ConfigRefused: if the catalog does not state enough.
    """
    config = _config_from_facts(facts)
    billions = facts.get("params_b")
    known = isinstance(billions, (int, float)) and not isinstance(billions, bool)
    if not known or billions is None or not 0 < billions < _MAX_BILLIONS:
        raise ConfigRefused.of(
            "params_b",
            "architecture.params_b.not_positive",
            "params_b must be > 0, got {value}",
            value=repr(billions),
        )
    parameters = round(billions * _BILLION)
    built = _build_architecture(config, parameters=parameters)
    active = facts.get("active_params_b")
    counted = round(active * _BILLION) if active else built.active_parameters
    return replace(
        built,
        parameters=parameters,
        active_parameters=min(counted, parameters) if built.experts else parameters,
    )


def _build_architecture(config: Mapping[str, Any], *, parameters: int) -> Architecture:
    """Tied embeddings if the class always has them, or if they match the parameter count better."""
    untied = parse_architecture(config)
    if untied.tied or untied.vocabulary * untied.hidden < _LARGE_SHARE * parameters:
        return untied
    tied = parse_architecture({**config, "tie_word_embeddings": True})
    return min((untied, tied), key=lambda each: abs(each.parameters - parameters))


def _config_from_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The ``config.json`` of such a model, as far as the catalog states it."""
    name = str(facts.get("architecture") or "").split(" ")[0]
    own = str(facts.get("id") or "")
    config: dict[str, Any] = {"architectures": [name], **_PUBLISHED.get(name, {})}
    config.update(_longest_prefix_value(_PUBLISHED, own) or {})
    for ours, theirs in _NAMES.items():
        if facts.get(ours) is not None:
            config[theirs] = facts[ours]
    if name == "QWenLMHeadModel" and isinstance(config.get("intermediate_size"), int):
        config["intermediate_size"] *= 2
    for key, value in (facts.get("mla") or {}).items():
        config[key] = value
    moe = facts.get("moe") or {}
    if moe:
        config["num_experts"] = moe.get("experts")
        config["num_experts_per_tok"] = moe.get("top_k")
        config["n_shared_experts"] = moe.get("shared_experts") or 0
        config["moe_intermediate_size"] = moe.get("moe_intermediate_size")
    config["vocab_size"] = facts.get("vocab_size") or _longest_prefix_value(_VOCABULARIES, own)
    return config


def _longest_prefix_value(table: Mapping[str, _T], name: str) -> _T | None:
    """The value of the longest key that the name starts with."""
    known = [beginning for beginning in table if name.startswith(beginning)]
    return table[max(known, key=len)] if known else None


#: The catalog rounds parameters, and some vendors omit the embeddings; a larger difference is a contradiction.
_PARAMETERS_TOLERANCE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A field with different values in ``config.json`` and in the catalog."""

    #: Field name of the catalog, for example ``kv_heads``.
    field: str
    #: Value in the model's ``config.json``.
    config: Any
    catalog: Any


def find_contradictions(
    architecture: Architecture, catalog_facts: Mapping[str, Any]
) -> tuple[Contradiction, ...]:
    """Every field of the catalog entry that the configuration contradicts; missing values are no contradiction."""
    return tuple(_contradicting_fields(architecture, catalog_facts))


def _contradicting_fields(built: Architecture, facts: Mapping[str, Any]) -> Iterator[Contradiction]:
    for field, own in _comparable_facts(built).items():
        listed = facts.get(field)
        if listed is not None and own is not None and own != listed:
            yield Contradiction(field=field, config=own, catalog=listed)
    for group, own_group in (("mla", _mla_facts(built)), ("moe", _moe_facts(built))):
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


def _comparable_facts(built: Architecture) -> Mapping[str, Any]:
    mixed = built.experts is not None and built.experts.dense_layers == 0
    return {
        "architecture": built.name,
        "layers": built.layers,
        "hidden_size": built.hidden,
        "attention_heads": built.heads,
        # The catalog does not state these for compressed keys.
        "kv_heads": None if built.latent else built.kv_heads,
        "head_dim": None if built.latent else built.head_dim,
        "intermediate_size": None if mixed else built.intermediate,
        "context_length": built.context or None,
        "dtype": built.dtype or None,
    }


def _mla_facts(built: Architecture) -> Mapping[str, Any]:
    if built.latent is None:
        return {}
    return {
        "kv_lora_rank": built.latent.kv_rank,
        "qk_rope_head_dim": built.latent.rope_head_dim,
    }


def _moe_facts(built: Architecture) -> Mapping[str, Any]:
    if built.experts is None:
        return {}
    return {
        "experts": built.experts.count,
        "top_k": built.experts.per_token,
        "shared_experts": built.experts.shared,
        "moe_intermediate_size": built.experts.intermediate,
    }
