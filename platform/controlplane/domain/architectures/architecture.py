"""The architecture of a language model: the values that determine its memory and compute."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AttentionCacheKind(StrEnum):
    """What the KV cache holds for each token."""

    #: A key and a value for each head.
    MHA = "mha"
    #: A key and a value for each group of heads.
    GQA = "gqa"
    #: One key and one value for all heads.
    MQA = "mqa"
    #: One compressed vector for all heads (DeepSeek-V2, arXiv 2405.04434, section 2.1).
    MLA = "mla"
    #: Nothing: an encoder, which does not generate.
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (MLA)."""

    #: Values of the compressed vector cached per token and layer.
    kv_rank: int
    #: Values of the rotary position part, cached beside it and shared by all heads.
    rope_head_dim: int
    #: Values of a query and key without the position part.
    nope_head_dim: int
    value_head_dim: int
    #: Rank of compressed queries; None if queries are not compressed.
    query_rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureOfExperts:
    count: int
    #: Routed experts per token.
    per_token: int
    #: Shared experts, which process every token.
    shared: int
    #: Intermediate size of one expert.
    intermediate: int
    #: Intermediate size of all shared experts together.
    shared_intermediate: int
    #: Layers with a dense feed-forward network.
    dense_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention:
    """Linear-attention layers, with a state of fixed size per sequence."""

    layers: int
    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    #: Kernel size of the preceding convolution, in tokens.
    kernel: int

    @property
    def key_width(self) -> int:
        return self.key_heads * self.key_head_dim

    @property
    def value_width(self) -> int:
        return self.value_heads * self.value_head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A complete description of an architecture: no value is unknown."""

    #: For example ``qwen2``.
    family: str
    #: As in ``architectures`` of its ``config.json``, for example ``Qwen2ForCausalLM``.
    name: str
    layers: int
    #: Hidden size.
    hidden: int
    heads: int
    #: Key-value heads; fewer than ``heads`` with grouped-query attention.
    kv_heads: int
    #: Size of a head. With MLA, of a whole query including its position part.
    head_dim: int
    #: Intermediate size of a dense feed-forward network.
    intermediate: int
    #: Matrices of a feed-forward network: 3 if gated, otherwise 2.
    matrices: int
    vocabulary: int
    #: Maximum positions; 0 if the configuration does not state them.
    context: int
    #: Type of the stored weights, for example ``bfloat16``; empty if not stated.
    dtype: str
    attention: AttentionCacheKind
    latent: LatentAttention | None = None
    experts: MixtureOfExperts | None = None
    recurrent: LinearAttention | None = None
    #: Sliding window in tokens; 0 without windowed layers.
    window: int = 0
    #: Layers with a sliding window.
    windowed_layers: int = 0
    #: Norms per layer.
    norms: int = 2
    #: Queries and keys are normalised per head.
    head_norms: bool = False
    #: The output head shares the input embedding.
    tied: bool
    parameters: int
    #: Parameters active per token; ``parameters`` unless it is a mixture of experts.
    active_parameters: int

    @property
    def cached_layers(self) -> int:
        """Layers that cache something of every token, at least of those in their window."""
        recurrent = self.recurrent.layers if self.recurrent else 0
        return 0 if self.attention is AttentionCacheKind.NONE else self.layers - recurrent

    @property
    def full_attention_layers(self) -> int:
        """Layers that cache something of every token of the context."""
        return self.cached_layers - self.windowed_layers

    @property
    def embedding(self) -> int:
        """Parameters of the input embedding and the output head."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def expert_parameters(self) -> int:
        """Parameters of all routed experts; 0 without a mixture of experts."""
        if self.experts is None:
            return 0
        layers = self.layers - self.experts.dense_layers
        each = self.matrices * self.hidden * self.experts.intermediate
        return layers * self.experts.count * each


_VOCABULARY = 32_000
_HEAD = 64


def generic_decoder(parameters: int) -> Architecture:
    """A plain decoder with about so many parameters, for models of which only the size is known.

    12 · layers · hidden² parameters, with hidden = 64 · layers. Callers mark the result as an approximation.
    """
    layers = max(1, round((parameters / (12 * 64**2)) ** (1 / 3)))
    hidden = 64 * layers
    return Architecture(
        family="",
        name="",
        layers=layers,
        hidden=hidden,
        heads=layers,
        kv_heads=layers,
        head_dim=_HEAD,
        intermediate=8 * hidden // 3,
        matrices=3,
        vocabulary=_VOCABULARY,
        context=0,
        dtype="",
        attention=AttentionCacheKind.MHA,
        tied=False,
        parameters=parameters,
        active_parameters=parameters,
    )
