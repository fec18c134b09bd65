"""Calls of llm-compressor: the recipe of each scheme, and calibration rows.

::

    w8a8-smoothquant  move part of the activations' range into the weights, then GPTQ to 8-bit integers
    w4a16-awq         scale the channels that matter most, then round to 4-bit integers in groups
    fp8-dynamic       round weights to 8-bit floats by channel; activations as they come, no calibration

Calibration rows show the quantizer what activations look like.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from compressed_tensors.utils import match_named_modules
from llmcompressor import oneshot
from llmcompressor.modifiers.gptq import GPTQModifier
from llmcompressor.modifiers.quantization import QuantizationModifier
from llmcompressor.modifiers.transform.awq import AWQModifier
from llmcompressor.modifiers.transform.smoothquant import SmoothQuantModifier
from llmcompressor.pipelines.cache import IntermediatesCache

from ninefold_runtime import models
from ninefold_runtime.exits import BadInput
from ninefold_runtime.specs import QuantizeSpec
from ninefold_runtime.task_folders import Message

T = TypeVar("T")

_ROWS_A_BATCH = 16
#: A row may be so much longer than the shortest of its batch, to whose length all are cut.
_SLACK = 1.125


def choose_rows(rows: Sequence[T], *, count: int, seed: int) -> list[T]:
    """That many of the rows, in their order, or all where there are fewer; the same for the same seed."""
    if count >= len(rows):
        return list(rows)
    places = sorted(random.Random(seed).sample(range(len(rows)), count))  # noqa: S311 - no secret
    return [rows[place] for place in places]


def calibration_batches(
    tokenizer: Any, rows: Sequence[list[Message]], *, max_length: int
) -> list[dict[str, Any]]:
    """The rows as tensors, several at once where their lengths are close.

    Nothing is padded, since the quantizer would take padding for activations; instead a batch is cut to its
    shortest row, which loses at most a ninth of any.
    """
    ids = sorted(
        (models.conversation_ids(tokenizer, messages)[0][:max_length] for messages in rows),
        key=len,
    )
    grouped: list[list[list[int]]] = []
    for each in ids:
        group = grouped[-1] if grouped else None
        if group and len(group) < _ROWS_A_BATCH and len(each) <= len(group[0]) * _SLACK:
            group.append(each)
        else:
            grouped.append([each])
    return [_tensors(group) for group in grouped]


def _tensors(group: list[list[int]]) -> dict[str, Any]:
    width = len(group[0])
    ids = torch.tensor([each[:width] for each in group])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def apply_recipe(model: Any, *, recipe: list[Any], batches: Sequence[dict[str, Any]]) -> None:
    """Quantize the model in place; no batches where the recipe needs none."""
    if not batches:
        oneshot(model=model, recipe=recipe)
        return
    loader = torch.utils.data.DataLoader(list(batches), batch_size=None)
    with _unpinned():
        oneshot(model=model, recipe=recipe, dataset=loader, num_calibration_samples=len(batches))


@contextmanager
def _unpinned() -> Iterator[None]:
    """Inside, AWQ leaves its cache in pageable memory where there is no accelerator.

    It pins host memory whatever the device (llm-compressor 0.14), which fails where no accelerator is there
    to copy to; the values are the same either way. Nothing is changed where one is there.
    """
    if models.current_device().type != "cpu":
        yield
        return
    pin = IntermediatesCache.pin_memory
    IntermediatesCache.pin_memory = lambda *_arguments, **_keywords: None
    try:
        yield
    finally:
        IntermediatesCache.pin_memory = pin


_LAYERS = ["Linear"]
#: Sizes that serving engines have kernels for, the usual one first.
_GROUP_SIZES = (128, 64, 32, 16)


def quantized_layers(model: Any, *, ignore: Sequence[str]) -> dict[str, Any]:
    """The linear layers that lose precision, by name.

    :raises BadInput: if none is left.
    """
    layers = dict(match_named_modules(model, _LAYERS, list(ignore)))
    if not layers:
        raise BadInput(f"ignore leaves no linear layer to quantize: {', '.join(ignore)}")
    return layers


def group_size_for(spec: QuantizeSpec, widths: Sequence[int]) -> int | None:
    """Weights that share a scale; None where the scheme has no groups.

    :raises BadInput: if the requested one does not divide the layers' input widths, or none does.
    """
    if spec.scheme != "w4a16-awq":
        return None
    fitting = [size for size in _GROUP_SIZES if all(width % size == 0 for width in widths)]
    widths_text = ", ".join(str(width) for width in sorted(set(widths)))
    if spec.group_size is None:
        if not fitting:
            raise BadInput(
                f"no group size of {', '.join(map(str, _GROUP_SIZES))} divides the layers' widths "
                f"{widths_text}; leave the odd layers out by ignore"
            )
        return fitting[0]
    if any(width % spec.group_size for width in widths):
        right = ", ".join(map(str, fitting)) or "none of the usual ones"
        raise BadInput(
            f"group_size {spec.group_size} does not divide the layers' widths {widths_text}; these do: {right}"
        )
    return spec.group_size


def build_recipe(spec: QuantizeSpec, *, group_size: int | None) -> list[Any]:
    """llm-compressor's modifiers, in the order in which they apply."""
    if spec.scheme == "w8a8-smoothquant":
        return [
            SmoothQuantModifier(smoothing_strength=spec.smoothing_strength),
            GPTQModifier(targets=_LAYERS, scheme="W8A8", ignore=spec.ignore),
        ]
    if spec.scheme == "w4a16-awq":
        weights = {
            "num_bits": 4,
            "type": "int",
            "strategy": "group",
            "group_size": group_size,
            "symmetric": False,
        }
        groups = {"group_0": {"targets": _LAYERS, "weights": weights}}
        return [
            AWQModifier(duo_scaling="both"),
            QuantizationModifier(config_groups=groups, ignore=spec.ignore),
        ]
    return [QuantizationModifier(targets=_LAYERS, scheme="FP8_DYNAMIC", ignore=spec.ignore)]


def needs_calibration(spec: QuantizeSpec) -> bool:
    return spec.scheme != "fp8-dynamic"
