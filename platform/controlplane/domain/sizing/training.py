"""Peak memory of one card during training.

::

                      weights   gradients   optimizer      bytes per trained parameter
    float32              4          4           8          everything in float32
    autocast           4 + 2        4           8          float32 weights, computed through 16-bit copies
    master copy          2          2         4 + 8        16-bit weights, a float32 copy in the optimizer

The last is the 16 bytes of Rajbhandari et al. 2020 (arXiv 1910.02054, section 3.1); ZeRO divides the optimizer,
then gradients, then weights among the copies. LoRA adds ``rank · (in + out)`` for each matrix
(Hu et al. 2021, arXiv 2106.09685) and trains only that; QLoRA keeps the frozen rest in 4 or 8 bits.

Gradients grow while activations are freed, so if gradients are dropped after each step only the larger of the two
counts (``not_at_once``).

Activations are counted tensor by tensor as autograd saves them, for a pre-norm decoder with fused attention
(scores are not stored; Dao et al. 2022, arXiv 2205.14135). The method is that of Korthikanti et al. 2022 (arXiv
2205.05198), whose 34 bytes per token, layer and hidden value hold for a plain feed-forward network four times as
wide; gates, shared heads and experts change that, so each is counted here::

    norms      input, normalised value (float32 in either case), output to the next matrices
    attention  queries and keys after rotation, values, the result
    dense      gate, its activation, up, their product        (two without a gate)
    experts    the same for each expert of a token, and the token once for each of them

With autocast the residual stays in float32 and each matrix gets its own 16-bit copy of its input. Frozen parts
store nothing for their gradient: norms store no normalised values, and an adapter stores its input instead of the
matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from controlplane.domain.architectures import Architecture
from controlplane.domain.common.resources import MIB, Bytes
from controlplane.domain.jobs.parallelism import SINGLE_CARD, ParallelPlan
from controlplane.domain.sizing.weights import (
    WeightScheme,
    WeightShard,
    largest_shard,
    weight_bytes,
)

#: Matrices that read the layer's normalised input: queries, keys and values; gate and up are added.
_ATTENTION_READERS = 3


class MixedPrecision(StrEnum):
    """Precision in which weights are stored and computed."""

    FLOAT32 = "float32"
    #: Weights in float32, computed through 16-bit copies.
    AUTOCAST = "autocast"
    #: Weights in 16 bits, with a float32 copy in the optimizer.
    MASTER_COPY = "master_copy"

    @property
    def value_bytes(self) -> int:
        return 4 if self is MixedPrecision.FLOAT32 else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerActivations:
    """Bytes per token and layer."""

    #: Stored by every tensor-parallel card, unless sequence parallelism divides it.
    whole: float
    #: Divided among tensor-parallel cards.
    divided: float

    def on_card(self, *, tensor: int, sequence: bool) -> float:
        return self.whole / (tensor if sequence else 1) + self.divided / tensor


def layer_activations(
    architecture: Architecture, *, mixed: MixedPrecision, adapter: bool = False
) -> LayerActivations:
    """Bytes per token, averaged over the layers of the model."""
    value = mixed.value_bytes
    experts = architecture.experts
    dense_layers = experts.dense_layers if experts else architecture.layers
    dense = dense_layers / architecture.layers
    divided = _attention_values(architecture) + dense * _feed_forward(
        architecture, architecture.intermediate
    )
    whole = _norm_bytes(architecture, mixed=mixed, adapter=adapter)
    if experts is not None:
        each = experts.per_token * _feed_forward(architecture, experts.intermediate)
        each += _feed_forward(architecture, experts.shared_intermediate)
        divided += each * (1 - dense)
        # The token once per expert, as input and as output, and the router's values.
        copies = 2 * experts.per_token * architecture.hidden * value
        whole += (copies + 3 * 4 * experts.count) * (1 - dense)
    heads_normed = _head_normalization_bytes(architecture, mixed=mixed, adapter=adapter)
    return LayerActivations(whole=whole, divided=divided * value + heads_normed)


def activation_checkpoint_bytes(architecture: Architecture, *, mixed: MixedPrecision) -> float:
    """Bytes per token and layer if everything except the layer's input is recomputed."""
    residual = 4 if mixed is MixedPrecision.AUTOCAST else mixed.value_bytes
    return architecture.hidden * residual


def attention_score_bytes(
    architecture: Architecture, *, length: int, mixed: MixedPrecision
) -> float:
    """Bytes per token and layer if attention is not fused: the softmax in float32 and as computed."""
    value = mixed.value_bytes
    return architecture.heads * length * (4 + (value if value < 4 else 0))


