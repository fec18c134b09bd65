"""Fine-tuning by TRL's trainers: answers, texts, preferences or rewards; the whole model, or LoRA by PEFT.

The result is always a whole model in safetensors that any engine can serve; after LoRA the adapter is
merged into it and lies beside it under ``adapter/``. A run goes on from the newest complete checkpoint
in the working folder, whoever wrote it: this attempt or one before.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
import torch
from transformers import PrinterCallback, ProgressCallback

from ninefold_runtime import checkpoints, model_loading
from ninefold_runtime.exit_codes import (
    InvalidTaskInput,
    StopSignalHandler,
    TaskStopped,
    TrainingDiverged,
)
from ninefold_runtime.report import Reporter
from ninefold_runtime.specs import FinetuneSpec
from ninefold_runtime.task_folders import TaskFolders
from ninefold_runtime.training_objectives import (
    dpo_trainer,
    grpo_trainer,
    pretrain_trainer,
    sft_trainer,
)
from ninefold_runtime.training_run import TrainerBuilder, TrainingObserver, TrainingRun

_LONGEST_BY_DEFAULT = 2048
_BUILDERS: Mapping[str, TrainerBuilder] = {
    "sft": sft_trainer,
    "pretrain": pretrain_trainer,
    "dpo": dpo_trainer,
    "grpo": grpo_trainer,
}


def finetune(
    *, spec: FinetuneSpec, folders: TaskFolders, reporter: Reporter, stop: StopSignalHandler
) -> None:
    """Train, save and hand over the model.

    :raises TaskStopped: on a stop request; a checkpoint of the last step is saved.
    :raises Diverged: if the loss is no longer finite.
    :raises InvalidTaskInput: if the model, the dataset or the spec cannot be used.
    :raises InputUnavailable: if a checkpoint in the artifact store cannot be downloaded.
    """
    datasets.disable_progress_bars()
    run = _load_training_run(spec, folders, reporter, stop)
    if gone := checkpoints.delete_incomplete_checkpoints(folders.checkpoints):
        reporter.message(f"ignored incomplete checkpoints: {', '.join(sorted(gone))}")
    run.store.download()
    trainer = _BUILDERS[spec.objective](run)
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)

    newest = checkpoints.newest_checkpoint(folders.checkpoints)
    if newest is not None:
        reporter.message(f"going on from the checkpoint at step {newest.step}")
    with run.store:
        with stop.deferred():
            outcome = trainer.train(resume_from_checkpoint=str(newest.folder) if newest else None)
        if stop.requested:
            raise TaskStopped(
                f"stopped at step {trainer.state.global_step}; its checkpoint is saved"
            )
    observer = run.observer
    if trainer.eval_dataset is not None and observer.evaluated_step != trainer.state.global_step:
        trainer.evaluate()
    metrics = {
        "train_loss": observer.loss if observer.loss is not None else outcome.training_loss,
        "steps": trainer.state.global_step,
        "epochs": round(float(trainer.state.epoch or 0.0), 3),
        "train_seconds": round(float(outcome.metrics["train_runtime"]), 1),
    }
    if observer.evaluation is not None:
        metrics["eval_loss"] = observer.evaluation
    result = folders.work / "result"
    _save_model(trainer, run.tokenizer, result, merge=spec.method == "lora")
    reporter.deliver(result, kind="model", metrics=metrics | observer.trainer_metrics)


def _load_training_run(
    spec: FinetuneSpec, folders: TaskFolders, reporter: Reporter, stop: StopSignalHandler
) -> TrainingRun:
    source = folders.model()
    model_loading.seed_everything(spec.seed)
    context = model_loading.context_length(source)
    store = checkpoints.CheckpointStore.from_environment(
        folders.checkpoints, reporter=reporter, keep=spec.keep_checkpoints
    )
    return TrainingRun(
        spec=spec,
        folders=folders,
        reporter=reporter,
        observer=TrainingObserver(
            reporter=reporter, stop=stop, store=store, keep_checkpoints=spec.keep_checkpoints
        ),
        store=store,
        tokenizer=model_loading.load_tokenizer(
            source, require_chat_template=spec.objective != "pretrain"
        ),
        # Trained weights stay in float32 whatever is computed in; LoRA's base is only read.
        model=model_loading.load_model(
            source, precision="float32" if spec.method == "full" else spec.precision
        ),
        context=context,
        max_length=_max_length(spec, context=context),
    )


def _max_length(spec: FinetuneSpec, *, context: int) -> int:
    if spec.max_length is None:
        return min(context, _LONGEST_BY_DEFAULT)
    if spec.max_length > context:
        raise InvalidTaskInput(
            f"max_length is {spec.max_length}; the model supports {context} positions"
        )
    return spec.max_length


def _save_model(trainer: Any, tokenizer: Any, result: Path, *, merge: bool) -> None:
    shutil.rmtree(result, ignore_errors=True)
    result.mkdir(parents=True)
    model = trainer.accelerator.unwrap_model(trainer.model)
    if merge:
        model.save_pretrained(result / "adapter")
        (result / "adapter" / "README.md").unlink(missing_ok=True)
        model = model.merge_and_unload()
    if not all(bool(torch.isfinite(each.detach()).all()) for each in model.parameters()):
        raise TrainingDiverged("the trained weights are not finite; use a lower learning_rate")
    model.save_pretrained(result, safe_serialization=True)
    tokenizer.save_pretrained(result)
    for path in result.rglob("*"):
        if path.is_file():
            with path.open("rb") as content:
                os.fsync(content.fileno())
