"""Estimates beside published figures."""

from __future__ import annotations

from controlplane.domain.architectures import parse_architecture
from controlplane.domain.common.resources import GIB, Bytes
from controlplane.domain.jobs.parallelism import ParallelPlan
from controlplane.domain.sizing import (
    LoraAdapter,
    MixedPrecision,
    ServingTraits,
    ServingWorkload,
    TrainingWorkload,
    serving_memory,
    training_memory,
    weight_scheme,
)
from tests.benchmarks.sizing.published import SHAPES, Published

#: Prompts go through whole; what the process itself holds is not in the published figures.
_TENSORS_ONLY = ServingTraits(
    step_tokens=None, graphs=Bytes(0), process=Bytes(0), collectives=Bytes(0), block=1
)
#: Tokens that are written one by one need no memory of a step.
_WRITTEN = 2048


def estimated_gib(published: Published) -> float:
    """What the estimate says of the run that was published, in 2³⁰ bytes."""
    architecture = parse_architecture(SHAPES[published.model])
    if published.what == "train":
        wanted = TrainingWorkload(
            batch=1,
            length=published.context,
            accumulation=8,
            mixed=MixedPrecision.AUTOCAST,
            adapter=LoraAdapter(
                rank=published.rank or 0, base=weight_scheme(published.adapter_base)
            ),
            recompute=True,
        )
        return training_memory(architecture, wanted).total / GIB
    serving = ServingWorkload(
        scheme=weight_scheme(published.scheme),
        context=published.context,
        plan=ParallelPlan(tensor=published.tensor),
        traits=_TENSORS_ONLY,
        graphs=False,
    )
    held = serving_memory(architecture, serving)
    if published.what == "weights":
        return held.weights / GIB
    share = max(1, published.context - _WRITTEN) / published.context
    return (held.total - held.activations * (1 - share)) / GIB
