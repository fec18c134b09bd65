"""What one card holds at the worst moment of training.

::

                      weights   gradients   optimizer      bytes for each parameter that is trained
    float32              4          4           8          everything in float32
    autocast           4 + 2        4           8          float32 weights, computed through 16-bit copies
    master copy          2          2         4 + 8        16-bit weights, a float32 copy in the optimizer

The last is the 16 bytes of Rajbhandari et al. 2020 (arXiv 1910.02054, section 3.1); ZeRO divides the optimizer,
then gradients, then weights among the copies. LoRA adds ``rank · (in + out)`` for each matrix
(Hu et al. 2021, arXiv 2106.09685) and trains only that; QLoRA keeps the frozen rest in 4 or 8 bits.

Gradients grow while activations are given back, so where gradients are dropped after each step the larger of
the two is what counts (``not_at_once``).
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.domain.architectures import Architecture
from controlplane.domain.common.resources import MIB, Bytes
from controlplane.domain.jobs.parallelism import SINGLE_CARD, ParallelPlan
from controlplane.domain.sizing.activations import (
    Mixed,
    checkpoint_bytes,
    kept_by_layer,
    score_bytes,
)
from controlplane.domain.sizing.precisions import Scheme, weight_bytes
from controlplane.domain.sizing.shares import Share, share

#: Of an adapter's weight, gradient and each moment: all float32.
_ADAPTER = 4
_MOMENTS = 8
#: Python, the libraries and their kernels, or a driver's context, before anything is loaded.
PROCESS = Bytes(600 * MIB)


#: Bytes for each trained parameter: weights, gradients, optimizer.
_TRAINED: dict[Mixed, tuple[int, int, int]] = {
    Mixed.FLOAT32: (4, 4, 8),
    Mixed.AUTOCAST: (6, 4, 8),
    Mixed.MASTER_COPY: (2, 2, 12),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """A LoRA adapter, and what the frozen model is kept in."""

    rank: int
    base: Scheme


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What somebody wants to train."""

    #: Rows at once on one card.
    batch: int
    #: Tokens of the longest row.
    length: int
    accumulation: int = 1
    mixed: Mixed = Mixed.AUTOCAST
    #: None trains every weight.
    adapter: Adapter | None = None
    recompute: bool = False
    #: Gradients of a step are dropped before the next begins; otherwise they have memory of their own.
    drops_gradients: bool = False
    #: Fused attention, which keeps no scores.
    fused_attention: bool = True
    #: A second copy of the model that only judges (DPO, GRPO), in what it is computed in.
    reference: bool = False
    plan: ParallelPlan = SINGLE_CARD
    process: Bytes = PROCESS

    @property
    def value_bytes(self) -> int:
        return self.mixed.value_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """Bytes that the fullest card holds."""

    weights: Bytes
    gradients: Bytes
    optimizer: Bytes
    activations: Bytes
    logits: Bytes
    process: Bytes
    #: Of gradients and activations, what is never held at the same time.
    not_at_once: Bytes = Bytes(0)

    @property
    def tensors(self) -> Bytes:
        """Everything but the process."""
        held = self.weights + self.gradients + self.optimizer + self.activations + self.logits
        return Bytes(held - self.not_at_once)

    @property
    def total(self) -> Bytes:
        return Bytes(self.tensors + self.process)


def training_memory(architecture: Architecture, wanted: Training) -> TrainingMemory:
    """What the fullest card holds when every row is as long as allowed: an upper bound for shorter ones."""
    held = share(architecture, wanted.plan)
    states = (
        _adapter(architecture, held, wanted)
        if wanted.adapter
        else _full(architecture, held, wanted)
    )
    weights, gradients, optimizer = states
    if wanted.reference:
        weights += held.parameters * wanted.value_bytes
    kept, again = activation_bytes(architecture, wanted)
    logits = logit_bytes(architecture, wanted)
    listed = gradients + kept + again + logits
    return TrainingMemory(
        weights=Bytes(weights),
        gradients=Bytes(gradients),
        optimizer=Bytes(optimizer),
        activations=Bytes(kept + again),
        logits=logits,
        process=wanted.process,
        not_at_once=Bytes(
            listed - _worst(wanted, gradients=gradients, kept=kept, again=again, logits=logits)
        ),
    )


def _worst(wanted: Training, *, gradients: int, kept: int, again: int, logits: int) -> int:
    """Of what comes and goes, the most that is there at once.

    Activations are given back as gradients come into being, in proportion, so one of the two ends is the worst.
    Gradients that are added up over batches, or divided among copies, stay where they are.
    """
    stay = wanted.accumulation > 1 or wanted.plan.zero_stage > 0
    if stay or not wanted.drops_gradients:
        return gradients + kept + max(logits, again)
    return max(kept + logits, kept + again, gradients + again)