def _norm_bytes(architecture: Architecture, *, mixed: MixedPrecision, adapter: bool) -> float:
    """Bytes, including what the norms pass to the following matrices."""
    hidden = architecture.hidden
    readers = _ATTENTION_READERS + architecture.matrices - 1
    if mixed is MixedPrecision.FLOAT32:
        inner = 4 if adapter else 8
        # Two norms feed matrices; those after a block feed the residual, which stores nothing.
        return hidden * (architecture.norms * inner + 2 * 4)
    if adapter:
        own = architecture.heads * architecture.head_dim
        return hidden * architecture.norms * 4 + 2 * (readers * hidden + own)
    if mixed is MixedPrecision.AUTOCAST:
        return hidden * (architecture.norms * 8 + readers * 2)
    return hidden * (architecture.norms * 6 + 2 * 2)


def _head_normalization_bytes(
    architecture: Architecture, *, mixed: MixedPrecision, adapter: bool
) -> float:
    if not architecture.head_norms:
        return 0.0
    normed = (architecture.heads + architecture.kv_heads) * architecture.head_dim
    after = 0 if adapter else (4 if mixed is MixedPrecision.FLOAT32 else 2)
    return normed * (4 + after)


def _attention_values(architecture: Architecture) -> float:
    """Number of stored values, each counted once."""
    heads = architecture.heads * architecture.head_dim
    part = architecture.latent
    if part is not None:
        values = architecture.heads * part.value_head_dim
        compressed = 3 * part.kv_rank + 3 * (part.query_rank or 0)
        # Queries and keys are concatenated from two parts each; values are slices of the decompressed vector.
        return 2 * heads + 3 * values + compressed
    keys = architecture.kv_heads * architecture.head_dim
    return 2 * heads + 2 * keys


def _feed_forward(architecture: Architecture, width: int) -> float:
    return (4 if architecture.matrices == 3 else 2) * width


#: Bytes of an adapter's weight, gradient and each moment: all float32.
_ADAPTER = 4
_MOMENTS = 8
#: Python, libraries and kernels, or the driver context, before a model is loaded.
PROCESS_BYTES = Bytes(600 * MIB)


