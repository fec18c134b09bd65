"""How much memory a model takes to train and to serve, and what that fits on. Every figure names its formula."""

from controlplane.domain.sizing.activations import Mixed
from controlplane.domain.sizing.answers import Answer, Part, answer, serving_wanted, training_wanted
from controlplane.domain.sizing.caches import bytes_per_token, cache_bytes
from controlplane.domain.sizing.engines import USUAL, EngineMemory
from controlplane.domain.sizing.fitting import (
    Deployment,
    deployment,
    largest_batch,
    largest_concurrency,
    largest_context,
    serving_fits,
    serving_plan,
    too_large,
    training_fits,
    training_plan,
    usable,
)
from controlplane.domain.sizing.precisions import (
    SCHEMES,
    Scheme,
    UnknownScheme,
    scheme_called,
    stored_scheme,
    weight_bytes,
)
from controlplane.domain.sizing.serving import (
    Serving,
    ServingMemory,
    ServingTraits,
    serving_memory,
)
from controlplane.domain.sizing.training import (
    PROCESS,
    Adapter,
    Training,
    TrainingMemory,
    adapter_parameters,
    training_memory,
)

__all__ = [
    "PROCESS",
    "SCHEMES",
    "USUAL",
    "Adapter",
    "Answer",
    "Deployment",
    "EngineMemory",
    "Mixed",
    "Part",
    "Scheme",
    "Serving",
    "ServingMemory",
    "ServingTraits",
    "Training",
    "TrainingMemory",
    "UnknownScheme",
    "adapter_parameters",
    "answer",
    "bytes_per_token",
    "cache_bytes",
    "deployment",
    "largest_batch",
    "largest_concurrency",
    "largest_context",
    "scheme_called",
    "serving_fits",
    "serving_memory",
    "serving_plan",
    "serving_wanted",
    "stored_scheme",
    "too_large",
    "training_fits",
    "training_memory",
    "training_plan",
    "training_wanted",
    "usable",
    "weight_bytes",
]
