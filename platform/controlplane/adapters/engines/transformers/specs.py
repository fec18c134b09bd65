"""Which of the shared fields the ``transformers`` engine takes for each task, and what it trains.

``ninefold_runtime.specs`` mirrors the names and types; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.domain.common.accelerators import Chip, ChipKind
from controlplane.domain.common.spec_fields import FieldLimit, SpecField, subset
from controlplane.domain.specs.evaluation import EVALUATE
from controlplane.domain.specs.scripts import SCRIPT
from controlplane.domain.specs.serving import SERVE
from controlplane.domain.specs.training import FINETUNE
from controlplane.ports.engines import Task

FIELDS: Mapping[Task, tuple[SpecField, ...]] = {
    # It is part of this product, so there is no version to choose.
    Task.FINETUNE: tuple(field for field in FINETUNE if field.name != "engine_version"),
    Task.EVALUATE: EVALUATE,
    Task.SCRIPT: SCRIPT,
    Task.SERVE: subset(SERVE, "model_name", "queue_size", "precision"),
}

#: Settled by the product before the runtime is asked, or not known to it.
_NOT_OF_RUNTIME = frozenset(
    {
        "qlora",
        "parallel",
        "communication_dtype",
        "fused_operators",
        "out_of_memory_retries",
        "engine_version",
    }
)

_ONE_PROCESS = "this engine runs one process on one node"
_PARALLEL = ("tensor", "pipeline", "data", "context", "expert", "zero_stage")

LIMITS: Mapping[Task, tuple[FieldLimit, ...]] = {
    Task.FINETUNE: (
        FieldLimit(
            field="precision", values=("float16",), reason="training in it needs loss scaling"
        ),
        *(FieldLimit(field=f"parallel.{name}", reason=_ONE_PROCESS) for name in _PARALLEL),
        FieldLimit(field="parallel.sequence", values=("on",), reason=_ONE_PROCESS),
        FieldLimit(
            field="communication_dtype",
            values=("float32", "bfloat16", "float16"),
            reason=f"{_ONE_PROCESS}, which talks to nobody",
        ),
        FieldLimit(field="fused_operators", reason="it takes the kernels that torch has"),
    ),
}


def method_limit(chip: Chip | None) -> FieldLimit:
    """Why weights cannot be kept in 4 bits there."""
    reason = "bitsandbytes, which does that, is not among the packages of this engine"
    if chip is not None and chip.kind is not ChipKind.GPU:
        reason = f"bitsandbytes, which keeps weights in few bits, does not run on {chip.label}"
    return FieldLimit(field="method", values=("qlora",), reason=reason)


#: Causal language models that this engine trains: dense text models whose layers LoRA and TRL know.
TRAINABLE = frozenset(
    {
        "Gemma2ForCausalLM",
        "Gemma3ForCausalLM",
        "GemmaForCausalLM",
        "LlamaForCausalLM",
        "MistralForCausalLM",
        "OlmoForCausalLM",
        "Olmo2ForCausalLM",
        "Phi3ForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen3ForCausalLM",
        "SmolLM3ForCausalLM",
    }
)


def runtime_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What ``ninefold_runtime`` reads of a complete spec: the fields that it knows."""
    return {name: value for name, value in spec.items() if name not in _NOT_OF_RUNTIME}