#: Bytes for each trained parameter: weights, gradients, optimizer.
_TRAINED: dict[MixedPrecision, tuple[int, int, int]] = {
    MixedPrecision.FLOAT32: (4, 4, 8),
    MixedPrecision.AUTOCAST: (6, 4, 8),
    MixedPrecision.MASTER_COPY: (2, 2, 12),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraAdapter:
    """A LoRA adapter, and the format of the frozen base model."""

    rank: int
    base: WeightScheme


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWorkload:
    #: Examples per card and step.
    batch: int
    #: Tokens of the longest example.
    length: int
    accumulation: int = 1
    mixed: MixedPrecision = MixedPrecision.AUTOCAST
    #: None is full fine-tuning.
    adapter: LoraAdapter | None = None
    recompute: bool = False
    #: Gradients of a step are freed before the next begins; otherwise they stay allocated.
    drops_gradients: bool = False
    #: Fused attention, which stores no scores.
    fused_attention: bool = True
    #: A reference model (DPO, GRPO), in the compute precision.
    reference: bool = False
    plan: ParallelPlan = SINGLE_CARD
    process: Bytes = PROCESS_BYTES

    @property
    def value_bytes(self) -> int:
        return self.mixed.value_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """Bytes on the fullest card."""

    weights: Bytes
    gradients: Bytes
    optimizer: Bytes
    activations: Bytes
    logits: Bytes
    process: Bytes
    #: Bytes of gradients and activations that are never allocated at the same time.
    not_at_once: Bytes = Bytes(0)

    @property
    def tensors(self) -> Bytes:
        """All tensors, without the process."""
        tensors = self.weights + self.gradients + self.optimizer + self.activations + self.logits
        return Bytes(tensors - self.not_at_once)

    @property
    def total(self) -> Bytes:
        return Bytes(self.tensors + self.process)


def training_memory(architecture: Architecture, workload: TrainingWorkload) -> TrainingMemory:
    """Memory of the fullest card when every example has the maximum length: an upper bound for shorter ones."""
    shard = largest_shard(architecture, workload.plan)
    states = (
        _adapter_training_bytes(architecture, shard, workload)
        if workload.adapter
        else _full_finetuning_bytes(architecture, shard, workload)
    )
    weights, gradients, optimizer = states
    if workload.reference:
        weights += shard.parameters * workload.value_bytes
    activations, recomputed = activation_bytes(architecture, workload)
    logits = logit_bytes(architecture, workload)
    listed = gradients + activations + recomputed + logits
    return TrainingMemory(
        weights=Bytes(weights),
        gradients=Bytes(gradients),
        optimizer=Bytes(optimizer),
        activations=Bytes(activations + recomputed),
        logits=logits,
        process=workload.process,
        not_at_once=Bytes(
            listed
            - _peak_bytes(
                workload,
                gradients=gradients,
                activations=activations,
                recomputed=recomputed,
                logits=logits,
            )
        ),
    )


def _peak_bytes(
    workload: TrainingWorkload, *, gradients: int, activations: int, recomputed: int, logits: int
) -> int:
    """Peak of the temporary memory.

    Activations are freed as gradients are allocated, in proportion, so one of the two ends is the peak. Gradients
    that are accumulated over batches, or divided among copies, stay allocated.
    """
    stay = workload.accumulation > 1 or workload.plan.zero_stage > 0
    if stay or not workload.drops_gradients:
        return gradients + activations + max(logits, recomputed)
    return max(activations + logits, activations + recomputed, gradients + recomputed)


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


def activation_bytes(architecture: Architecture, workload: TrainingWorkload) -> tuple[Bytes, Bytes]:
    """Bytes stored until their gradient is computed, and bytes recomputed one layer at a time.

    ``tokens · layers of the stage · bytes per layer``; with recomputation only each layer's input is stored. A
    pipeline's first stage holds as many batches as there are stages (1F1B; Narayanan et al. 2021, arXiv
    2104.04473), so stages do not reduce it unless there are fewer batches.
    """
    plan = workload.plan
    tokens = workload.batch * -(-workload.length // plan.context)
    activations = layer_activations(
        architecture, mixed=workload.mixed, adapter=workload.adapter is not None
    )
    layer = activations.on_card(tensor=plan.tensor, sequence=plan.sequence)
    if not workload.fused_attention:
        scores = attention_score_bytes(architecture, length=workload.length, mixed=workload.mixed)
        layer += scores / plan.tensor
    stage = -(-architecture.layers // plan.pipeline) * min(plan.pipeline, workload.accumulation)
    changes = _expert_adapter_bytes(architecture, workload)
    if not workload.recompute:
        return Bytes(round(tokens * stage * layer) + changes), Bytes(0)
    inputs = activation_checkpoint_bytes(architecture, mixed=workload.mixed)
    inputs /= plan.tensor if plan.sequence else 1
    recomputed = round(tokens * layer) + changes // architecture.layers
    return Bytes(round(tokens * stage * inputs)), Bytes(recomputed)


def _expert_adapter_bytes(architecture: Architecture, workload: TrainingWorkload) -> int:
    """The adapter's change of each expert is materialised as a matrix before it is used."""
    if workload.adapter is None:
        return 0
    plan = workload.plan
    parts = plan.tensor * plan.expert * plan.pipeline
    return architecture.expert_parameters * workload.value_bytes // parts


def logit_bytes(architecture: Architecture, workload: TrainingWorkload) -> Bytes:
    """``tokens · vocabulary · (logits + 3 · 4)``: as computed, in float32, their logarithms, and the gradient."""
    plan = workload.plan
    tokens = workload.batch * -(-workload.length // plan.context)
    each = 12 + (workload.value_bytes if workload.value_bytes < 4 else 0)
    return Bytes(round(tokens * architecture.vocabulary * each / plan.tensor))


def _full_finetuning_bytes(
    architecture: Architecture, shard: WeightShard, workload: TrainingWorkload
) -> tuple[int, int, int]:
    weights, gradients, optimizer = _TRAINED[workload.mixed]
    plan = workload.plan
    gathered = _gathered_weights(architecture, workload) if plan.zero_stage >= 3 else 0
    return (
        _sharded_bytes(shard, weights, plan, stage=3) + gathered,
        _sharded_bytes(shard, gradients, plan, stage=2),
        _sharded_bytes(shard, optimizer, plan, stage=1),
    )


def _gathered_weights(architecture: Architecture, workload: TrainingWorkload) -> int:
    """Weights that ZeRO 3 has gathered: the active layer and the next."""
    plan = workload.plan
    experts = architecture.expert_parameters
    body = max(0, architecture.parameters - architecture.embedding - experts)
    layer = (body + experts // plan.expert) // architecture.layers
    largest = max(layer, architecture.vocabulary * architecture.hidden)
    return 2 * -(-largest // plan.tensor) * workload.value_bytes


def _sharded_bytes(shard: WeightShard, each: int, plan: ParallelPlan, *, stage: int) -> int:
    """Bytes after ZeRO; experts have fewer copies, since their cards hold different ones."""
    if plan.zero_stage < stage:
        return shard.parameters * each
    copies = max(1, plan.copies)
    own = max(1, plan.copies // plan.expert)
    return -(-(shard.embedding + shard.body) * each // copies) + -(-shard.expert * each // own)


def _adapter_training_bytes(
    architecture: Architecture, shard: WeightShard, workload: TrainingWorkload
) -> tuple[int, int, int]:
    adapter = workload.adapter
    if adapter is None:
        return 0, 0, 0
    whole = weight_bytes(architecture, adapter.base)
    frozen = round(whole * shard.parameters / max(1, architecture.parameters))
    plan = workload.plan
    if plan.zero_stage >= 3:
        frozen = -(-frozen // max(1, plan.copies)) + _gathered_weights(architecture, workload)
    trained = adapter_parameters(architecture, rank=adapter.rank)
    trained = -(-trained // (plan.tensor * plan.pipeline))
    copies = max(1, plan.copies)
    return (
        frozen + trained * _ADAPTER,
        -(-trained * _ADAPTER // (copies if plan.zero_stage >= 2 else 1)),
        -(-trained * _MOMENTS // (copies if plan.zero_stage >= 1 else 1)),
    )
