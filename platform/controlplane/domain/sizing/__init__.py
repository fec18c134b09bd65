"""Memory estimates for training and serving, and the plans and chips that they fit on. Each value names its
formula.
"""

from controlplane.domain.sizing.estimates import (
    DEFAULT_ENGINE_MEMORY,
    EngineMemory,
    SizingEstimate,
    estimate_model_memory,
    finetune_workload,
    serving_workload,
)
from controlplane.domain.sizing.plan_search import (
    fits_training_memory,
    largest_batch,
    largest_concurrency,
    largest_context,
    plan_replicas,
    serving_plan,
    training_plan,
)
from controlplane.domain.sizing.serving import (
    ServingTraits,
    ServingWorkload,
    bytes_per_token,
    kv_cache_bytes,
    serving_memory,
)
from controlplane.domain.sizing.training import (
    PROCESS_BYTES,
    LoraAdapter,
    MixedPrecision,
    TrainingMemory,
    TrainingWorkload,
    adapter_parameters,
    training_memory,
)
from controlplane.domain.sizing.weights import (
    WEIGHT_SCHEMES,
    UnknownScheme,
    weight_bytes,
    weight_scheme,
)
