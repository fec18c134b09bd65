"""Parameters of a build, counted matrix by matrix as the modelling code makes them.

::

    all  =  tokens V·h  (twice unless tied)  +  Σ layers (attention + feed-forward + norms)  +  last norm

The active ones are those that one token meets: of a mixture only ``per_token`` experts of each layer.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.domain.architectures.builds import Biases, Build
from controlplane.domain.architectures.values import Experts, Latent, Recurrent


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """What is counted; the words are those of ``Architecture``."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    context: int
    tied: bool
    latent: Latent | None
    experts: Experts | None
    recurrent: Recurrent | None


def count(size: Dimensions, build: Build) -> tuple[int, int]:
    """All parameters, and those that work on one token."""
    recurrent = size.recurrent.layers if size.recurrent else 0
    norm = size.hidden * (2 if build.biases is Biases.ALL else 1)
    shared = size.vocabulary * size.hidden * (1 if size.tied else 2)
    shared += norm + _tables(size, build)
    shared += size.layers * build.norms * norm
    shared += (size.layers - recurrent) * _attention(size, build)
    shared += recurrent * _recurrent(size)
    if size.experts is None:
        everything = shared + size.layers * _dense(size, build)
        return everything, everything
    mixed = size.layers - size.experts.dense_layers
    shared += size.experts.dense_layers * _dense(size, build)
    shared += mixed * _beside_experts(size, size.experts, build)
    each = _expert(size, size.experts, build)
    return (
        shared + mixed * size.experts.count * each,
        shared + mixed * size.experts.per_token * each,
    )


def _attention(size: Dimensions, build: Build) -> int:
    if size.latent is not None:
        return _latent(size, size.latent)
    queries = size.heads * size.head_dim
    keys = size.kv_heads * size.head_dim
    gates = queries if build.gated_queries else 0
    total = size.hidden * (2 * queries + gates + 2 * keys)
    if build.biases is not Biases.NONE:
        total += queries + 2 * keys
    if build.biases in (Biases.ATTENTION, Biases.ALL):
        total += size.hidden
    if build.head_norms:
        total += 2 * size.head_dim
    # Each head of gpt-oss learns how much of its attention goes nowhere.
    return total + (size.heads if build.family == "gpt_oss" else 0)


def _latent(size: Dimensions, latent: Latent) -> int:
    query = size.heads * (latent.nope_head_dim + latent.rope_head_dim)
    rank = latent.query_rank
    queries = size.hidden * query if rank is None else rank * (size.hidden + 1 + query)
    keys = size.hidden * (latent.kv_rank + latent.rope_head_dim) + latent.kv_rank
    keys += latent.kv_rank * size.heads * (latent.nope_head_dim + latent.value_head_dim)
    return queries + keys + size.heads * latent.value_head_dim * size.hidden


def _recurrent(size: Dimensions) -> int:
    """Gated DeltaNet as Qwen3-Next has it: queries, keys, values, gates; two figures a head; convolution."""
    part = size.recurrent
    if part is None:
        return 0
    reads = size.hidden * (2 * part.key_width + 2 * part.value_width + 2 * part.value_heads)
    mixes = (2 * part.key_width + part.value_width) * part.kernel
    return (
        reads + mixes + 2 * part.value_heads + part.value_head_dim + part.value_width * size.hidden
    )


def _dense(size: Dimensions, build: Build) -> int:
    biases = size.intermediate + size.hidden if build.biases is Biases.ALL else 0
    return build.matrices * size.hidden * size.intermediate + biases


def _expert(size: Dimensions, experts: Experts, build: Build) -> int:
    biases = 2 * experts.intermediate + size.hidden if build.family == "gpt_oss" else 0
    return build.matrices * size.hidden * experts.intermediate + biases


def _beside_experts(size: Dimensions, experts: Experts, build: Build) -> int:
    """The router, and the experts that every token meets."""
    router = size.hidden * experts.count + (experts.count if build.family == "gpt_oss" else 0)
    gate = size.hidden if build.shared_gate and experts.shared else 0
    return router + gate + build.matrices * size.hidden * experts.shared_intermediate


def _tables(size: Dimensions, build: Build) -> int:
    """What is learnt beside layers: positions of GPT-2 and encoders, norms of embeddings, the pooler."""
    norm = 2 * size.hidden
    if build.encoder:
        types = 2 if build.family == "bert" else 1
        positions = (size.context + types) * size.hidden
        # An encoder has its norms after each part, and none at the end: that place is the embeddings'.
        return positions + size.hidden * (size.hidden + 1)
    if build.family == "gpt2":
        return size.context * size.hidden
    return norm if build.family == "bloom" else 0
