"""Models, placements and requests that tests of engines which train share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.ports.adapter_registry import all_chips, engine_by_name
from controlplane.ports.engines import EngineTask, ModelFacts, RenderRequest
from controlplane.ports.launches import InputArtifact, Launch, LaunchPlacement

#: As in its ``config.json``.
QWEN3_8B = ModelFacts(
    name="qwen3-8b",
    architecture="Qwen3ForCausalLM",
    context_length=40_960,
    parameters=8_190_735_360,
    config={
        "num_hidden_layers": 36,
        "hidden_size": 4096,
        "intermediate_size": 12_288,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 40_960,
        "vocab_size": 151_936,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1_000_000,
        "tie_word_embeddings": False,
    },
    catalog_key="qwen3-8b",
)
NODE = tuple(range(8))
MODEL_TREE = InputArtifact(name="model", files={"config.json": "sha256:0"})
DATASET = InputArtifact(
    name="dataset", files={"train.jsonl": "sha256:1", "validation.jsonl": "sha256:2"}
)


def rendered(
    name: str, spec: Mapping[str, Any], *, chip: str, nodes: int = 1, **changes: Any
) -> Launch:
    """What the engine makes of a fine-tune on whole nodes of eight cards."""
    values: dict[str, Any] = {
        "task": EngineTask.FINETUNE,
        "name": "attempt-1",
        "spec": spec,
        "chip": all_chips()[chip],
        "placements": tuple(
            LaunchPlacement(node=f"n{index}", cards=NODE) for index in range(nodes)
        ),
        "inputs": (MODEL_TREE, DATASET),
        "report_url": "https://ninefold.example/api/v1/attempts/1",
        "token": "s3cret",
        "model": QWEN3_8B,
    }
    return engine_by_name(name).render(RenderRequest(**(values | changes)))


def findings(
    name: str,
    spec: Mapping[str, Any],
    *,
    chip: str = "nvidia-h800",
    model: ModelFacts | None = QWEN3_8B,
) -> dict[str, str]:
    """What is wrong with a fine-tune, by field."""
    found = engine_by_name(name).check(
        EngineTask.FINETUNE, spec, chip=all_chips()[chip], model=model
    )
    return {each.field: each.message for each in found}
