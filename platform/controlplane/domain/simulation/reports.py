"""Generated reports of simulated processes: progress points, logs, and output files; reproducible by seed.

A training's loss falls as ``floor + (start − floor) · exp(−k · share)`` with the noise of real batches; its steps
take as long as its run profile says, so that the reports by an instant follow from the work done by then.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from controlplane.domain.simulation.launch_lifecycle import (
    LaunchSnapshot,
    SimulatedFault,
    WorkProgress,
)
from controlplane.domain.simulation.run_profiles import seeded_random

#: Points that a whole training reports.
_POINTS = 120
_VALIDATIONS = 12
_CHECKPOINTS = 8
_EPOCHS = 3.0
_WARM_UP = 0.03
_DISCLAIMER = "[ninefold] simulated cluster: no program runs, and every figure below is made up"


@dataclass(frozen=True, slots=True, kw_only=True)
class _LossCurve:
    """The loss curve of one training, drawn from its seed."""

    start: float
    floor: float
    #: How fast it falls.
    fall: float
    #: Standard deviation of the noise, as a share.
    noise: float
    rate: float

    @classmethod
    def of(cls, seed: str) -> _LossCurve:
        rng = seeded_random(seed)
        floor = rng.uniform(0.25, 1.1)
        return cls(
            start=floor + rng.uniform(0.9, 2.2),
            floor=floor,
            fall=rng.uniform(3.0, 6.5),
            noise=rng.uniform(0.015, 0.05),
            rate=rng.choice((1e-5, 2e-5, 5e-5, 1e-4, 2e-4)),
        )

    def loss(self, share: float) -> float:
        return self.floor + (self.start - self.floor) * math.exp(-self.fall * share)


def completed_step(snapshot: LaunchSnapshot, *, work: float | None = None) -> int:
    """The last step that is completed by ``work``, by default the work of the snapshot."""
    profile = snapshot.record.profile
    if not profile.steps or not profile.whole:
        return 0
    done = snapshot.work if work is None else work
    # The last step ends with the work, whatever the rounding.
    return min(profile.steps, math.floor(done / profile.whole * profile.steps + 1e-9))


def simulated_progress_points(
    snapshot: LaunchSnapshot, *, after: int, faults: Sequence[SimulatedFault] = ()
) -> list[dict[str, Any]]:
    """Points reported after that step, in the format of ``POST …/progress``."""
    return list(_all_progress_points(snapshot, after=after, faults=faults))


def simulated_checkpointed_work(snapshot: LaunchSnapshot) -> float:
    """The work in its newest checkpoint, in seconds of simulated time."""
    profile = snapshot.record.profile
    if not profile.steps:
        return 0.0
    if snapshot.outcome is not None and snapshot.outcome.cause == "stopped" and profile.saves:
        # It saved a checkpoint when it was stopped.
        return snapshot.work
    saved = (
        completed_step(snapshot)
        // _steps_per_report(profile.steps, _CHECKPOINTS)
        * _steps_per_report(profile.steps, _CHECKPOINTS)
    )
    return max(snapshot.record.initial_work, saved / profile.steps * profile.whole)


def simulated_result_metrics(snapshot: LaunchSnapshot) -> dict[str, float]:
    """Metrics in the manifest of a successful run."""
    profile = snapshot.record.profile
    shape, rng = _LossCurve.of(profile.seed), seeded_random(profile.seed, "end")
    if profile.steps:
        loss = shape.loss(1.0)
        return {"loss": round(loss, 4), "eval_loss": round(loss * rng.uniform(1.02, 1.12), 4)}
    return {"exact_match": round(rng.uniform(0.35, 0.93), 4), "rows": 400}


def simulated_replica_log(
    snapshot: LaunchSnapshot, *, role: str, index: int, faults: Sequence[SimulatedFault] = ()
) -> bytes:
    """The log of one replica by then."""
    profile = snapshot.record.profile
    if profile.output is not None:
        return profile.output.encode() if snapshot.started_at is not None else b""
    if snapshot.started_at is None:
        return b""
    return "".join(f"{line}\n" for line in _log_lines(snapshot, role, index, faults)).encode()


def _log_lines(
    snapshot: LaunchSnapshot, role: str, index: int, faults: Sequence[SimulatedFault]
) -> Iterator[str]:
    record = snapshot.record
    where = next(
        location
        for location in record.locations
        if (location.role, location.index) == (role, index)
    )
    cards = ", ".join(map(str, where.cards)) or "none"
    yield _DISCLAIMER
    yield f"{role} {index + 1} of {len(record.locations)} on {where.node}, cards {cards}"
    if record.initial_work:
        yield f"going on from a checkpoint, {record.initial_work:.0f} s of work into the run"
    if record.profile.steps:
        for point in _all_progress_points(
            snapshot, after=completed_step(snapshot, work=record.initial_work), faults=faults
        ):
            yield _format_point(point)
    elif record.probed and snapshot.at >= record.work_begins_at:
        yield "ready to serve"
    if snapshot.finishing or (snapshot.outcome and snapshot.outcome.cause == "finished"):
        yield "done; handing over what was made" if record.reports else "done"
    if snapshot.outcome and snapshot.outcome.cause != "finished":
        yield snapshot.outcome.message


def _all_progress_points(
    snapshot: LaunchSnapshot, *, after: int, faults: Sequence[SimulatedFault]
) -> Iterator[dict[str, Any]]:
    profile = snapshot.record.profile
    if not profile.steps:
        return
    shape, progress = _LossCurve.of(profile.seed), snapshot.record.progress(faults)
    every = _steps_per_report(profile.steps, _POINTS)
    validates, saves = (
        _steps_per_report(profile.steps, _VALIDATIONS),
        _steps_per_report(profile.steps, _CHECKPOINTS),
    )
    last = completed_step(snapshot)
    steps = [*range(after // every * every + every, last + 1, every)]
    if last == profile.steps > after and last % every:
        steps.append(last)
    for step in steps:
        share = step / profile.steps
        rng = seeded_random(profile.seed, step)
        loss = shape.loss(share) * rng.gauss(1.0, shape.noise)
        point = {
            "step": step,
            "total_steps": profile.steps,
            "epoch": round(_EPOCHS * share, 3),
            "loss": round(loss, 4),
            "learning_rate": float(f"{shape.rate * _learning_rate_factor(share):.4g}"),
            "grad_norm": round(rng.uniform(0.4, 1.6), 3),
            "tokens_per_second": round(_tokens_per_second(snapshot, progress, share, rng), 1),
            "eta_seconds": round((1 - share) * profile.whole / snapshot.record.speed, 1),
        }
        if step % validates < every:
            point["eval_loss"] = round(shape.loss(share) * 1.05 * rng.gauss(1.0, 0.01), 4)
        yield point
        if step % saves < every:
            yield {"checkpoint": {"step": step}}


def _tokens_per_second(
    snapshot: LaunchSnapshot, progress: WorkProgress, share: float, rng: Random
) -> float:
    rate = snapshot.record.profile.tokens_per_second * rng.uniform(0.96, 1.03)
    if not progress.slow:
        return rate
    return rate / progress.slowness(progress.reached(share * snapshot.record.profile.whole))


def _steps_per_report(steps: int, count: int) -> int:
    return max(1, round(steps / count))


def _learning_rate_factor(share: float) -> float:
    """A short warm-up, then a cosine."""
    if share < _WARM_UP:
        return share / _WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (share - _WARM_UP) / (1 - _WARM_UP)))


def _format_point(point: dict[str, Any]) -> str:
    if "checkpoint" in point:
        return f"checkpoint saved at step {point['checkpoint']['step']}"
    parts = [
        f"step {point['step']}/{point['total_steps']}",
        f"epoch {point['epoch']:.4g}",
        f"loss {point['loss']:.4g}",
        f"learning rate {point['learning_rate']:.4g}",
        f"{point['tokens_per_second']:.0f} tokens/s",
        f"{point['eta_seconds']:.0f} s left",
    ]
    if "eval_loss" in point:
        parts.append(f"eval loss {point['eval_loss']:.4g}")
    return " · ".join(parts)


#: The public config.json of Qwen2.5-7B-Instruct.
CONFIG: Mapping[str, object] = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_act": "silu",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 32768,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 152064,
}
_NOTE = "Made by a simulated cluster: the header names every tensor, and there are no weights.\n"


def placeholder_model() -> dict[str, bytes]:
    """Files by path of a model with 7 billion parameters: the header names every tensor, and no data follow."""
    return {
        "README.md": _NOTE.encode(),
        "config.json": json.dumps(CONFIG, indent=2).encode(),
        "model.safetensors": _safetensors_header(),
    }


def simulated_output_files(
    snapshot: LaunchSnapshot, *, role: str
) -> tuple[str, dict[str, bytes], dict[str, float]]:
    """Kind, files and metrics of the manifest of a successful run."""
    match role:
        case "trainer" | "quantizer":
            return "model", placeholder_model(), simulated_result_metrics(snapshot)
        case "evaluator":
            found = simulated_result_metrics(snapshot)
            return "report", {"report.json": json.dumps(found).encode()}, found
        case _:
            return "outputs", {"summary.txt": _NOTE.encode()}, {}


def _safetensors_header() -> bytes:
    hidden, wide, vocabulary, layers = 3584, 18944, 152064, 28
    keys = 512
    tensors: dict[str, list[int]] = {
        "model.embed_tokens.weight": [vocabulary, hidden],
        "lm_head.weight": [vocabulary, hidden],
        "model.norm.weight": [hidden],
    }
    for layer in range(layers):
        prefix = f"model.layers.{layer}"
        tensors |= {
            f"{prefix}.input_layernorm.weight": [hidden],
            f"{prefix}.post_attention_layernorm.weight": [hidden],
            f"{prefix}.mlp.down_proj.weight": [hidden, wide],
            f"{prefix}.mlp.gate_proj.weight": [wide, hidden],
            f"{prefix}.mlp.up_proj.weight": [wide, hidden],
            f"{prefix}.self_attn.o_proj.weight": [hidden, hidden],
        }
        for name, size in (("q", hidden), ("k", keys), ("v", keys)):
            tensors[f"{prefix}.self_attn.{name}_proj.weight"] = [size, hidden]
            tensors[f"{prefix}.self_attn.{name}_proj.bias"] = [size]
    header = json.dumps(
        {
            name: {"dtype": "BF16", "shape": shape, "data_offsets": [0, 0]}
            for name, shape in tensors.items()
        }
    ).encode()
    return struct.pack("<Q", len(header)) + header
