"""What one layer keeps of a token until its gradient is known.

Counted tensor by tensor as autograd saves them, for a pre-norm decoder with fused attention (nothing of the
scores is kept; Dao et al. 2022, arXiv 2205.14135). The idea is that of Korthikanti et al. 2022
(arXiv 2205.05198), whose 34 bytes a token, layer and hidden value hold for a plain feed-forward part four times
as wide; gates, shared heads and experts change that, so each is counted here::

    norms      what comes in, what is normed (float32 in either case), what goes out to the next matrices
    attention  queries and keys after rotation, values, the result
    dense      gate, its activation, up, their product        (two without a gate)
    experts    the same for each expert of a token, and the token once for each of them

With autocast the residual stays in float32 and each matrix gets a 16-bit copy of its input of its own. What is
frozen keeps nothing for its gradient: norms keep no normed values, and an adapter keeps its input instead of the
matrix beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from controlplane.domain.architectures import Architecture

#: Matrices of a layer that read the layer's normed input: of queries, keys and values, and of gate and up.
_ATTENTION_READERS = 3


class Mixed(StrEnum):
    """In what weights are kept and computed."""

    FLOAT32 = "float32"
    #: Weights in float32, computed through 16-bit copies.
    AUTOCAST = "autocast"
    #: Weights in 16 bits, with a float32 copy in the optimizer.
    MASTER_COPY = "master_copy"

    @property
    def value_bytes(self) -> int:
        return 4 if self is Mixed.FLOAT32 else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Bytes for one token of one layer."""

    #: What every tensor-parallel card keeps, unless they share sequences.
    whole: float
    #: What they share.
    divided: float

    def on_card(self, *, tensor: int, sequence: bool) -> float:
        return self.whole / (tensor if sequence else 1) + self.divided / tensor


def kept_by_layer(architecture: Architecture, *, mixed: Mixed, adapter: bool = False) -> Kept:
    """Of one token, averaged over the layers of the model."""
    value = mixed.value_bytes
    experts = architecture.experts
    dense_layers = experts.dense_layers if experts else architecture.layers
    dense = dense_layers / architecture.layers
    divided = _attention(architecture) + dense * _feed_forward(
        architecture, architecture.intermediate
    )
    whole = _norms(architecture, mixed=mixed, adapter=adapter)
    if experts is not None:
        each = experts.per_token * _feed_forward(architecture, experts.intermediate)
        each += _feed_forward(architecture, experts.shared_intermediate)
        divided += each * (1 - dense)
        # The token once for each expert, on its way in and on its way out, and the router's figures.
        copies = 2 * experts.per_token * architecture.hidden * value
        whole += (copies + 3 * 4 * experts.count) * (1 - dense)
    heads_normed = _head_norms(architecture, mixed=mixed, adapter=adapter)
    return Kept(whole=whole, divided=divided * value + heads_normed)


def checkpoint_bytes(architecture: Architecture, *, mixed: Mixed) -> float:
    """Of one token and layer where everything but the layer's input is computed again."""
    residual = 4 if mixed is Mixed.AUTOCAST else mixed.value_bytes
    return architecture.hidden * residual


def score_bytes(architecture: Architecture, *, length: int, mixed: Mixed) -> float:
    """Of one token and layer where attention is not fused: the softmax in float32 and as computed."""
    value = mixed.value_bytes
    return architecture.heads * length * (4 + (value if value < 4 else 0))


def _norms(architecture: Architecture, *, mixed: Mixed, adapter: bool) -> float:
    """Bytes, with what the norms hand to the matrices behind them."""
    hidden = architecture.hidden
    readers = _ATTENTION_READERS + architecture.matrices - 1
    if mixed is Mixed.FLOAT32:
        inner = 4 if adapter else 8
        # Two norms hand their result to matrices; those behind a part hand it to the residual, which keeps none.
        return hidden * (architecture.norms * inner + 2 * 4)
    if adapter:
        own = architecture.heads * architecture.head_dim
        return hidden * architecture.norms * 4 + 2 * (readers * hidden + own)
    if mixed is Mixed.AUTOCAST:
        return hidden * (architecture.norms * 8 + readers * 2)
    return hidden * (architecture.norms * 6 + 2 * 2)


def _head_norms(architecture: Architecture, *, mixed: Mixed, adapter: bool) -> float:
    if not architecture.head_norms:
        return 0.0
    normed = (architecture.heads + architecture.kv_heads) * architecture.head_dim
    after = 0 if adapter else (4 if mixed is Mixed.FLOAT32 else 2)
    return normed * (4 + after)


def _attention(architecture: Architecture) -> float:
    """Values kept, each of them once."""
    heads = architecture.heads * architecture.head_dim
    part = architecture.latent
    if part is not None:
        values = architecture.heads * part.value_head_dim
        compressed = 3 * part.kv_rank + 3 * (part.query_rank or 0)
        # Queries and keys are put together from two parts each; values are cut out of what is unpacked.
        return 2 * heads + 3 * values + compressed
    keys = architecture.kv_heads * architecture.head_dim
    return 2 * heads + 2 * keys


def _feed_forward(architecture: Architecture, width: int) -> float:
    return (4 if architecture.matrices == 3 else 2) * width
