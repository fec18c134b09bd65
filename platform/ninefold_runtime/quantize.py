"""Quantization by llm-compressor, measured: the same rows before and after.

The result is a model in compressed-tensors that engines load by itself. Beside it lie, under ``quantization/``,
``report.json`` with what was done and measured, and ``answers.jsonl`` with every answer before and
after beside its reference. What comes after is measured on the files as they were saved, loaded as an engine
loads them.

::

    w8a8-smoothquant  move part of the activations' range into the weights, then GPTQ to 8-bit integers
    w4a16-awq         scale the channels that matter most, then round to 4-bit integers in groups
    fp8-dynamic       round weights to 8-bit floats by channel; activations as they come, no calibration

Calibration examples show the quantizer what activations look like.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

# tqdm listens when it is imported; a log is no terminal.
os.environ.setdefault("TQDM_DISABLE", "1")

import torch
from compressed_tensors.utils import match_named_modules
from llmcompressor import oneshot
from llmcompressor.modifiers.gptq import GPTQModifier
from llmcompressor.modifiers.quantization import QuantizationModifier
from llmcompressor.modifiers.transform.awq import AWQModifier
from llmcompressor.modifiers.transform.smoothquant import SmoothQuantModifier
from llmcompressor.pipelines.cache import IntermediatesCache
from loguru import logger

from ninefold_runtime import evaluate, model_loading
from ninefold_runtime.evaluate import EvaluationResult, ProgressRange
from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.report import Reporter
from ninefold_runtime.specs import QuantizeSpec
from ninefold_runtime.task_folders import Message, TaskFolders

_SOFTWARE = ("llmcompressor", "compressed-tensors", "torch", "transformers")


def quantize(*, spec: QuantizeSpec, folders: TaskFolders, reporter: Reporter) -> None:
    """Measure, quantize, measure again and hand over the model.

    :raises InvalidTaskInput: if the model, the dataset or the spec cannot be used.
    """
    # The libraries count every layer and warn again and again that there is no accelerator.
    logger.configure(handlers=[{"sink": sys.stderr, "level": "ERROR"}])
    _Quantization(spec=spec, folders=folders, reporter=reporter).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _QuantizedWeights:
    """What became of the weights."""

    layers: tuple[str, ...]
    group_size: int | None
    calibration_rows: int


class _Quantization:
    def __init__(self, *, spec: QuantizeSpec, folders: TaskFolders, reporter: Reporter) -> None:
        self._spec = spec
        self._reporter = reporter
        self._source = folders.model()
        self._result = folders.work / "result"
        _require_unquantized_model(self._source)
        self._rows = folders.rows(spec.split, limit=spec.limit)
        self._calibration: list[list[Message]] = []
        if needs_calibration(spec):
            self._calibration = sample_calibration_rows(
                folders.rows(spec.calibration_split), count=spec.calibration_rows, seed=spec.seed
            )

    def run(self) -> None:
        model_loading.seed_everything(self._spec.seed)
        tokenizer = model_loading.load_tokenizer(self._source)
        model = model_loading.load_model(self._source, precision="auto").eval()
        self._reporter.message(
            f"{model.config.architectures[0]} with {model.num_parameters():,} parameters on "
            f"{model_loading.current_device()}; {len(self._rows):,} rows of {self._spec.split} before and after"
        )
        before = self._measure_model(model, tokenizer, done=0)
        weights = self._quantize_weights(model, tokenizer)
        del model
        gc.collect()
        self._reporter.message("measuring the files as they were saved")
        quantized = model_loading.load_model(self._result, precision="auto").eval()
        after = self._measure_model(quantized, tokenizer, done=len(self._rows))
        metrics = self._quantization_metrics(before, after, weights)
        self._write_result(before, after, weights, metrics)
        self._reporter.deliver(self._result, kind="model", metrics=metrics)

    def _measure_model(self, model: Any, tokenizer: Any, *, done: int) -> EvaluationResult:
        return evaluate.measure_model(
            model,
            tokenizer,
            self._rows,
            spec=self._spec,
            context=model_loading.context_length(self._source),
            progress_range=ProgressRange(done=done, total=2 * len(self._rows)),
            reporter=self._reporter,
        )

    def _quantize_weights(self, model: Any, tokenizer: Any) -> _QuantizedWeights:
        spec = self._spec
        layers = quantized_layers(model, ignore=spec.ignore)
        group_size = group_size_for(spec, [layer.in_features for layer in layers.values()])
        batches = calibration_batches(tokenizer, self._calibration, max_length=spec.max_length)
        self._reporter.message(
            f"{spec.scheme}: {len(layers)} layers"
            + (f" in groups of {group_size}" if group_size else "")
            + (
                f", calibrated with {len(self._calibration)} rows of {spec.calibration_split}"
                if batches
                else ", without calibration"
            )
        )
        names = tuple(layers)
        del layers
        apply_recipe(model, recipe=build_recipe(spec, group_size=group_size), batches=batches)
        shutil.rmtree(self._result, ignore_errors=True)
        self._result.mkdir(parents=True)
        model.save_pretrained(self._result, save_compressed=True)
        tokenizer.save_pretrained(self._result)
        # Its YAML holds tags that build Python objects; what was done is in the report.
        (self._result / "recipe.yaml").unlink(missing_ok=True)
        return _QuantizedWeights(
            layers=names, group_size=group_size, calibration_rows=len(self._calibration)
        )

    def _quantization_metrics(
        self, before: EvaluationResult, after: EvaluationResult, weights: _QuantizedWeights
    ) -> dict[str, float]:
        """Figures in pairs, ``…_before`` and ``…_after``; sizes in bytes."""
        old, new = _tensor_bytes(self._source), _tensor_bytes(self._result)
        pairs: dict[str, tuple[float, float]] = {
            "size": (sum(old.values()), sum(new.values())),
            "layers_size": (_layer_bytes(weights.layers, old), _layer_bytes(weights.layers, new)),
        }
        for name, value in before.metrics.items():
            pairs[name] = (value, after.metrics[name])
        if before.answer_seconds and after.answer_seconds:
            pairs["answers_per_second"] = (
                round(len(self._rows) / before.answer_seconds, 3),
                round(len(self._rows) / after.answer_seconds, 3),
            )
        return {
            f"{name}_{when}": value
            for name, pair in pairs.items()
            for when, value in zip(("before", "after"), pair, strict=True)
        }

    def _write_result(
        self,
        before: EvaluationResult,
        after: EvaluationResult,
        weights: _QuantizedWeights,
        metrics: Mapping[str, float],
    ) -> None:
        spec = self._spec
        report = {
            "scheme": spec.scheme,
            "group_size": weights.group_size,
            "layers": len(weights.layers),
            "ignored": spec.ignore,
            "calibration_split": spec.calibration_split if weights.calibration_rows else None,
            "calibration_rows": weights.calibration_rows,
            "split": spec.split,
            "rows": len(self._rows),
            "metrics": metrics,
            "software": {name: version(name) for name in _SOFTWARE},
        }
        folder = self._result / "quantization"
        folder.mkdir()
        text = json.dumps(report, ensure_ascii=False, indent=2)
        (folder / "report.json").write_text(text + "\n", encoding="utf-8")
        with (folder / "answers.jsonl").open("w", encoding="utf-8") as lines:
            for old, new in zip(before.predictions, after.predictions, strict=True):
                lines.write(
                    json.dumps(_prediction_before_and_after(old, new), ensure_ascii=False) + "\n"
                )


def _require_unquantized_model(folder: Path) -> None:
    """:raises InvalidTaskInput: if its weights are quantized already."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    known = config.get("quantization_config")
    if known is not None:
        method = known.get("quant_method", "another way") if isinstance(known, dict) else known
        raise InvalidTaskInput(
            f"the model is quantized already ({method}); quantize the version that it was made from"
        )