def adapter_parameters(architecture: Architecture, *, rank: int) -> int:
    """Of LoRA on every linear matrix but the output head: ``rank · (in + out)`` for each.

    The experts of a mixture have an adapter each, of twice the rank where gate and up are one matrix, as PEFT
    makes them.
    """
    hidden = architecture.hidden
    heads = architecture.heads * architecture.head_dim
    keys = architecture.kv_heads * architecture.head_dim
    latent = architecture.latent
    if latent is not None:
        query = latent.query_rank
        queries = (hidden + query) + (query + heads) if query else hidden + heads
        values = architecture.heads * latent.value_head_dim
        unpacked = architecture.heads * latent.nope_head_dim + values
        attention = queries + (hidden + latent.kv_rank + latent.rope_head_dim)
        attention += (latent.kv_rank + unpacked) + (values + hidden)
    else:
        attention = 2 * (hidden + heads) + 2 * (hidden + keys)
    experts = architecture.experts
    dense = experts.dense_layers if experts else architecture.layers
    wide = dense * architecture.matrices * (hidden + architecture.intermediate)
    if experts:
        inner = experts.intermediate
        each = 2 * (hidden + 2 * inner) + (inner + hidden)
        wide += (architecture.layers - dense) * (
            experts.count * each + architecture.matrices * (hidden + experts.shared_intermediate)
        )
    return rank * (architecture.layers * attention + wide)


def activation_bytes(architecture: Architecture, wanted: Training) -> tuple[Bytes, Bytes]:
    """What is kept until its gradient is known, and what is computed again, one layer at a time.

    ``tokens · layers of the stage · what a layer keeps``; with recomputation only every layer's input is kept. A
    pipeline's first stage holds as many batches as there are stages (1F1B; Narayanan et al. 2021,
    arXiv 2104.04473), so stages do not lessen it unless there are fewer batches.
    """
    plan = wanted.plan
    tokens = wanted.batch * -(-wanted.length // plan.context)
    kept = kept_by_layer(architecture, mixed=wanted.mixed, adapter=wanted.adapter is not None)
    layer = kept.on_card(tensor=plan.tensor, sequence=plan.sequence)
    if not wanted.fused_attention:
        scores = score_bytes(architecture, length=wanted.length, mixed=wanted.mixed)
        layer += scores / plan.tensor
    stage = -(-architecture.layers // plan.pipeline) * min(plan.pipeline, wanted.accumulation)
    changes = _expert_changes(architecture, wanted)
    if not wanted.recompute:
        return Bytes(round(tokens * stage * layer) + changes), Bytes(0)
    inputs = checkpoint_bytes(architecture, mixed=wanted.mixed)
    inputs /= plan.tensor if plan.sequence else 1
    again = round(tokens * layer) + changes // architecture.layers
    return Bytes(round(tokens * stage * inputs)), Bytes(again)


def _expert_changes(architecture: Architecture, wanted: Training) -> int:
    """What an adapter changes of each expert is written out as a matrix before it is used."""
    if wanted.adapter is None:
        return 0
    plan = wanted.plan
    parts = plan.tensor * plan.expert * plan.pipeline
    return architecture.expert_parameters * wanted.value_bytes // parts


def logit_bytes(architecture: Architecture, wanted: Training) -> Bytes:
    """``tokens · vocabulary · (logits + 3 · 4)``: as computed, in float32, their logarithms, and the gradient."""
    plan = wanted.plan
    tokens = wanted.batch * -(-wanted.length // plan.context)
    each = 12 + (wanted.value_bytes if wanted.value_bytes < 4 else 0)
    return Bytes(round(tokens * architecture.vocabulary * each / plan.tensor))


def _full(architecture: Architecture, held: Share, wanted: Training) -> tuple[int, int, int]:
    weights, gradients, optimizer = _TRAINED[wanted.mixed]
    plan = wanted.plan
    gathered = _gathered(architecture, wanted) if plan.zero_stage >= 3 else 0
    return (
        _sharded(held, weights, plan, stage=3) + gathered,
        _sharded(held, gradients, plan, stage=2),
        _sharded(held, optimizer, plan, stage=1),
    )


def _gathered(architecture: Architecture, wanted: Training) -> int:
    """Weights that ZeRO 3 has put together: the layer at work, and the next."""
    plan = wanted.plan
    experts = architecture.expert_parameters
    body = max(0, architecture.parameters - architecture.embedding - experts)
    layer = (body + experts // plan.expert) // architecture.layers
    largest = max(layer, architecture.vocabulary * architecture.hidden)
    return 2 * -(-largest // plan.tensor) * wanted.value_bytes


def _sharded(held: Share, each: int, plan: ParallelPlan, *, stage: int) -> int:
    """Bytes after ZeRO; experts have fewer copies, since their cards hold different ones."""
    if plan.zero_stage < stage:
        return held.parameters * each
    copies = max(1, plan.copies)
    own = max(1, plan.copies // plan.expert)
    return -(-(held.embedding + held.body) * each // copies) + -(-held.expert * each // own)


def _adapter(architecture: Architecture, held: Share, wanted: Training) -> tuple[int, int, int]:
    adapter = wanted.adapter
    if adapter is None:
        return 0, 0, 0
    whole = weight_bytes(architecture, adapter.base)
    frozen = round(whole * held.parameters / max(1, architecture.parameters))
    plan = wanted.plan
    if plan.zero_stage >= 3:
        frozen = -(-frozen // max(1, plan.copies)) + _gathered(architecture, wanted)
    trained = adapter_parameters(architecture, rank=adapter.rank)
    trained = -(-trained // (plan.tensor * plan.pipeline))
    copies = max(1, plan.copies)
    return (
        frozen + trained * _ADAPTER,
        -(-trained * _ADAPTER // (copies if plan.zero_stage >= 2 else 1)),
        -(-trained * _MOMENTS // (copies if plan.zero_stage >= 1 else 1)),
    )
