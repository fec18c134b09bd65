"""How a language model is built: the figures that decide about its memory and its work."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Attention(StrEnum):
    """What is kept of a token for those that come after it."""

    #: A key and a value for each head.
    MHA = "mha"
    #: A key and a value for each group of heads.
    GQA = "gqa"
    #: One key and one value for all heads.
    MQA = "mqa"
    #: One compressed vector for all heads (DeepSeek-V2, arXiv 2405.04434, section 2.1).
    MLA = "mla"
    #: Nothing: the model reads a whole text at once and does not write.
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Of multi-head latent attention."""

    #: Values of the compressed vector that is kept of a token and layer.
    kv_rank: int
    #: Values of its position, kept beside it and shared by all heads.
    rope_head_dim: int
    #: Of a query and key, beside the position.
    nope_head_dim: int
    value_head_dim: int
    #: Of a compressed query; None where queries are not compressed.
    query_rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Of a mixture of experts."""

    count: int
    #: Experts that work on one token, the shared ones aside.
    per_token: int
    #: Experts that work on every token.
    shared: int
    #: Width inside of one expert.
    intermediate: int
    #: Width inside of all shared experts together.
    shared_intermediate: int
    #: Layers with a plain feed-forward part.
    dense_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent:
    """Layers with linear attention: a state of fixed size for each sequence, however long it is."""

    layers: int
    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    #: Tokens that the convolution before it looks at.
    kernel: int

    @property
    def key_width(self) -> int:
        return self.key_heads * self.key_head_dim

    @property
    def value_width(self) -> int:
        return self.value_heads * self.value_head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A model's build, complete: nothing in it is unknown."""

    #: For example ``qwen2``.
    family: str
    #: As in ``architectures`` of its ``config.json``, for example ``Qwen2ForCausalLM``.
    name: str
    layers: int
    #: Width of a layer.
    hidden: int
    heads: int
    #: Heads that keys and values have; fewer than ``heads`` where they are shared.
    kv_heads: int
    #: Values of one key. With MLA, of a whole query: beside the position and of it.
    head_dim: int
    #: Width inside of a plain feed-forward part.
    intermediate: int
    #: Matrices of a feed-forward part: 3 where it is gated, otherwise 2.
    matrices: int
    vocabulary: int
    #: Positions that the model was made for; 0 where it does not say.
    context: int
    #: Of the stored weights, for example ``bfloat16``; empty where it does not say.
    dtype: str
    attention: Attention
    latent: Latent | None = None
    experts: Experts | None = None
    recurrent: Recurrent | None = None
    #: Tokens that a windowed layer looks back at; 0 where there are none.
    window: int = 0
    #: Layers that keep no more than the window.
    windowed_layers: int = 0
    #: Norms of a layer.
    norms: int = 2
    #: Queries and keys of each head are normed.
    head_norms: bool = False
    #: The matrix that reads tokens is the one that writes them.
    tied: bool
    parameters: int
    #: That work on one token; ``parameters`` unless it is a mixture.
    active_parameters: int

    @property
    def cached_layers(self) -> int:
        """Layers that keep something of every token, at least of those in their window."""
        recurrent = self.recurrent.layers if self.recurrent else 0
        return 0 if self.attention is Attention.NONE else self.layers - recurrent

    @property
    def full_layers(self) -> int:
        """Layers that keep something of every token, however far back."""
        return self.cached_layers - self.windowed_layers

    @property
    def embedding(self) -> int:
        """Parameters of the matrices that read and write tokens."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def expert_parameters(self) -> int:
        """Parameters of all experts but the shared ones; 0 without a mixture."""
        if self.experts is None:
            return 0
        layers = self.layers - self.experts.dense_layers
        each = self.matrices * self.hidden * self.experts.intermediate
        return layers * self.experts.count * each