def _prediction_before_and_after(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "row": before["row"],
        "prompt": before["prompt"],
        "reference": before["reference"],
        "before": before["prediction"],
        "after": after["prediction"],
        "right_before": before["exact_match"],
        "right_after": after["exact_match"],
    }


def _tensor_bytes(folder: Path) -> dict[str, int]:
    """Bytes of each stored tensor, as the headers of the safetensors files name them."""
    sizes = {}
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        for name, tensor in header.items():
            if name != "__metadata__":
                begin, end = tensor["data_offsets"]
                sizes[name] = end - begin
    return sizes


def _layer_bytes(layers: Iterable[str], sizes: Mapping[str, int]) -> int:
    """Bytes of the tensors that belong to one of the layers, scales and zero points included."""
    wanted = frozenset(layers)
    return sum(size for name, size in sizes.items() if name.rpartition(".")[0] in wanted)


T = TypeVar("T")

_ROWS_A_BATCH = 16
#: A row may be so much longer than the shortest of its batch, to whose length all are cut.
_SLACK = 1.125


def sample_calibration_rows(rows: Sequence[T], *, count: int, seed: int) -> list[T]:
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
        (model_loading.conversation_ids(tokenizer, messages)[0][:max_length] for messages in rows),
        key=len,
    )
    grouped: list[list[list[int]]] = []
    for each in ids:
        group = grouped[-1] if grouped else None
        if group and len(group) < _ROWS_A_BATCH and len(each) <= len(group[0]) * _SLACK:
            group.append(each)
        else:
            grouped.append([each])
    return [_batch_tensors(group) for group in grouped]


