"""From ``config.json`` to an Architecture.

Nothing is taken on trust and nothing is guessed: a field that is missing, of another type or absurd is
named with its value and what would be right, all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.domain.architectures.builds import (
    BUILDS,
    NESTED,
    WRAPPERS,
    Build,
    Windows,
    class_of_family,
)
from controlplane.domain.architectures.counting import Dimensions, count
from controlplane.domain.architectures.values import (
    Architecture,
    Attention,
    Experts,
    Latent,
    Recurrent,
)
from controlplane.domain.common.spec_fields import FieldFinding

_MOST_LAYERS = 1_000
_WIDEST = 1 << 18
_MOST_HEADS = 4_096
_MOST_TOKENS = 10_000_000
_LONGEST = (1 << 31) - 1
_MOST_EXPERTS = 8_192
_FULL, _SLIDING, _LINEAR = "full_attention", "sliding_attention", "linear_attention"

#: Our word → the names that configurations use for it, the usual one first.
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


class ConfigRefused(Exception):
    """The configuration does not say enough, or says what cannot be; ``findings`` names each field."""

    def __init__(self, findings: tuple[FieldFinding, ...]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


def read(config: Any, *, parameters: int | None = None) -> Architecture:
    """The build that a ``config.json`` describes.

    ``parameters`` is their true number where it is known, for example from the weights themselves; otherwise they
    are counted, without the parts of a model that see or hear.

    :raises ConfigRefused: if its class is not known, or a field is missing, of another type or absurd.
    """
    if not isinstance(config, Mapping):
        raise _refused(
            "config.json", message=f"config.json must hold a JSON object, got {config!r:.80}"
        )
    name, text, build = _class_of(config)
    return _Reader(text, build=build, name=name).architecture(parameters)


def _refused(field: str, *, message: str) -> ConfigRefused:
    return ConfigRefused((FieldFinding(field=field, message=message),))


def _class_of(config: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], Build]:
    """The class by name, the part that describes its language model, and how that is built."""
    named = config.get("architectures")
    name = named[0] if isinstance(named, list) and named else None
    if not isinstance(name, str) or not name:
        raise _refused(
            "architectures",
            message=f'architectures must name the class, for example ["Qwen2ForCausalLM"], got {named!r:.80}',
        )
    if name in BUILDS and not any(isinstance(config.get(part), Mapping) for part in NESTED):
        return name, config, BUILDS[name]
    if name not in BUILDS and name not in WRAPPERS:
        raise _refused(
            "architectures",
            message=f"architecture {name!r:.120} is not known, so nothing is said of its memory; "
            f"known are {', '.join(sorted((*BUILDS, *WRAPPERS)))}",
        )
    text = _language_part(config)
    inner = text.get("architectures") if text is not config else None
    inner_name = inner[0] if isinstance(inner, list) and inner else ""
    if inner_name not in BUILDS:
        inner_name = class_of_family(str(text.get("model_type", ""))) if text is not config else ""
    build = BUILDS[inner_name or (name if name in BUILDS else WRAPPERS[name])]
    return name, text, build


def _language_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    for part in NESTED:
        nested = config.get(part)
        if isinstance(nested, Mapping):
            # What the inner part does not say, the outer one may: the dtype, tied embeddings.
            outer = {key: value for key, value in config.items() if key not in NESTED}
            return _language_part({**outer, **nested, "architectures": nested.get("architectures")})
    return config


class _Reader:
    """One pass over a configuration; findings are gathered on the way."""

    def __init__(self, config: Mapping[str, Any], *, build: Build, name: str) -> None:
        self._config = config
        self._build = build
        self._name = name
        self._findings: list[FieldFinding] = []
        #: What each layer is; None where the configuration does not say.
        self._types: list[str] | None = None

    def architecture(self, parameters: int | None) -> Architecture:
        """:raises ConfigRefused: with everything that was found."""
        size = self._dimensions()
        window, windowed = self._windows(size.layers)
        if self._findings:
            raise ConfigRefused(tuple(self._findings))
        counted, active = count(size, self._build)
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
            dtype=self._dtype(),
            attention=self._attention(size),
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

    def _dimensions(self) -> Dimensions:
        layers = self._figure("layers", most=_MOST_LAYERS)
        self._types = self._layer_types(layers)
        hidden = self._figure("hidden", most=_WIDEST)
        heads = self._figure("heads", most=_MOST_HEADS)
        latent = self._latent()
        experts = self._experts(layers)
        return Dimensions(
            layers=layers,
            hidden=hidden,
            heads=heads,
            kv_heads=heads if latent else self._kv_heads(heads),
            head_dim=self._head_dim(hidden, heads, latent),
            intermediate=self._intermediate(hidden, experts),
            vocabulary=self._figure("vocabulary", most=_MOST_TOKENS),
            context=self._figure("context", most=_LONGEST, least=0, default=0),
            tied=self._switch("tie_word_embeddings", default=self._build.tied),
            latent=latent,
            experts=experts,
            recurrent=self._recurrent(layers),
        )

    def _figure(self, word: str, *, most: int, least: int = 1, default: int | None = None) -> int:
        """A whole number by our word for it; the default, or 1 with a finding, where there is none."""
        names = _NAMES.get(word, (word,))
        name = next((each for each in names if self._config.get(each) is not None), None)
        if name is None:
            if default is not None:
                return default
            self._find(
                names[0], message=f"{names[0]} is missing; it must be a whole number ≥ {least}"
            )
            return 1
        value = self._config[name]
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and least <= value <= most:
            return int(value)
        self._find(
            name, message=f"{name} must be a whole number from {least} to {most}, got {value!r:.80}"
        )
        return max(least, 1)

    def _layer_types(self, layers: int) -> list[str] | None:
        """One word for each layer; None where nothing is said, or what is said cannot be."""
        types = self._config.get("layer_types")
        if types is None:
            return None
        words = (_FULL, _LINEAR) if self._build.attends_every else (_FULL, _SLIDING)
        right = f"right would be one of {', '.join(words)} for each layer"
        if not isinstance(types, list):
            self._find(
                "layer_types", message=f"layer_types must be a list, got {types!r:.80}; {right}"
            )
            return None
        # A wrong number of layers has been said already.
        if len(types) != layers and not self._findings:
            self._find(
                "layer_types",
                message=f"layer_types must name each of the {layers} layers, got {len(types)} names; {right}",
            )
        unknown = next((each for each in types if each not in words), None)
        if unknown is not None:
            self._find(
                "layer_types",
                message=f"layer_types must hold known words, got {unknown!r:.80}; {right}",
            )
        return types

    def _switch(self, name: str, *, default: bool) -> bool:
        value = self._config.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._find(name, message=f"{name} must be true or false, got {value!r:.80}")
        return bool(value)

    def _find(self, field: str, *, message: str) -> None:
        self._findings.append(FieldFinding(field=field, message=message))

    def _kv_heads(self, heads: int) -> int:
        if self._build.family == "falcon" and "num_kv_heads" not in self._config:
            return 1 if self._switch("multi_query", default=True) else heads
        if self._build.family == "chatglm" and not self._switch(
            "multi_query_attention", default=True
        ):
            return heads
        kv_heads = self._figure("kv_heads", most=_MOST_HEADS, default=heads)
        if heads % kv_heads and not self._findings:
            right = ", ".join(str(each) for each in range(1, heads + 1) if heads % each == 0)
            self._find(
                "num_key_value_heads",
                message=f"num_key_value_heads must divide the {heads} heads, got {kv_heads}; "
                f"right would be one of {right}",
            )
        return kv_heads

    def _head_dim(self, hidden: int, heads: int, latent: Latent | None) -> int:
        if latent is not None:
            return latent.nope_head_dim + latent.rope_head_dim
        by_class = self._build.head_dim
        # What does not divide because one of the two is wrong itself has been said already.
        divides = by_class or hidden % heads == 0 or self._config.get("head_dim")
        if not divides and not self._findings:
            self._find(
                "hidden_size",
                message=f"hidden_size must be a multiple of the {heads} heads where head_dim is not "
                f"given, got {hidden}",
            )
        return self._figure("head_dim", most=_WIDEST, default=by_class or max(1, hidden // heads))

    def _intermediate(self, hidden: int, experts: Experts | None) -> int:
        default = self._build.widening * hidden or (experts.intermediate if experts else None)
        width = self._figure("intermediate", most=_WIDEST * 8, default=default)
        return width // 2 if self._build.doubled_intermediate else width

    def _latent(self) -> Latent | None:
        if self._config.get("kv_lora_rank") is None:
            return None
        query_rank = None
        if self._config.get("q_lora_rank") is not None:
            query_rank = self._figure("q_lora_rank", most=_WIDEST)
        return Latent(
            kv_rank=self._figure("kv_lora_rank", most=_WIDEST),
            rope_head_dim=self._figure("qk_rope_head_dim", most=_WIDEST),
            nope_head_dim=self._figure("qk_nope_head_dim", most=_WIDEST),
            value_head_dim=self._figure("v_head_dim", most=_WIDEST),
            query_rank=query_rank,
        )

    def _experts(self, layers: int) -> Experts | None:
        if all(self._config.get(name) is None for name in _NAMES["experts"]):
            return None
        experts = self._figure("experts", most=_MOST_EXPERTS, least=0)
        if experts == 0:
            return None
        per_token = self._figure("per_token", most=_MOST_EXPERTS)
        if per_token > experts:
            self._find(
                "num_experts_per_tok",
                message=f"num_experts_per_tok must be at most the {experts} experts, got {per_token}",
            )
        # Mixtral and gpt-oss have no dense layers, and call an expert's width simply the width.
        usual = self._config.get("intermediate_size")
        own = self._figure(
            "expert_intermediate",
            most=_WIDEST * 8,
            default=usual if isinstance(usual, int) and usual > 0 else None,
        )
        shared = self._figure("shared", most=_MOST_EXPERTS, least=0, default=0)
        together = self._figure(
            "shared_intermediate", most=_WIDEST * 8, least=0, default=shared * own
        )
        return Experts(
            count=experts,
            per_token=per_token,
            shared=shared or (1 if together else 0),
            intermediate=own,
            shared_intermediate=together,
            dense_layers=self._dense_layers(layers),
        )

    def _dense_layers(self, layers: int) -> int:
        plain = self._config.get("mlp_only_layers")
        if isinstance(plain, list) and plain:
            return min(layers, len(plain))
        first = self._figure("dense_layers", most=_MOST_LAYERS, least=0, default=0)
        step = self._figure("decoder_sparse_step", most=_MOST_LAYERS, default=1)
        return min(layers, first) if step == 1 else layers - layers // step

    def _recurrent(self, layers: int) -> Recurrent | None:
        every = self._build.attends_every
        if not every:
            return None
        every = self._figure("full_attention_interval", most=_MOST_LAYERS, default=every)
        linear = layers - layers // every if self._types is None else self._types.count(_LINEAR)
        return Recurrent(
            layers=linear,
            key_heads=self._figure("linear_num_key_heads", most=_MOST_HEADS),
            value_heads=self._figure("linear_num_value_heads", most=_MOST_HEADS),
            key_head_dim=self._figure("linear_key_head_dim", most=_WIDEST),
            value_head_dim=self._figure("linear_value_head_dim", most=_WIDEST),
            kernel=self._figure("linear_conv_kernel_dim", most=_WIDEST),
        )

    def _windows(self, layers: int) -> tuple[int, int]:
        """The window in tokens, and the layers that have it."""
        rule = self._build.windows
        asked = rule is not Windows.ASKED or self._config.get("use_sliding_window") is True
        if rule is Windows.NEVER or not asked or self._config.get("sliding_window") is None:
            return 0, 0
        window = self._figure("sliding_window", most=_LONGEST)
        if self._types is not None:
            return window, self._types.count(_SLIDING)
        if rule is Windows.ALWAYS:
            return window, layers
        if rule is Windows.ASKED:
            first = self._figure("max_window_layers", most=_MOST_LAYERS, least=0, default=layers)
            return window, max(0, layers - first)
        every = self._figure(
            "sliding_window_pattern", most=_MOST_LAYERS, default=self._build.pattern
        )
        return window, layers - layers // every

    def _attention(self, size: Dimensions) -> Attention:
        if not self._build.decodes:
            return Attention.NONE
        if size.latent is not None:
            return Attention.MLA
        if size.kv_heads == size.heads:
            return Attention.MHA
        return Attention.MQA if size.kv_heads == 1 else Attention.GQA

    def _dtype(self) -> str:
        value = self._config.get("dtype", self._config.get("torch_dtype"))
        return value if isinstance(value, str) and value.isidentifier() else ""
