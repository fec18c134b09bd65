"""Which of the shared fields the ``transformers`` engine takes for each task, and what it trains.

``ninefold_runtime.specs`` mirrors the names and types; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.domain.fields import Field, Limit, subset
from controlplane.domain.specs.evaluating import EVALUATE
from controlplane.domain.specs.scripts import SCRIPT
from controlplane.domain.specs.serving import SERVE
from controlplane.domain.specs.training import FINETUNE
from controlplane.ports.engines import Task

FIELDS: Mapping[Task, tuple[Field, ...]] = {
    Task.FINETUNE: FINETUNE,
    Task.EVALUATE: EVALUATE,
    Task.SCRIPT: SCRIPT,
    Task.SERVE: subset(SERVE, "model_name", "queue_size", "precision"),
}

#: Settled by the product before the runtime is asked, or not known to it.
_NOT_OF_RUNTIME = frozenset(
    {
        "objective",
        "qlora",
        "dpo",
        "grpo",
        "parallel",
        "recompute",
        "communication_dtype",
        "fused_operators",
        "out_of_memory_retries",
    }
)

_ONE_PROCESS = "this engine runs one process on one node"

LIMITS: Mapping[Task, tuple[Limit, ...]] = {
    Task.FINETUNE: (
        Limit(
            field="objective",
            values=("dpo", "grpo", "pretrain"),
            reason="this engine learns from answers only",
        ),
        Limit(field="method", values=("qlora",), reason="this engine keeps weights as they are"),
        Limit(field="precision", values=("float16",), reason="training in it needs loss scaling"),
        Limit(field="parallel.tensor", reason=_ONE_PROCESS),
        Limit(field="parallel.pipeline", reason=_ONE_PROCESS),
        Limit(field="parallel.data", reason=_ONE_PROCESS),
        Limit(field="parallel.context", reason=_ONE_PROCESS),
        Limit(field="parallel.expert", reason=_ONE_PROCESS),
        Limit(field="parallel.zero_stage", reason=_ONE_PROCESS),
        Limit(field="fused_operators", reason="it takes the kernels that torch has"),
    ),
}

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
