"""Tiny models of five architectures, and real shapes without memory, through the engine's own libraries."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.domain.architectures import parse_architecture
from controlplane.domain.common.resources import Bytes
from controlplane.domain.sizing import (
    LoraAdapter,
    MixedPrecision,
    ServingTraits,
    ServingWorkload,
    TrainingWorkload,
    adapter_parameters,
    serving_memory,
    training_memory,
    weight_scheme,
)
from controlplane.ports import adapter_registry
from tests.benchmarks.sizing.published import SHAPES

PROJECT = Path(__file__).resolve().parents[3]
PROGRAM = Path(__file__).with_name("measured.py")

_SMALL: Mapping[str, Any] = {
    "hidden_size": 128,
    "num_attention_heads": 8,
    "max_position_embeddings": 2048,
}
#: ``model_type`` → a small build of it.
TINY: Mapping[str, Mapping[str, Any]] = {
    "qwen2": {
        **_SMALL,
        "vocab_size": 2000,
        "intermediate_size": 352,
        "num_hidden_layers": 6,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "llama": {
        **_SMALL,
        "vocab_size": 1000,
        "intermediate_size": 352,
        "num_hidden_layers": 6,
        "num_key_value_heads": 8,
    },
    "gemma3_text": {
        **_SMALL,
        "vocab_size": 2000,
        "intermediate_size": 512,
        "num_hidden_layers": 6,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 64,
        "sliding_window": 64,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": 2,
    },
    "deepseek_v3": {
        **_SMALL,
        "vocab_size": 2000,
        "intermediate_size": 384,
        "moe_intermediate_size": 96,
        "num_hidden_layers": 4,
        "num_key_value_heads": 8,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "n_shared_experts": 1,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "kv_lora_rank": 64,
        "q_lora_rank": 96,
        "qk_rope_head_dim": 16,
        "qk_nope_head_dim": 32,
        "v_head_dim": 32,
    },
    "mixtral": {
        **_SMALL,
        "vocab_size": 1000,
        "intermediate_size": 256,
        "num_hidden_layers": 4,
        "num_key_value_heads": 4,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    },
}
#: What is done with each: how the run is called → the question.
RUNS: Mapping[str, Mapping[str, Any]] = {
    "train": {"does": "train", "batch": 2, "length": 128},
    "train, bfloat16": {"does": "train", "batch": 2, "length": 128, "autocast": True},
    "train, recomputed": {"does": "train", "batch": 2, "length": 128, "recompute": True},
    "LoRA": {"does": "train", "batch": 2, "length": 128, "rank": 8},
    "LoRA, bfloat16": {
        "does": "train",
        "batch": 2,
        "length": 128,
        "rank": 8,
        "autocast": True,
        "dtype": "bfloat16",
    },
    "serve": {"does": "serve", "batch": 2, "length": 256},
}


#: Published shapes, of which nothing is allocated: name → what is done.
REAL: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("Qwen2.5-0.5B", {"does": "train", "length": 1024}),
    ("Qwen2.5-0.5B", {"does": "train", "length": 1024, "recompute": True}),
    ("Qwen2.5-0.5B", {"does": "serve", "length": 4096, "written": 1}),
    ("Qwen2.5-7B", {"does": "train", "length": 1024}),
    ("Qwen2.5-7B", {"does": "train", "length": 1024, "recompute": True}),
    ("Qwen2.5-7B", {"does": "serve", "length": 4096, "written": 1}),
    ("Qwen2.5-72B", {"does": "train", "length": 1024, "recompute": True}),
    ("Qwen2.5-72B", {"does": "serve", "length": 4096, "written": 1}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A question to the engine's libraries, and their answer."""

    model: str
    title: str
    request: Mapping[str, Any]
    answer: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Relative: 0.05 is five percent too much."""

    weights: float
    #: None where nothing is served.
    cache: float | None
    total: float


def engine_python() -> Path | None:
    """``NINEFOLD_ENGINE_PYTHON``, or that of an engine environment under ``var/engines``."""
    named = os.environ.get("NINEFOLD_ENGINE_PYTHON")
    if named:
        return Path(named)
    environment = adapter_registry.engine_by_name("transformers").environment()
    if environment is None:
        return None
    found = PROJECT / "var" / "engines" / environment.name / "bin" / "python"
    return found if found.exists() else None


def run_requests(
    python: Path, questions: Sequence[Mapping[str, Any]], *, limit_seconds: float = 900
) -> list[Any]:
    """The answers, in order. One process for all, since importing takes longest."""
    finished = subprocess.run(
        [str(python), "-W", "ignore", str(PROGRAM)],
        input="\n".join(json.dumps(question) for question in questions) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=limit_seconds,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"},
    )
    if finished.returncode:
        raise RuntimeError(finished.stderr[-4000:])
    return [json.loads(line) for line in finished.stdout.splitlines()]


def measure(python: Path, *, titles: Sequence[str] = tuple(RUNS)) -> Iterator[Run]:
    """Those runs of every model."""
    asked = [
        (model, title, {**run, "family": model, "config": TINY[model]})
        for model in TINY
        for title, run in RUNS.items()
        if title in titles
    ]
    answers = run_requests(python, [question for _, _, question in asked])
    for (model, title, question), answer in zip(asked, answers, strict=True):
        yield Run(model=model, title=title, request=question, answer=answer)


def measure_real(
    python: Path, *, runs: Sequence[tuple[str, Mapping[str, Any]]] = REAL
) -> Iterator[Run]:
    """Runs of published shapes on fake tensors."""
    left_out = ("architectures", "torch_dtype")
    questions = [
        {
            **run,
            "batch": 1,
            "fake": True,
            "family": "qwen2",
            "config": {key: value for key, value in SHAPES[name].items() if key not in left_out},
        }
        for name, run in runs
    ]
    answers = run_requests(python, questions)
    for (name, _), question, answer in zip(runs, questions, answers, strict=True):
        title = f"{question['does']}{', recomputed' if question.get('recompute') else ''}"
        yield Run(model=name, title=title, request=question, answer=answer)


def compare(run: Run) -> Errors:
    """Estimated beside measured, the process left out."""
    architecture = parse_architecture(run.answer["config"])
    if run.request["does"] == "serve":
        traits = adapter_registry.engine_by_name("transformers").profile().memory.serving
        held = serving_memory(
            architecture,
            ServingWorkload(
                scheme=weight_scheme("float32"),
                context=run.request["length"],
                concurrency=run.request["batch"],
                cache_value_bytes=4,
                value_bytes=4,
                traits=_without_process(traits),
            ),
        )
        return Errors(
            weights=held.weights / run.answer["weights"] - 1,
            cache=held.cache / run.answer["cache"] - 1,
            total=held.total / run.answer["total"] - 1,
        )
    rank = run.request.get("rank")
    half = run.request.get("autocast", False)
    base = weight_scheme("bfloat16" if half else "float32")
    wanted = TrainingWorkload(
        batch=run.request["batch"],
        length=run.request["length"],
        mixed=MixedPrecision.AUTOCAST if half else MixedPrecision.FLOAT32,
        adapter=LoraAdapter(rank=rank, base=base) if rank else None,
        recompute=run.request.get("recompute", False),
        drops_gradients=True,
        # Processors have no fused kernel for keys and values of unlike size.
        fused_attention=architecture.latent is None,
        process=Bytes(0),
    )
    added = adapter_parameters(architecture, rank=rank) if rank else 0
    return Errors(
        weights=(architecture.parameters + added) / run.answer["parameters"] - 1,
        cache=None,
        total=training_memory(architecture, wanted).total / run.answer["total"] - 1,
    )


def _without_process(traits: ServingTraits) -> ServingTraits:
    return ServingTraits(
        step_tokens=traits.step_tokens,
        graphs=Bytes(0),
        process=Bytes(0),
        collectives=Bytes(0),
        latent=traits.latent,
        fused_latent=traits.fused_latent,
        block=traits.block,
    )
