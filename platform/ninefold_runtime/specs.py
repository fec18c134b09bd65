"""The spec of each task, as the control plane writes it: complete, so that no field of a spec has a default here.

Limits and defaults belong to the engine's adapter, which checks a spec before it is queued. What is left
to check here is that the two sides mean the same fields and types.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ninefold_runtime.exit_codes import InvalidTaskInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

S = TypeVar("S", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraSpec:
    rank: int
    alpha: float
    dropout: float
    #: None means every linear layer but the output head.
    target_modules: list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DpoSpec:
    beta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpoSpec:
    #: Answers a prompt; batch size × accumulation is a multiple of it.
    generations: int
    max_new_tokens: int
    beta: float
    temperature: float
    reward: Literal["exact_match", "label_accuracy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneSpec:
    objective: Literal["sft", "dpo", "grpo", "pretrain"]
    method: Literal["full", "lora"]
    epochs: float
    #: None means as many as the epochs need; else training ends there.
    max_steps: int | None
    learning_rate: float
    batch_size: int
    gradient_accumulation: int
    #: Longest example in tokens; what is beyond is cut off. None means the model's context, up to 2,048.
    max_length: int | None
    warmup_ratio: float
    weight_decay: float
    seed: int
    scheduler: Literal["cosine", "linear", "constant"]
    checkpoint_every_steps: int
    log_every_steps: int
    keep_checkpoints: int
    lora: LoraSpec
    dpo: DpoSpec
    grpo: GrpoSpec
    #: Compute activations again instead of keeping them.
    recompute: Literal["auto", "on", "off"]
    precision: Literal["auto", "float32", "bfloat16"]
    train_split: str
    #: None means no validation.
    validation_split: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateSpec:
    metrics: list[str]
    split: str
    #: Rows to use, from the first; None means all.
    limit: int | None
    max_new_tokens: int
    batch_size: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeSpec:
    scheme: Literal["w8a8-smoothquant", "w4a16-awq", "fp8-dynamic"]
    calibration_split: str
    calibration_rows: int
    #: Longest calibration row in tokens; what is beyond is cut off.
    max_length: int
    smoothing_strength: float
    #: None means the largest usual one that divides every layer.
    group_size: int | None
    #: Names of modules that keep their precision.
    ignore: list[str]
    metrics: list[str]
    split: str
    #: Rows to measure on, from the first; None means all.
    limit: int | None
    max_new_tokens: int
    batch_size: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSpec:
    argv: list[str]
    environment: dict[str, str]
    maximum_run_time_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSpec:
    #: The name that callers use.
    model_name: str
    #: Requests that may wait beside the one that runs.
    queue_size: int
    precision: Literal["auto", "float32", "bfloat16"]
    #: LoRA adapters: the name that callers use → the name of the input.
    adapters: dict[str, str] = field(default_factory=dict)


def load_spec(path: Path, kind: type[S]) -> S:
    """:raises InvalidTaskInput: if the file is not readable, or not a complete spec of that kind."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidTaskInput(f"the spec {path.name} cannot be read: {error}") from error
    return parse_spec(content, kind)


def parse_spec(content: object, kind: type[S], *, at: str = "") -> S:
    """The mapping as a spec of that kind.

    :raises InvalidTaskInput: if a field is missing, unknown or of another type; the message names it.
    """
    if not isinstance(content, Mapping):
        raise InvalidTaskInput(
            f"{at or 'the spec'} must be an object, not {type(content).__name__}"
        )
    hints = get_type_hints(kind)
    known = {each.name for each in fields(kind)}
    optional = {each.name for each in fields(kind) if each.default_factory is not MISSING}
    prefix = f"{at}." if at else ""
    if missing := sorted(known - optional - set(content)):
        raise InvalidTaskInput(f"the spec lacks {', '.join(prefix + name for name in missing)}")
    if unknown := sorted(set(content) - known):
        raise InvalidTaskInput(
            f"the spec has unknown fields: {', '.join(prefix + name for name in unknown)}"
        )
    values = {
        name: _parse_value(content[name], hints[name], at=prefix + name)
        for name in sorted(known & set(content))
    }
    return kind(**values)


def _parse_value(value: Any, hint: Any, *, at: str) -> Any:
    if isinstance(hint, type) and is_dataclass(hint):
        return parse_spec(value, hint, at=at)
    if _matches_hint(value, hint):
        return float(value) if hint is float else value
    raise InvalidTaskInput(f"{at} must be {_type_label(hint)}, not {value!r}")


def _matches_hint(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (Union, UnionType):
        return any(_matches_hint(value, choice) for choice in get_args(hint))
    if origin is list:
        (item,) = get_args(hint)
        return isinstance(value, list) and all(_matches_hint(each, item) for each in value)
    if origin is dict:
        _, item = get_args(hint)
        return isinstance(value, dict) and all(_matches_hint(each, item) for each in value.values())
    if hint in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if hint is float else hint)


def _type_label(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_type_label(choice) for choice in get_args(hint))
    if hint is NoneType:
        return "null"
    return (
        str(hint)
        if get_origin(hint)
        else {int: "a whole number", float: "a number"}.get(hint, hint.__name__)
    )
