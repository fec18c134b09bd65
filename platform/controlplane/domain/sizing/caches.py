"""What an engine keeps of the tokens that it has seen.

::

    heads     2 · layers · KV heads · head size · bytes               a token      (MHA, GQA, MQA)
    latent    layers · (compressed + position) · bytes                a token      (MLA)
    window    as heads, but never more tokens than the window         a layer
    recurrent value heads · key size · value size · 4 + convolution   a sequence, however long

Sources: Pope et al. 2022 (arXiv 2211.05102) for heads, DeepSeek-V2 (arXiv 2405.04434, table 1) for latent,
Gated DeltaNet (arXiv 2412.06464) for recurrent.
"""

from __future__ import annotations

from controlplane.domain.architectures import Architecture, Attention
from controlplane.domain.common.resources import Bytes
from controlplane.domain.jobs.parallelism import kv_heads_on_card, stage_share

#: Recurrent states are summed up in float32.
_STATE_BYTES = 4


def bytes_per_token(
    architecture: Architecture, *, value_bytes: float = 2, tensor: int = 1, latent: bool = True
) -> float:
    """Of one token that every layer still looks back at, on one card.

    With ``latent`` false an engine unpacks what MLA compresses, and keeps whole keys and values of every head.
    """
    return architecture.cached_layers * _layer(
        architecture, value_bytes=value_bytes, tensor=tensor, latent=latent
    )


def cache_bytes(
    architecture: Architecture,
    *,
    context: int,
    sequences: int,
    value_bytes: float = 2,
    tensor: int = 1,
    pipeline: int = 1,
    latent: bool = True,
) -> Bytes:
    """Of so many sequences of ``context`` tokens, on one card of the fullest stage."""
    layer = _layer(architecture, value_bytes=value_bytes, tensor=tensor, latent=latent)
    seen = min(context, architecture.window) if architecture.window else context
    tokens = architecture.full_layers * context + architecture.windowed_layers * seen
    whole = sequences * (
        tokens * layer + _state(architecture, value_bytes=value_bytes, tensor=tensor)
    )
    return Bytes(round(whole * stage_share(architecture.layers, pipeline=pipeline)))


def _layer(architecture: Architecture, *, value_bytes: float, tensor: int, latent: bool) -> float:
    """Bytes that one layer keeps of one token on one card."""
    if architecture.attention is Attention.NONE:
        return 0.0
    part = architecture.latent
    if part is not None and latent:
        # Every card needs the whole of it, whatever heads it has.
        return (part.kv_rank + part.rope_head_dim) * value_bytes
    if part is not None:
        heads = -(-architecture.heads // tensor)
        return heads * (architecture.head_dim + part.value_head_dim) * value_bytes
    heads = kv_heads_on_card(architecture, tensor=tensor)
    return 2 * heads * architecture.head_dim * value_bytes


def _state(architecture: Architecture, *, value_bytes: float, tensor: int) -> float:
    """Bytes that the recurrent layers keep of one sequence on one card."""
    part = architecture.recurrent
    if part is None:
        return 0.0
    memory = part.value_heads * part.key_head_dim * part.value_head_dim * _STATE_BYTES
    convolution = (2 * part.key_width + part.value_width) * part.kernel * value_bytes
    return part.layers * (memory + convolution) / tensor