def _batch_tensors(group: list[list[int]]) -> dict[str, Any]:
    width = len(group[0])
    ids = torch.tensor([each[:width] for each in group])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def apply_recipe(model: Any, *, recipe: list[Any], batches: Sequence[dict[str, Any]]) -> None:
    """Quantize the model in place; no batches where the recipe needs none."""
    if not batches:
        oneshot(model=model, recipe=recipe)
        return
    loader = torch.utils.data.DataLoader(list(batches), batch_size=None)
    with _disable_awq_pinned_memory():
        oneshot(model=model, recipe=recipe, dataset=loader, num_calibration_samples=len(batches))


@contextmanager
def _disable_awq_pinned_memory() -> Iterator[None]:
    """Inside, AWQ leaves its cache in pageable memory where there is no accelerator.

    It pins host memory whatever the device (llm-compressor 0.14), which fails where no accelerator is there
    to copy to; the values are the same either way. Nothing is changed where one is there.
    """
    if model_loading.current_device().type != "cpu":
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

    :raises InvalidTaskInput: if none is left.
    """
    layers = dict(match_named_modules(model, _LAYERS, list(ignore)))
    if not layers:
        raise InvalidTaskInput(f"ignore leaves no linear layer to quantize: {', '.join(ignore)}")
    return layers


def group_size_for(spec: QuantizeSpec, widths: Sequence[int]) -> int | None:
    """Weights that share a scale; None where the scheme has no groups.

    :raises InvalidTaskInput: if the requested one does not divide the layers' input widths, or none does.
    """
    if spec.scheme != "w4a16-awq":
        return None
    fitting = [size for size in _GROUP_SIZES if all(width % size == 0 for width in widths)]
    widths_text = ", ".join(str(width) for width in sorted(set(widths)))
    if spec.group_size is None:
        if not fitting:
            raise InvalidTaskInput(
                f"no group size of {', '.join(map(str, _GROUP_SIZES))} divides the layers' widths "
                f"{widths_text}; leave the odd layers out by ignore"
            )
        return fitting[0]
    if any(width % spec.group_size for width in widths):
        right = ", ".join(map(str, fitting)) or "none of the usual ones"
        raise InvalidTaskInput(
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
