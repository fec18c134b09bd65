"""Memory of one card of a replica while serving.

::

    weights + adapters + KV cache + activations of a step + logits + CUDA graphs + process  ≤  share of the card

An engine with chunked prefill has the activations of one chunk; one without has those of whole prompts. Per layer
three widths of the feed-forward network and three of the hidden size are live at once (gate, up and their product;
residual, normed and output), which the published figures in ``docs/benchmarks.md`` confirm.

The KV cache::

    heads     2 · layers · KV heads · head size · bytes               per token      (MHA, GQA, MQA)
    latent    layers · (compressed + position) · bytes                per token      (MLA)
    window    as heads, but never more tokens than the window         per layer
    recurrent value heads · key size · value size · 4 + convolution   per sequence, regardless of length

LoRA adapters take ``adapters · rank · Σ (in + out)`` values. Engines reserve them for the greatest rank, and
divide only one of the two matrices by tensor parallelism (vLLM's ``fully_sharded_loras`` is off by default).

Sources: Pope et al. 2022 (arXiv 2211.05102) for heads, DeepSeek-V2 (arXiv 2405.04434, table 1) for latent,
Gated DeltaNet (arXiv 2412.06464) for recurrent.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.domain.architectures import Architecture, AttentionCacheKind
from controlplane.domain.common.resources import GIB, MIB, Bytes
from controlplane.domain.jobs.parallelism import (
    SINGLE_CARD,
    ParallelPlan,
    kv_heads_on_card,
    padded_vocabulary,
    stage_share,
)
from controlplane.domain.sizing.training import adapter_parameters
from controlplane.domain.sizing.weights import WeightScheme, largest_shard, weight_bytes

#: Feed-forward widths, and hidden sizes, that are live at once.
_WIDE_AT_ONCE = 3
_NARROW_AT_ONCE = 3
#: Extra bytes per logit during sampling: float32 copy and probability.
_LOGIT_EXTRA = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTraits:
    """How an engine uses memory; the defaults are those of an engine with a paged KV cache."""

    #: Tokens per step over all requests (chunked prefill); None is whole prompts.
    step_tokens: int | None = 8192
    #: Default number of concurrent requests.
    concurrency: int = 256
    #: CUDA graphs; 1 to 3 GiB according to vLLM's documentation.
    graphs: Bytes = Bytes(1 * GIB)
    #: The driver's context, libraries and their workspaces.
    process: Bytes = Bytes(768 * MIB)
    #: Buffers of collectives if a replica has several cards.
    collectives: Bytes = Bytes(768 * MIB)
    #: The cache stores the compressed MLA vectors.
    latent: bool = True
    #: MLA attention is fused, so scores are not materialised.
    fused_latent: bool = True
    #: Tokens per cache block; a block belongs to one request.
    block: int = 16


#: Traits of an engine with a paged KV cache.
PAGED = ServingTraits()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingWorkload:
    scheme: WeightScheme
    #: Tokens of the longest prompt and answer together.
    context: int
    #: Requests that run at once in one replica.
    concurrency: int = 1
    #: Bytes of a KV-cache value and of a computed value.
    cache_value_bytes: float = 2
    value_bytes: int = 2
    graphs: bool = True
    #: Share of each card that may be used.
    memory_fraction: float = 0.9
    plan: ParallelPlan = SINGLE_CARD
    traits: ServingTraits = PAGED
    #: LoRA adapters beside the model, and the greatest of their ranks.
    adapters: int = 0
    adapter_rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemory:
    """Bytes on the fullest card of a replica."""

    weights: Bytes
    adapters: Bytes
    cache: Bytes
    activations: Bytes
    logits: Bytes
    graphs: Bytes
    process: Bytes

    @property
    def total(self) -> Bytes:
        return Bytes(
            self.weights
            + self.adapters
            + self.cache
            + self.activations
            + self.logits
            + self.graphs
            + self.process
        )


def serving_memory(architecture: Architecture, workload: ServingWorkload) -> ServingMemory:
    """Memory of the fullest card when every request has the maximum length."""
    plan, traits = workload.plan, workload.traits
    return ServingMemory(
        weights=_weight_bytes(architecture, workload),
        adapters=_adapter_bytes(architecture, workload),
        cache=kv_cache_bytes(
            architecture,
            context=_round_up(workload.context, traits.block),
            sequences=workload.concurrency,
            value_bytes=workload.cache_value_bytes,
            tensor=plan.tensor,
            pipeline=plan.pipeline,
            latent=traits.latent,
        ),
        activations=serving_step_bytes(architecture, workload),
        logits=_logit_bytes(architecture, workload),
        graphs=traits.graphs if workload.graphs else Bytes(0),
        process=Bytes(traits.process + (traits.collectives if plan.cards > 1 else 0)),
    )


def step_tokens(workload: ServingWorkload) -> int:
    """Tokens that one step processes."""
    most = workload.context * workload.concurrency
    limit = workload.traits.step_tokens
    # During chunked prefill each of the other requests adds its next token.
    return most if limit is None else min(most, max(limit, workload.concurrency))


def serving_step_bytes(architecture: Architecture, workload: ServingWorkload) -> Bytes:
    """``tokens · (3 · feed-forward width / tensor + 3 · hidden size) · bytes`` of one active layer."""
    tensor = workload.plan.tensor
    wide = architecture.intermediate
    narrow = _NARROW_AT_ONCE * architecture.hidden
    experts = architecture.experts
    if experts is not None:
        # Each token is copied for each of its experts.
        mixed = experts.per_token * experts.intermediate + experts.shared_intermediate
        wide = max(wide if experts.dense_layers else 0, mixed)
        narrow += experts.per_token * architecture.hidden
    heads = architecture.heads * architecture.head_dim
    wide = max(wide, heads)
    each = _WIDE_AT_ONCE * wide / tensor + narrow
    if architecture.latent is not None and not workload.traits.fused_latent:
        # Scores and their softmax, of every token with every token of its sequence.
        each += 2 * architecture.heads * workload.context / tensor
    return Bytes(round(step_tokens(workload) * each * workload.value_bytes))


def _weight_bytes(architecture: Architecture, workload: ServingWorkload) -> Bytes:
    """In proportion to the shard of the fullest card; token matrices keep their own width."""
    whole = weight_bytes(architecture, workload.scheme)
    if workload.plan.cards == 1:
        return whole
    own = largest_shard(architecture, workload.plan)
    matrices = own.embedding * (workload.scheme.bits if workload.scheme.embeddings else 16) / 8
    rest = whole - _embedding_bytes(architecture, workload.scheme)
    parameters = max(1, architecture.parameters - architecture.embedding)
    return Bytes(round(matrices + rest * (own.expert + own.body) / parameters))


def _adapter_bytes(architecture: Architecture, workload: ServingWorkload) -> Bytes:
    if not workload.adapters:
        return Bytes(0)
    parameters = adapter_parameters(architecture, rank=workload.adapter_rank)
    share = (1 + 1 / workload.plan.tensor) / 2 / workload.plan.pipeline
    return Bytes(round(workload.adapters * parameters * share * workload.value_bytes))


def _embedding_bytes(architecture: Architecture, scheme: WeightScheme) -> int:
    bits = scheme.bits if scheme.embeddings else 16
    return round(min(architecture.embedding, architecture.parameters) * bits / 8)


def _logit_bytes(architecture: Architecture, workload: ServingWorkload) -> Bytes:
    rows = padded_vocabulary(architecture.vocabulary, tensor=workload.plan.tensor)
    return Bytes(workload.concurrency * rows * (workload.value_bytes + _LOGIT_EXTRA))


def _round_up(tokens: int, block: int) -> int:
    return -(-tokens // block) * block


#: Recurrent states are accumulated in float32.
_STATE_BYTES = 4


def bytes_per_token(
    architecture: Architecture, *, value_bytes: float = 2, tensor: int = 1, latent: bool = True
) -> float:
    """Of one token that every layer still attends to, on one card.

    With ``latent`` false the engine decompresses MLA and caches whole keys and values of every head.
    """
    return architecture.cached_layers * _kv_bytes_per_layer(
        architecture, value_bytes=value_bytes, tensor=tensor, latent=latent
    )


def kv_cache_bytes(
    architecture: Architecture,
    *,
    context: int,
    sequences: int,
    value_bytes: float = 2,
    tensor: int = 1,
    pipeline: int = 1,
    latent: bool = True,
) -> Bytes:
    """Of that many sequences of ``context`` tokens, on one card of the fullest stage."""
    layer = _kv_bytes_per_layer(architecture, value_bytes=value_bytes, tensor=tensor, latent=latent)
    seen = min(context, architecture.window) if architecture.window else context
    tokens = architecture.full_attention_layers * context + architecture.windowed_layers * seen
    whole = sequences * (
        tokens * layer
        + _recurrent_state_bytes(architecture, value_bytes=value_bytes, tensor=tensor)
    )
    return Bytes(round(whole * stage_share(architecture.layers, pipeline=pipeline)))


def _kv_bytes_per_layer(
    architecture: Architecture, *, value_bytes: float, tensor: int, latent: bool
) -> float:
    """Bytes that one layer caches per token on one card."""
    if architecture.attention is AttentionCacheKind.NONE:
        return 0.0
    part = architecture.latent
    if part is not None and latent:
        # Each card needs the whole vector, regardless of its heads.
        return (part.kv_rank + part.rope_head_dim) * value_bytes
    if part is not None:
        heads = -(-architecture.heads // tensor)
        return heads * (architecture.head_dim + part.value_head_dim) * value_bytes
    heads = kv_heads_on_card(architecture, tensor=tensor)
    return 2 * heads * architecture.head_dim * value_bytes


def _recurrent_state_bytes(architecture: Architecture, *, value_bytes: float, tensor: int) -> float:
    """Bytes of recurrent state per sequence on one card."""
    part = architecture.recurrent
    if part is None:
        return 0.0
    memory = part.value_heads * part.key_head_dim * part.value_head_dim * _STATE_BYTES
    convolution = (2 * part.key_width + part.value_width) * part.kernel * value_bytes
    return part.layers * (memory + convolution) / tensor
