"""Parsing of ``config.json`` into an architecture.

The input is untrusted and nothing is guessed: each field that is missing, of another type or implausible is
reported with its value and the valid range, all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.domain.architectures.architecture import (
    Architecture,
    AttentionCacheKind,
    LatentAttention,
    LinearAttention,
    MixtureOfExperts,
)
from controlplane.domain.architectures.model_classes import (
    MODEL_CLASSES,
    MULTIMODAL_CLASSES,
    NESTED_CONFIGS,
    ModelClassTraits,
    ModelDimensions,
    SlidingWindowRule,
    class_of_family,
    count_architecture_parameters,
)
from controlplane.domain.common.reasons import Parameter
from controlplane.domain.common.spec_fields import FieldFinding, FieldsRefused, field_finding

_MAX_LAYERS = 1_000
_MAX_WIDTH = 1 << 18
_MAX_HEADS = 4_096
_MAX_VOCABULARY = 10_000_000
_MAX_CONTEXT_LENGTH = (1 << 31) - 1
_MAX_EXPERTS = 8_192
_FULL, _SLIDING, _LINEAR = "full_attention", "sliding_attention", "linear_attention"

#: Our field name → names that configurations use for it, the most common first.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "n_head_kv"),
    "head_dim": ("head_dim", "kv_channels"),
    "intermediate": ("intermediate_size", "ffn_hidden_size", "n_inner"),
    "vocabulary": ("vocab_size", "padded_vocab_size"),
    "context": ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len"),
    "experts": ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"),
    "per_token": ("num_experts_per_tok", "num_experts_per_token", "moe_k"),
    "shared": ("n_shared_experts", "moe_num_shared_experts"),
    "expert_intermediate": ("moe_intermediate_size",),
    "shared_intermediate": ("shared_expert_intermediate_size",),
    "dense_layers": ("first_k_dense_replace", "moe_layer_start_index"),
}


class ConfigRefused(FieldsRefused):
    """The configuration is incomplete or invalid; ``findings`` names each field."""


def parse_architecture(config: Any, *, parameters: int | None = None) -> Architecture:
    """The architecture that a ``config.json`` describes.

    ``parameters`` is the true number if it is known, for example from the weights; otherwise they are counted,
    without vision and audio towers.

    :raises ConfigRefused: if the model class is unknown, or a field is missing, of another type or implausible.
    """
    if not isinstance(config, Mapping):
        raise ConfigRefused.of(
            "config.json",
            "architecture.config.not_an_object",
            "config.json must be a JSON object, got {value}",
            value=f"{config!r:.80}",
        )
    name, text, build = _model_class_of_config(config)
    return _ConfigParser(text, build=build, name=name).architecture(parameters)


def _model_class_of_config(
    config: Mapping[str, Any],
) -> tuple[str, Mapping[str, Any], ModelClassTraits]:
    """Name of the model class, the configuration of its language model, and the traits of that class."""
    named = config.get("architectures")
    name = named[0] if isinstance(named, list) and named else None
    if not isinstance(name, str) or not name:
        raise ConfigRefused.of(
            "architectures",
            "architecture.class.missing",
            'architectures must name the class, for example ["Qwen2ForCausalLM"], got {value}',
            value=f"{named!r:.80}",
        )
    if name in MODEL_CLASSES and not any(
        isinstance(config.get(part), Mapping) for part in NESTED_CONFIGS
    ):
        return name, config, MODEL_CLASSES[name]
    if name not in MODEL_CLASSES and name not in MULTIMODAL_CLASSES:
        raise ConfigRefused.of(
            "architectures",
            "architecture.class.unknown",
            "architecture {name} is not known, so its memory cannot be estimated; "
            "known are {known}",
            name=f"{name!r:.120}",
            known=", ".join(sorted((*MODEL_CLASSES, *MULTIMODAL_CLASSES))),
        )
    text = _language_part(config)
    inner = text.get("architectures") if text is not config else None
    inner_name = inner[0] if isinstance(inner, list) and inner else ""
    if inner_name not in MODEL_CLASSES:
        inner_name = class_of_family(str(text.get("model_type", ""))) if text is not config else ""
    build = MODEL_CLASSES[
        inner_name or (name if name in MODEL_CLASSES else MULTIMODAL_CLASSES[name])
    ]
    return name, text, build


def _language_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    for part in NESTED_CONFIGS:
        nested = config.get(part)
        if isinstance(nested, Mapping):
            # The outer configuration may state what the nested one omits: dtype, tied embeddings.
            outer = {key: value for key, value in config.items() if key not in NESTED_CONFIGS}
            return _language_part({**outer, **nested, "architectures": nested.get("architectures")})
    return config


class _ConfigParser:
    """One pass over a configuration that collects findings."""

    def __init__(self, config: Mapping[str, Any], *, build: ModelClassTraits, name: str) -> None:
        self._config = config
        self._build = build
        self._name = name
        self._findings: list[FieldFinding] = []
        #: Type of each layer; None if the configuration does not state it.
        self._types: list[str] | None = None

    def architecture(self, parameters: int | None) -> Architecture:
        """:raises ConfigRefused: with all findings."""
        size = self._parse_dimensions()
        window, windowed = self._parse_sliding_window(size.layers)
        if self._findings:
            raise ConfigRefused(self._findings)
        counted, active = count_architecture_parameters(size, self._build)
        whole = parameters or counted
        return Architecture(
            family=self._build.family,
            name=self._name,
            layers=size.layers,
            hidden=size.hidden,
            heads=size.heads,
            kv_heads=size.kv_heads,
            head_dim=size.head_dim,
            intermediate=size.intermediate,
            matrices=self._build.matrices,
            vocabulary=size.vocabulary,
            context=size.context,
            dtype=self._parse_dtype(),
            attention=self._parse_attention(size),
            latent=size.latent,
            experts=size.experts,
            recurrent=size.recurrent,
            window=window if windowed else 0,
            windowed_layers=windowed,
            norms=self._build.norms,
            head_norms=self._build.head_norms,
            tied=size.tied,
            parameters=whole,
            active_parameters=whole if size.experts is None else min(active, whole),
        )

    def _parse_dimensions(self) -> ModelDimensions:
        layers = self._whole_number("layers", most=_MAX_LAYERS)
        self._types = self._layer_types(layers)
        hidden = self._whole_number("hidden", most=_MAX_WIDTH)
        heads = self._whole_number("heads", most=_MAX_HEADS)
        latent = self._parse_latent_attention()
        experts = self._parse_experts(layers)
        return ModelDimensions(
            layers=layers,
            hidden=hidden,
            heads=heads,
            kv_heads=heads if latent else self._kv_heads(heads),
            head_dim=self._head_dim(hidden, heads, latent),
            intermediate=self._parse_intermediate_size(hidden, experts),
            vocabulary=self._whole_number("vocabulary", most=_MAX_VOCABULARY),
            context=self._whole_number("context", most=_MAX_CONTEXT_LENGTH, least=0, default=0),
            tied=self._parse_boolean("tie_word_embeddings", default=self._build.tied),
            latent=latent,
            experts=experts,
            recurrent=self._parse_recurrent_layers(layers),
        )

    def _whole_number(
        self, word: str, *, most: int, least: int = 1, default: int | None = None
    ) -> int:
        """A whole number by our field name; if it is missing, the default, or 1 with a finding."""
        names = _NAMES.get(word, (word,))
        name = next((each for each in names if self._config.get(each) is not None), None)
        if name is None:
            if default is not None:
                return default
            self._add_finding(
                names[0],
                "architecture.integer.missing",
                "{field} is missing; it must be a whole number ≥ {minimum}",
                field=names[0],
                minimum=least,
            )
            return 1
        value = self._config[name]
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and least <= value <= most:
            return int(value)
        self._add_finding(
            name,
            "architecture.integer.out_of_range",
            "{field} must be a whole number from {minimum} to {maximum}, got {value}",
            field=name,
            minimum=least,
            maximum=most,
            value=f"{value!r:.80}",
        )
        return max(least, 1)

    def _layer_types(self, layers: int) -> list[str] | None:
        """The type of each layer; None if they are missing or invalid."""
        types = self._config.get("layer_types")
        if types is None:
            return None
        known_types = (_FULL, _LINEAR) if self._build.attention_interval else (_FULL, _SLIDING)
        types_allowed = ", ".join(known_types)
        if not isinstance(types, list):
            self._add_finding(
                "layer_types",
                "architecture.layer_types.not_a_list",
                "layer_types must be a list, got {value}; each layer must be one of {types}",
                value=f"{types!r:.80}",
                types=types_allowed,
            )
            return None
        # An invalid number of layers has been reported already.
        if len(types) != layers and not self._findings:
            self._add_finding(
                "layer_types",
                "architecture.layer_types.count_mismatch",
                "layer_types must have one entry for each of the {layers} layers, got "
                "{count}; each layer must be one of {types}",
                layers=layers,
                count=len(types),
                types=types_allowed,
            )
        unknown = next((each for each in types if each not in known_types), None)
        if unknown is not None:
            self._add_finding(
                "layer_types",
                "architecture.layer_types.unknown_value",
                "layer_types must only have known values, got {value}; each layer must be one of {types}",
                value=f"{unknown!r:.80}",
                types=types_allowed,
            )
        return types

    def _parse_boolean(self, name: str, *, default: bool) -> bool:
        value = self._config.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._add_finding(
                name,
                "architecture.boolean.invalid",
                "{field} must be true or false, got {value}",
                field=name,
                value=f"{value!r:.80}",
            )
        return bool(value)

    def _add_finding(self, field: str, code: str, template: str, /, **params: Parameter) -> None:
        self._findings.append(field_finding(field, code, template, **params))

    def _kv_heads(self, heads: int) -> int:
        if self._build.family == "falcon" and "num_kv_heads" not in self._config:
            return 1 if self._parse_boolean("multi_query", default=True) else heads
        if self._build.family == "chatglm" and not self._parse_boolean(
            "multi_query_attention", default=True
        ):
            return heads
        kv_heads = self._whole_number("kv_heads", most=_MAX_HEADS, default=heads)
        if heads % kv_heads and not self._findings:
            right = ", ".join(str(each) for each in range(1, heads + 1) if heads % each == 0)
            self._add_finding(
                "num_key_value_heads",
                "architecture.kv_heads.not_a_divisor",
                "num_key_value_heads must divide the {heads} heads, got {kv_heads}; "
                "valid values: {valid}",
                heads=heads,
                kv_heads=kv_heads,
                valid=right,
            )
        return kv_heads

    def _head_dim(self, hidden: int, heads: int, latent: LatentAttention | None) -> int:
        if latent is not None:
            return latent.nope_head_dim + latent.rope_head_dim
        by_class = self._build.head_dim
        # If one of the two is invalid, that has been reported already.
        divides = by_class or hidden % heads == 0 or self._config.get("head_dim")
        if not divides and not self._findings:
            self._add_finding(
                "hidden_size",
                "architecture.hidden_size.not_a_multiple",
                "hidden_size must be a multiple of the {heads} heads where head_dim is "
                "not given, got {hidden_size}",
                heads=heads,
                hidden_size=hidden,
            )
        return self._whole_number(
            "head_dim", most=_MAX_WIDTH, default=by_class or max(1, hidden // heads)
        )

    def _parse_intermediate_size(self, hidden: int, experts: MixtureOfExperts | None) -> int:
        default = self._build.intermediate_factor * hidden or (
            experts.intermediate if experts else None
        )
        width = self._whole_number("intermediate", most=_MAX_WIDTH * 8, default=default)
        return width // 2 if self._build.doubled_intermediate else width

    def _parse_latent_attention(self) -> LatentAttention | None:
        if self._config.get("kv_lora_rank") is None:
            return None
        query_rank = None
        if self._config.get("q_lora_rank") is not None:
            query_rank = self._whole_number("q_lora_rank", most=_MAX_WIDTH)
        return LatentAttention(
            kv_rank=self._whole_number("kv_lora_rank", most=_MAX_WIDTH),
            rope_head_dim=self._whole_number("qk_rope_head_dim", most=_MAX_WIDTH),
            nope_head_dim=self._whole_number("qk_nope_head_dim", most=_MAX_WIDTH),
            value_head_dim=self._whole_number("v_head_dim", most=_MAX_WIDTH),
            query_rank=query_rank,
        )

    def _parse_experts(self, layers: int) -> MixtureOfExperts | None:
        if all(self._config.get(name) is None for name in _NAMES["experts"]):
            return None
        experts = self._whole_number("experts", most=_MAX_EXPERTS, least=0)
        if experts == 0:
            return None
        per_token = self._whole_number("per_token", most=_MAX_EXPERTS)
        if per_token > experts:
            self._add_finding(
                "num_experts_per_tok",
                "architecture.experts_per_token.too_large",
                "num_experts_per_tok must be at most the number of experts, {experts}, "
                "got {experts_per_token}",
                experts=experts,
                experts_per_token=per_token,
            )
        # Mixtral and gpt-oss have no dense layers; intermediate_size is that of an expert.
        default_width = self._config.get("intermediate_size")
        own = self._whole_number(
            "expert_intermediate",
            most=_MAX_WIDTH * 8,
            default=default_width if isinstance(default_width, int) and default_width > 0 else None,
        )
        shared = self._whole_number("shared", most=_MAX_EXPERTS, least=0, default=0)
        together = self._whole_number(
            "shared_intermediate", most=_MAX_WIDTH * 8, least=0, default=shared * own
        )
        return MixtureOfExperts(
            count=experts,
            per_token=per_token,
            shared=shared or (1 if together else 0),
            intermediate=own,
            shared_intermediate=together,
            dense_layers=self._count_dense_layers(layers),
        )

    def _count_dense_layers(self, layers: int) -> int:
        plain = self._config.get("mlp_only_layers")
        if isinstance(plain, list) and plain:
            return min(layers, len(plain))
        first = self._whole_number("dense_layers", most=_MAX_LAYERS, least=0, default=0)
        step = self._whole_number("decoder_sparse_step", most=_MAX_LAYERS, default=1)
        return min(layers, first) if step == 1 else layers - layers // step

    def _parse_recurrent_layers(self, layers: int) -> LinearAttention | None:
        every = self._build.attention_interval
        if not every:
            return None
        every = self._whole_number("full_attention_interval", most=_MAX_LAYERS, default=every)
        linear = layers - layers // every if self._types is None else self._types.count(_LINEAR)
        return LinearAttention(
            layers=linear,
            key_heads=self._whole_number("linear_num_key_heads", most=_MAX_HEADS),
            value_heads=self._whole_number("linear_num_value_heads", most=_MAX_HEADS),
            key_head_dim=self._whole_number("linear_key_head_dim", most=_MAX_WIDTH),
            value_head_dim=self._whole_number("linear_value_head_dim", most=_MAX_WIDTH),
            kernel=self._whole_number("linear_conv_kernel_dim", most=_MAX_WIDTH),
        )

    def _parse_sliding_window(self, layers: int) -> tuple[int, int]:
        """The sliding window in tokens, and the number of layers that use it."""
        rule = self._build.windows
        asked = (
            rule is not SlidingWindowRule.OPT_IN or self._config.get("use_sliding_window") is True
        )
        if (
            rule is SlidingWindowRule.NEVER
            or not asked
            or self._config.get("sliding_window") is None
        ):
            return 0, 0
        window = self._whole_number("sliding_window", most=_MAX_CONTEXT_LENGTH)
        if self._types is not None:
            return window, self._types.count(_SLIDING)
        if rule is SlidingWindowRule.ALWAYS:
            return window, layers
        if rule is SlidingWindowRule.OPT_IN:
            first = self._whole_number(
                "max_window_layers", most=_MAX_LAYERS, least=0, default=layers
            )
            return window, max(0, layers - first)
        every = self._whole_number(
            "sliding_window_pattern", most=_MAX_LAYERS, default=self._build.pattern
        )
        return window, layers - layers // every

    def _parse_attention(self, size: ModelDimensions) -> AttentionCacheKind:
        if not self._build.decodes:
            return AttentionCacheKind.NONE
        if size.latent is not None:
            return AttentionCacheKind.MLA
        if size.kv_heads == size.heads:
            return AttentionCacheKind.MHA
        return AttentionCacheKind.MQA if size.kv_heads == 1 else AttentionCacheKind.GQA

    def _parse_dtype(self) -> str:
        value = self._config.get("dtype", self._config.get("torch_dtype"))
        return value if isinstance(value, str) and value.isidentifier() else ""
