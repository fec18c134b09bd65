"""Fine-tuning by TRL's ``SFTTrainer``: the whole model, or LoRA by PEFT.

The result is always a whole model in safetensors that any engine can serve; after LoRA the adapter is
merged into it and lies beside it under ``adapter/``. A run goes on from the newest complete checkpoint
in the working folder, whoever wrote it: this attempt or one before.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import torch
from peft import LoraConfig
from transformers import PrinterCallback, ProgressCallback
from trl import SFTConfig, SFTTrainer

from ninefold_runtime import checkpoints, devices, models, training_rows
from ninefold_runtime.exits import BadInput, Diverged, Stopped
from ninefold_runtime.inputs import Folders, Message
from ninefold_runtime.length_batches import LengthGroupedOrder
from ninefold_runtime.report import Reporter
from ninefold_runtime.signals import StopRequest
from ninefold_runtime.specs import FinetuneSpec
from ninefold_runtime.training_progress import Observer

#: Above this many parameters activations are recomputed rather than kept, on accelerators.
_RECOMPUTE_ABOVE = 1_000_000_000
_LONGEST_BY_DEFAULT = 2048


class _Trainer(SFTTrainer):  # type: ignore[misc]  # trl is not typed beside the control plane
    """Batches rows of like length; stops at the first loss that is not finite, before it is saved."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        rows = train_dataset if train_dataset is not None else self.train_dataset
        return LengthGroupedOrder(
            [len(ids) for ids in rows["input_ids"]],
            batch_size=self.args.per_device_train_batch_size,
            seed=self.args.data_seed,
        )

    def training_step(self, *arguments: Any, **keywords: Any) -> Any:
        loss = super().training_step(*arguments, **keywords)
        if not torch.isfinite(loss):
            raise Diverged(
                f"the loss became {loss.item()} at step {self.state.global_step + 1}: "
                f"the learning rate of {self.args.learning_rate:g} is probably too high"
            )
        return loss


