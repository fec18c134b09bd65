"""Quantization by llm-compressor, measured: the same rows before and after.

The result is a model in compressed-tensors that engines load by itself. Beside it lie, under ``quantization/``,
``report.json`` with what was done and measured, and ``answers.jsonl`` with every answer before and
after beside its reference. What comes after is measured on the files as they were saved, loaded as an engine
loads them.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import struct
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

# tqdm listens when it is imported; a log is no terminal.
os.environ.setdefault("TQDM_DISABLE", "1")

from loguru import logger

from ninefold_runtime import evaluate, llm_compressor, models
from ninefold_runtime.evaluate import Measurement, ProgressRange
from ninefold_runtime.exits import BadInput
from ninefold_runtime.report import Reporter
from ninefold_runtime.specs import QuantizeSpec
from ninefold_runtime.task_folders import Message, TaskFolders

_SOFTWARE = ("llmcompressor", "compressed-tensors", "torch", "transformers")


def quantize(*, spec: QuantizeSpec, folders: TaskFolders, reporter: Reporter) -> None:
    """Measure, quantize, measure again and hand over the model.

    :raises BadInput: if the model, the dataset or the spec cannot be used.
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
        _check_plain(self._source)
        self._rows = folders.rows(spec.split, limit=spec.limit)
        self._calibration: list[list[Message]] = []
        if llm_compressor.needs_calibration(spec):
            self._calibration = llm_compressor.choose_rows(
                folders.rows(spec.calibration_split), count=spec.calibration_rows, seed=spec.seed
            )

    def run(self) -> None:
        models.seed_everything(self._spec.seed)
        tokenizer = models.load_tokenizer(self._source)
        model = models.load_model(self._source, precision="auto").eval()
        self._reporter.message(
            f"{model.config.architectures[0]} with {model.num_parameters():,} parameters on "
            f"{models.current_device()}; {len(self._rows):,} rows of {self._spec.split} before and after"
        )
        before = self._measured(model, tokenizer, done=0)
        weights = self._make(model, tokenizer)
        del model
        gc.collect()
        self._reporter.message("measuring the files as they were saved")
        quantized = models.load_model(self._result, precision="auto").eval()
        after = self._measured(quantized, tokenizer, done=len(self._rows))
        metrics = self._metrics(before, after, weights)
        self._write(before, after, weights, metrics)
        self._reporter.deliver(self._result, kind="model", metrics=metrics)

    def _measured(self, model: Any, tokenizer: Any, *, done: int) -> Measurement:
        return evaluate.measure(
            model,
            tokenizer,
            self._rows,
            spec=self._spec,
            context=models.context_length(self._source),
            progress_range=ProgressRange(done=done, total=2 * len(self._rows)),
            reporter=self._reporter,
        )

    def _make(self, model: Any, tokenizer: Any) -> _QuantizedWeights:
        spec = self._spec
        layers = llm_compressor.quantized_layers(model, ignore=spec.ignore)
        group_size = llm_compressor.group_size_for(
            spec, [layer.in_features for layer in layers.values()]
        )
        batches = llm_compressor.calibration_batches(
            tokenizer, self._calibration, max_length=spec.max_length
        )
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
        llm_compressor.apply_recipe(
            model, recipe=llm_compressor.build_recipe(spec, group_size=group_size), batches=batches
        )
        shutil.rmtree(self._result, ignore_errors=True)
        self._result.mkdir(parents=True)
        model.save_pretrained(self._result, save_compressed=True)
        tokenizer.save_pretrained(self._result)
        # Its YAML holds tags that build Python objects; what was done is in the report.
        (self._result / "recipe.yaml").unlink(missing_ok=True)
        return _QuantizedWeights(
            layers=names, group_size=group_size, calibration_rows=len(self._calibration)
        )

    def _metrics(
        self, before: Measurement, after: Measurement, weights: _QuantizedWeights
    ) -> dict[str, float]:
        """Figures in pairs, ``…_before`` and ``…_after``; sizes in bytes."""
        old, new = _tensor_bytes(self._source), _tensor_bytes(self._result)
        pairs: dict[str, tuple[float, float]] = {
            "size": (sum(old.values()), sum(new.values())),
            "layers_size": (_of(weights.layers, old), _of(weights.layers, new)),
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

    def _write(
        self,
        before: Measurement,
        after: Measurement,
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
                lines.write(json.dumps(_pair(old, new), ensure_ascii=False) + "\n")


def _check_plain(folder: Path) -> None:
    """:raises BadInput: if its weights are quantized already."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    known = config.get("quantization_config")
    if known is not None:
        method = known.get("quant_method", "another way") if isinstance(known, dict) else known
        raise BadInput(
            f"the model is quantized already ({method}); quantize the version that it was made from"
        )


def _pair(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
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


def _of(layers: Iterable[str], sizes: Mapping[str, int]) -> int:
    """Bytes of the tensors that belong to one of the layers, scales and zero points included."""
    wanted = frozenset(layers)
    return sum(size for name, size in sizes.items() if name.rpartition(".")[0] in wanted)
