"""Models and requests that tests of engines which serve share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from controlplane.adapters.engines.container_commands import ALL_ARGUMENTS, RUN_STEPS_COMMAND
from controlplane.ports.adapter_registry import all_chips, engine_by_name
from controlplane.ports.engines import EngineTask, ModelFacts, RenderRequest
from controlplane.ports.launches import Launch, LaunchPlacement
from tests.unit.engines.training_requests import DATASET, MODEL_TREE, QWEN3_8B

CHIPS = ("nvidia-h800", "ascend-910b3", "ascend-910c", "ascend-310p")
ENGINES = ("mindie", "sglang", "vllm", "vllm_ascend", "xllm")
#: Engines and chips of replicas on several nodes.
ACROSS_NODES = (
    ("vllm", "nvidia-h800"),
    ("vllm_ascend", "ascend-910b3"),
    ("vllm_ascend", "ascend-910c"),
    ("sglang", "nvidia-h800"),
    ("sglang", "ascend-910b3"),
)
KEY = "k3y-of-the-replica"
PLAIN = replace(QWEN3_8B, config={**QWEN3_8B.config, "architectures": ["Qwen3ForCausalLM"]})
MODELSLIM = replace(PLAIN, name="qwen3-8b-w8a8", scheme="w8a8", format="modelslim")
COMPRESSED = replace(PLAIN, name="qwen3-8b-w8a8", scheme="w8a8", format="compressed-tensors")
FOUR_BITS = replace(COMPRESSED, name="qwen3-8b-w4a16", scheme="w4a16")
#: A pipeline of diffusers from text to image.
IMAGES = replace(
    PLAIN,
    name="qwen-image",
    architecture="QwenImagePipeline",
    context_length=0,
    config={},
    files=frozenset({"model_index.json"}),
)
#: Text to speech.
SPEECH = replace(
    PLAIN,
    name="qwen3-tts",
    architecture="Qwen3TTSForConditionalGeneration",
    context_length=0,
    config={},
    catalog_key="qwen3-tts-1.7b-customvoice",
)
VIDEO = replace(IMAGES, name="wan2.1", architecture="WanPipeline")
#: Models that vLLM, SGLang, xLLM and Text Embeddings Inference serve beside those that generate text.
KINDS: Mapping[str, ModelFacts] = {
    "embedding": replace(PLAIN, files=frozenset({"modules.json"})),
    "encoder": replace(
        PLAIN,
        name="bge-m3",
        architecture="XLMRobertaModel",
        context_length=8192,
        files=frozenset({"modules.json"}),
    ),
    "reranker": replace(
        PLAIN,
        name="bge-reranker-v2-m3",
        architecture="XLMRobertaForSequenceClassification",
        context_length=8192,
    ),
    "causal-reranker": replace(PLAIN, catalog_key="qwen3-reranker-8b"),
    "whisper": replace(
        PLAIN, name="whisper", architecture="WhisperForConditionalGeneration", context_length=448
    ),
    "asr": replace(PLAIN, name="qwen3-asr", architecture="Qwen3ASRForConditionalGeneration"),
}
IMAGE_SPEC: Mapping[str, Any] = {"model_name": "assistant", "concurrency": 2, "graphs": "off"}

#: One spec of each kind; what an engine cannot do of one it refuses.
SPECS: Mapping[str, Mapping[str, Any]] = {
    "default": {"model_name": "assistant"},
    "bounded": {
        "model_name": "assistant",
        "context_length": 8192,
        "concurrency": 64,
        "memory_fraction": 0.8,
    },
    "switched-off": {
        "model_name": "assistant",
        "prefix_cache": "off",
        "chunked_prefill": "off",
        "graphs": "off",
    },
    "switched-on": {
        "model_name": "assistant",
        "prefix_cache": "on",
        "chunked_prefill": "on",
        "graphs": "on",
    },
    "small-cache": {"model_name": "assistant", "kv_precision": "fp8"},
    "divided": {"model_name": "assistant", "parallel": {"tensor": 2, "pipeline": 2}},
    "copied": {"model_name": "assistant", "parallel": {"data": 2}},
}


def kinds(name: str) -> Iterator[tuple[str, Launch]]:
    """Launches of every kind of model beside text, with every spec on every chip that takes both."""
    for chip in CHIPS:
        for kind, model in KINDS.items():
            for spec in SPECS.values():
                if not findings(name, spec, chip=chip, model=model):
                    yield kind, rendered(name, spec, chip=chip, model=model)


def findings(
    name: str,
    spec: Mapping[str, Any],
    *,
    chip: str = "nvidia-h800",
    model: ModelFacts | None = PLAIN,
    task: EngineTask = EngineTask.SERVE,
) -> dict[str, str]:
    """What is wrong with a replica, by field; where the engine does not run on the chip that alone."""
    if reason := engine_by_name(name).unsupported_reason(task, all_chips()[chip]):
        return {"engine": reason}
    found = engine_by_name(name).check(task, spec, chip=all_chips()[chip], model=model)
    return {each.field: each.message for each in found}


def rendered(
    name: str, spec: Mapping[str, Any], *, chip: str, nodes: int = 1, **changes: Any
) -> Launch:
    """What the engine makes of a replica on four cards of each node."""
    values: dict[str, Any] = {
        "task": EngineTask.SERVE,
        "name": "replica-1",
        "spec": spec,
        "chip": all_chips()[chip],
        "placements": tuple(
            LaunchPlacement(node=f"n{index}", cards=(0, 1, 2, 3)) for index in range(nodes)
        ),
        "inputs": (MODEL_TREE,),
        "token": KEY,
        "model": PLAIN,
    }
    return engine_by_name(name).render(RenderRequest(**(values | changes)))


def command_of(launch: Launch) -> list[str]:
    """The engine's command, which a program of ours may start."""
    argv = list(launch.roles[0].argv)
    if "steps.json" not in launch.files:
        return argv
    run: list[str] = json.loads(launch.files["steps.json"])["steps"][0]["run"]
    return argv[len(RUN_STEPS_COMMAND) :] if run == list(ALL_ARGUMENTS) else run


def quantized(spec: Mapping[str, Any], *, chip: str, **changes: Any) -> Launch:
    """What msModelSlim makes of a quantization on one card."""
    return rendered(
        "msmodelslim",
        spec,
        chip=chip,
        task=EngineTask.QUANTIZE,
        placements=(LaunchPlacement(node="n0", cards=(0,)),),
        inputs=(MODEL_TREE, DATASET),
        **changes,
    )
