"""What one card of a replica holds while it serves.

::

    weights + KV cache + activations of one step + logits + recorded graphs + the process   ≤   share of the card

An engine that takes long prompts in pieces has the activations of one piece; one that does not has those of
whole prompts. Of a layer three widths of the feed-forward part and three of the layer live at once
(gate, up and their product; residual, normed and output), which the published figures in ``docs/benchmarks.md``
bear out.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.domain.architectures import Architecture
from controlplane.domain.common.resources import GIB, MIB, Bytes
from controlplane.domain.jobs.parallelism import SINGLE_CARD, ParallelPlan, padded_vocabulary
from controlplane.domain.sizing.caches import cache_bytes
from controlplane.domain.sizing.precisions import Scheme, weight_bytes
from controlplane.domain.sizing.shares import share

#: Widths of a feed-forward part, and of a layer, that live at once.
_WIDE_AT_ONCE = 3
_NARROW_AT_ONCE = 3
#: Of one logit while the next token is chosen: as computed, in float32, and its share of all.
_LOGIT_EXTRA = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTraits:
    """How an engine uses memory, by its own design; the defaults are those of a paged one."""

    #: Tokens of all requests that go through the model at once; None is whole prompts.
    step_tokens: int | None = 8192
    #: Requests that run at once where a spec does not say.
    concurrency: int = 256
    #: Kernels that are recorded once and replayed; vLLM's documentation says 1 to 3 GiB.
    graphs: Bytes = Bytes(1 * GIB)
    #: The driver's context, libraries and their workspaces.
    process: Bytes = Bytes(768 * MIB)
    #: Buffers of collectives, where a replica has several cards.
    collectives: Bytes = Bytes(768 * MIB)
    #: What MLA compresses stays compressed in the cache.
    latent: bool = True
    #: Attention over it is fused, so that no scores are written down.
    fused_latent: bool = True
    #: Tokens of a block of the cache, which is never shared by two requests.
    block: int = 16


#: An engine with a paged cache, of which nothing else is known.
PAGED = ServingTraits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What somebody wants to serve."""

    scheme: Scheme
    #: Tokens of the longest prompt and answer together.
    context: int
    #: Requests that run at once in one replica.
    concurrency: int = 1
    #: Bytes of one value of the KV cache and of one that is computed.
    cache_value_bytes: float = 2
    value_bytes: int = 2
    graphs: bool = True
    #: Share of each card that may be used.
    memory_fraction: float = 0.9
    plan: ParallelPlan = SINGLE_CARD
    traits: ServingTraits = PAGED


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemory:
    """Bytes that the fullest card of a replica holds."""

    weights: Bytes
    cache: Bytes
    activations: Bytes
    logits: Bytes
    graphs: Bytes
    process: Bytes

    @property
    def total(self) -> Bytes:
        return Bytes(
            self.weights + self.cache + self.activations + self.logits + self.graphs + self.process
        )


def serving_memory(architecture: Architecture, wanted: Serving) -> ServingMemory:
    """What the fullest card holds when every request is as long as allowed."""
    plan, traits = wanted.plan, wanted.traits
    return ServingMemory(
        weights=_weights(architecture, wanted),
        cache=cache_bytes(
            architecture,
            context=_rounded(wanted.context, traits.block),
            sequences=wanted.concurrency,
            value_bytes=wanted.cache_value_bytes,
            tensor=plan.tensor,
            pipeline=plan.pipeline,
            latent=traits.latent,
        ),
        activations=step_bytes(architecture, wanted),
        logits=_logits(architecture, wanted),
        graphs=traits.graphs if wanted.graphs else Bytes(0),
        process=Bytes(traits.process + (traits.collectives if plan.cards > 1 else 0)),
    )


def step_tokens(wanted: Serving) -> int:
    """Tokens that go through the model at once."""
    most = wanted.context * wanted.concurrency
    limit = wanted.traits.step_tokens
    # While a prompt is taken in pieces, each of the other requests adds its next token.
    return most if limit is None else min(most, max(limit, wanted.concurrency))


def step_bytes(architecture: Architecture, wanted: Serving) -> Bytes:
    """``tokens · (3 · width of the feed-forward part / tensor + 3 · width) · bytes`` of one layer at work."""
    tensor = wanted.plan.tensor
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
    if architecture.latent is not None and not wanted.traits.fused_latent:
        # Scores and their softmax, of every token with every token of its sequence.
        each += 2 * architecture.heads * wanted.context / tensor
    return Bytes(round(step_tokens(wanted) * each * wanted.value_bytes))


def _weights(architecture: Architecture, wanted: Serving) -> Bytes:
    """In proportion to the share of the fullest card; the tokens' matrices keep their own width."""
    whole = weight_bytes(architecture, wanted.scheme)
    if wanted.plan.cards == 1:
        return whole
    own = share(architecture, wanted.plan)
    matrices = own.embedding * (wanted.scheme.bits if wanted.scheme.embeddings else 16) / 8
    rest = whole - _embedding_bytes(architecture, wanted.scheme)
    parameters = max(1, architecture.parameters - architecture.embedding)
    return Bytes(round(matrices + rest * (own.expert + own.body) / parameters))


def _embedding_bytes(architecture: Architecture, scheme: Scheme) -> int:
    bits = scheme.bits if scheme.embeddings else 16
    return round(min(architecture.embedding, architecture.parameters) * bits / 8)


def _logits(architecture: Architecture, wanted: Serving) -> Bytes:
    rows = padded_vocabulary(architecture.vocabulary, tensor=wanted.plan.tensor)
    return Bytes(wanted.concurrency * rows * (wanted.value_bytes + _LOGIT_EXTRA))


def _rounded(tokens: int, block: int) -> int:
    return -(-tokens // block) * block