def finetune(
    *, spec: FinetuneSpec, folders: Folders, reporter: Reporter, stop: StopRequest
) -> None:
    """Train, save and hand over the model.

    :raises Stopped: if asked to end; a checkpoint of the last step is saved.
    :raises Diverged: if the loss is no longer finite.
    :raises BadInput: if the model, the dataset or the spec cannot be used.
    """
    datasets.disable_progress_bars()
    source = folders.model()
    train_rows = folders.rows(spec.train_split)
    validation_rows = _validation_rows(spec, folders)
    devices.seed_everything(spec.seed)
    tokenizer = models.load_tokenizer(source)
    # Trained weights stay in float32 whatever is computed in; LoRA's base is only read.
    model = models.load_model(
        source, precision="float32" if spec.method == "full" else spec.precision
    )
    max_length = _max_length(spec, context=models.context_length(source))
    every_turn = training_rows.marks_assistant(tokenizer)
    _announce(reporter, model, train_rows, validation_rows, every_turn=every_turn)
    if gone := checkpoints.discard_incomplete(folders.checkpoints):
        reporter.message(f"ignored incomplete checkpoints: {', '.join(sorted(gone))}")

    observer = Observer(reporter=reporter, stop=stop, keep_checkpoints=spec.keep_checkpoints)
    cache = folders.work / "tmp" / "datasets"
    trainer = _Trainer(
        model=model,
        processing_class=tokenizer,
        args=_arguments(
            spec,
            folders,
            recompute=model.num_parameters() > _RECOMPUTE_ABOVE,
            max_length=max_length,
            every_turn=every_turn,
            validates=validation_rows is not None,
        ),
        train_dataset=_dataset(train_rows, cache / "train", every_turn=every_turn),
        eval_dataset=validation_rows
        and _dataset(validation_rows, cache / "validation", every_turn=every_turn),
        peft_config=_lora(spec) if spec.method == "lora" else None,
        callbacks=[observer],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    _note_lost_rows(
        reporter, max_length=max_length, rows=len(train_rows), kept=len(trainer.train_dataset)
    )

    newest = checkpoints.newest(folders.checkpoints)
    if newest is not None:
        reporter.message(f"going on from the checkpoint at step {newest.step}")
    with stop.deferred():
        outcome = trainer.train(resume_from_checkpoint=str(newest.folder) if newest else None)
    if stop.requested:
        raise Stopped(f"stopped at step {trainer.state.global_step}; its checkpoint is saved")
    if validation_rows is not None and observer.evaluated_step != trainer.state.global_step:
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
    _save(trainer, tokenizer, result, merge=spec.method == "lora")
    reporter.deliver(result, kind="model", metrics=metrics)


def _validation_rows(spec: FinetuneSpec, folders: Folders) -> list[list[Message]] | None:
    split = spec.validation_split
    return folders.rows(split) if split and folders.has_split(split) else None


def _announce(
    reporter: Reporter,
    model: Any,
    train: list[list[Message]],
    validation: list[list[Message]] | None,
    *,
    every_turn: bool,
) -> None:
    reporter.message(
        f"{model.config.architectures[0]} with {model.num_parameters():,} parameters on "
        f"{devices.device()}; {len(train):,} rows to train on, {len(validation or ()):,} to validate; "
        f"the loss falls on {'every' if every_turn else 'the last'} answer of a conversation"
    )


def _dataset(rows: list[list[Message]], cache: Path, *, every_turn: bool) -> Any:
    def generate() -> Iterator[dict[str, list[Message]]]:
        for messages in rows:
            yield training_rows.training_row(messages, every_turn=every_turn)

    # Memory-mapped from the working folder, so that a large dataset need not fit into memory as tokens.
    shutil.rmtree(cache, ignore_errors=True)
    return datasets.Dataset.from_generator(generate, cache_dir=str(cache))


def _max_length(spec: FinetuneSpec, *, context: int) -> int:
    if spec.max_length is None:
        return min(context, _LONGEST_BY_DEFAULT)
    if spec.max_length > context:
        raise BadInput(f"max_length is {spec.max_length}; the model supports {context} positions")
    return spec.max_length


def _arguments(
    spec: FinetuneSpec,
    folders: Folders,
    *,
    recompute: bool,
    max_length: int,
    every_turn: bool,
    validates: bool,
) -> Any:
    on_processor = devices.device().type == "cpu"
    return SFTConfig(
        output_dir=str(folders.checkpoints),
        num_train_epochs=spec.epochs,
        max_steps=spec.max_steps or -1,
        learning_rate=spec.learning_rate,
        per_device_train_batch_size=spec.batch_size,
        per_device_eval_batch_size=spec.batch_size,
        gradient_accumulation_steps=spec.gradient_accumulation,
        gradient_checkpointing=not on_processor and recompute,
        max_length=max_length,
        warmup_steps=spec.warmup_ratio,
        weight_decay=spec.weight_decay,
        lr_scheduler_type=spec.scheduler,
        seed=spec.seed,
        data_seed=spec.seed,
        bf16=devices.dtype(spec.precision) == torch.bfloat16,
        use_cpu=on_processor,
        assistant_only_loss=every_turn,
        dataloader_pin_memory=not on_processor,
        include_num_input_tokens_seen="non_padding",
        logging_strategy="steps",
        logging_steps=spec.log_every_steps,
        logging_nan_inf_filter=False,
        save_strategy="steps",
        save_steps=spec.checkpoint_every_steps,
        save_total_limit=None,
        eval_strategy="steps" if validates else "no",
        eval_steps=spec.checkpoint_every_steps,
        report_to="none",
        disable_tqdm=True,
    )


def _lora(spec: FinetuneSpec) -> Any:
    lora = spec.lora
    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.target_modules or "all-linear",
        task_type="CAUSAL_LM",
    )


def _note_lost_rows(reporter: Reporter, *, max_length: int, rows: int, kept: int) -> None:
    """Say how many rows teach nothing, since their answer begins beyond ``max_length``.

    :raises BadInput: if none is left.
    """
    if kept == 0:
        raise BadInput(
            f"max_length of {max_length} tokens cuts the answer off in every one of {rows} rows"
        )
    if kept < rows:
        reporter.message(
            f"left out {rows - kept} rows whose answer begins beyond {max_length} tokens"
        )


def _save(trainer: Any, tokenizer: Any, result: Path, *, merge: bool) -> None:
    shutil.rmtree(result, ignore_errors=True)
    result.mkdir(parents=True)
    model = trainer.accelerator.unwrap_model(trainer.model)
    if merge:
        model.save_pretrained(result / "adapter")
        (result / "adapter" / "README.md").unlink(missing_ok=True)
        model = model.merge_and_unload()
    if not all(bool(torch.isfinite(each.detach()).all()) for each in model.parameters()):
        raise Diverged("the trained weights are not finite; use a lower learning_rate")
    model.save_pretrained(result, safe_serialization=True)
    tokenizer.save_pretrained(result)
    for path in result.rglob("*"):
        if path.is_file():
            with path.open("rb") as content:
                os.fsync(content.fileno())
