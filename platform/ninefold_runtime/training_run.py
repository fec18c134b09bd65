"""Shared parts of every objective's trainer: model, training arguments, adapter, examples and progress.

One callback reports progress at each logging step, completes a checkpoint at each save, and stops at the next step
once the process was asked to stop.

Where the loss falls in ``sft``: on what the assistant says, and on nothing else. A chat template that marks the
assistant's turns (``{% generation %}``) says where each of them is; for a known family TRL has a marked twin
of the template; with any other only the last answer of a conversation is trained, whose place follows from
rendering the prompt with and without it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import torch
from peft import LoraConfig
from transformers import TrainerCallback
from trl.chat_template_utils import get_training_chat_template, has_generation_markers

from ninefold_runtime import checkpoints, model_loading
from ninefold_runtime.exit_codes import InvalidTaskInput, StopSignalHandler, TrainingDiverged
from ninefold_runtime.report import Reporter
from ninefold_runtime.specs import FinetuneSpec
from ninefold_runtime.task_folders import Message, PreferencePair, TaskFolders

#: Above this many parameters activations are recomputed rather than kept, on accelerators.
_RECOMPUTE_ABOVE = 1_000_000_000


class FiniteLossMixin:
    """For a trainer: stops at the first loss that is not finite, before it is saved."""

    args: Any
    state: Any

    def training_step(self, *arguments: Any, **keywords: Any) -> Any:
        loss = super().training_step(*arguments, **keywords)  # type: ignore[misc]  # of the trainer
        if not torch.isfinite(loss):
            raise TrainingDiverged(
                f"the loss became {loss.item()} at step {self.state.global_step + 1}: "
                f"the learning rate of {self.args.learning_rate:g} is probably too high"
            )
        return loss


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """One run with everything loaded."""

    spec: FinetuneSpec
    folders: TaskFolders
    reporter: Reporter
    observer: TrainingObserver
    store: checkpoints.CheckpointStore
    tokenizer: Any
    model: Any
    #: Positions that the model supports.
    context: int
    #: Tokens at which a row is cut.
    max_length: int

    def validates(self) -> bool:
        split = self.spec.validation_split
        return bool(split) and self.folders.has_split(split or "")

    def arguments(self) -> dict[str, Any]:
        """What ``TrainingArguments`` takes whatever the objective."""
        spec = self.spec
        on_processor = model_loading.current_device().type == "cpu"
        return {
            "output_dir": str(self.folders.checkpoints),
            "num_train_epochs": spec.epochs,
            "max_steps": spec.max_steps or -1,
            "learning_rate": spec.learning_rate,
            "per_device_train_batch_size": spec.batch_size,
            "per_device_eval_batch_size": spec.batch_size,
            "gradient_accumulation_steps": spec.gradient_accumulation,
            "gradient_checkpointing": self._recomputes_activations(on_processor=on_processor),
            "warmup_steps": spec.warmup_ratio,
            "weight_decay": spec.weight_decay,
            "lr_scheduler_type": spec.scheduler,
            "seed": spec.seed,
            "data_seed": spec.seed,
            "bf16": model_loading.torch_dtype(spec.precision) == torch.bfloat16,
            "use_cpu": on_processor,
            "dataloader_pin_memory": not on_processor,
            "include_num_input_tokens_seen": "non_padding",
            "logging_strategy": "steps",
            "logging_steps": spec.log_every_steps,
            "logging_nan_inf_filter": False,
            "save_strategy": "steps",
            "save_steps": spec.checkpoint_every_steps,
            "save_total_limit": None,
            "eval_strategy": "steps" if self.validates() else "no",
            "eval_steps": spec.checkpoint_every_steps,
            "report_to": "none",
            "disable_tqdm": True,
        }

    def adapter(self) -> Any:
        """The configuration of LoRA; None where every weight is trained."""
        if self.spec.method != "lora":
            return None
        lora = self.spec.lora
        return LoraConfig(
            r=lora.rank,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules=lora.target_modules or "all-linear",
            task_type="CAUSAL_LM",
        )

    def dataset(self, name: str, rows: Iterable[TrainingExample]) -> Any:
        """Memory-mapped from the working folder, so that a large dataset need not fit into memory as tokens."""
        examples = rows if isinstance(rows, list) else list(rows)

        def generate() -> Iterator[TrainingExample]:
            yield from examples

        cache = self.folders.work / "tmp" / "datasets" / name
        shutil.rmtree(cache, ignore_errors=True)
        return datasets.Dataset.from_generator(generate, cache_dir=str(cache))

    def announce(self, *, train: int, validation: int, learns: str) -> None:
        """Say what is about to be trained, on what, and what it learns from."""
        self.reporter.message(
            f"{self.model.config.architectures[0]} with {self.model.num_parameters():,} parameters on "
            f"{model_loading.current_device()}; {train:,} rows to train on, {validation:,} to validate; {learns}"
        )

    def report_dropped_examples(self, *, rows: int, remaining: int, limit: int) -> None:
        """Say how many rows teach nothing, since their answer begins beyond so many tokens.

        :raises InvalidTaskInput: if none is left.
        """
        if remaining == 0:
            raise InvalidTaskInput(
                f"max_length of {limit} tokens cuts the answer off in every one of {rows} rows"
            )
        if remaining < rows:
            self.reporter.message(
                f"left out {rows - remaining} rows whose answer begins beyond {limit} tokens"
            )

    def prompt_fits(self, prompt: list[Message], *, within: int) -> bool:
        """Whether the prompt takes fewer tokens than that."""
        return len(model_loading.prompt_ids(self.tokenizer, prompt)) < within

    def _recomputes_activations(self, *, on_processor: bool) -> bool:
        if self.spec.recompute == "auto":
            return not on_processor and self.model.num_parameters() > _RECOMPUTE_ABOVE
        return self.spec.recompute == "on"


#: Makes the trainer of one objective.
TrainerBuilder = Callable[[TrainingRun], Any]


TrainingExample = dict[str, Any]


def has_assistant_markers(tokenizer: Any) -> bool:
    """Whether every assistant turn can be distinguished from the rest."""
    if has_generation_markers(tokenizer.chat_template):
        return True
    try:
        return get_training_chat_template(tokenizer) is not None
    except ValueError:
        return False


def sft_example(messages: list[Message], *, every_turn: bool) -> TrainingExample:
    """The row in the form in which TRL puts the loss on every assistant turn, or on the last one."""
    if every_turn:
        return {"messages": messages}
    return {"prompt": messages[:-1], "completion": messages[-1:]}


def text_example(messages: list[Message]) -> TrainingExample:
    """The conversation as plain text: a text is a row with assistant turns only."""
    return {"text": "\n\n".join(message["content"] for message in messages)}


def preference_example(preference: PreferencePair) -> TrainingExample:
    """Two answers to the same prompt."""
    return {
        "prompt": preference.messages[:-1],
        "chosen": preference.messages[-1:],
        "rejected": [{"role": "assistant", "content": preference.rejected}],
    }


def prompt_example(messages: list[Message]) -> TrainingExample:
    """A prompt, and the answer that others are compared with."""
    return {"prompt": messages[:-1], "reference": messages[-1]["content"]}


#: What trainers of preferences and rewards log beside the loss → the names under which it is reported.
_TRAINER_METRICS = {
    "rewards/accuracies": "preference_accuracy",
    "rewards/margins": "preference_margin",
    "reward": "reward",
    "completions/mean_length": "answer_tokens",
}


class TrainingObserver(TrainerCallback):
    """Reports a run; ``evaluation`` is the newest validation loss."""

    def __init__(
        self,
        *,
        reporter: Reporter,
        stop: StopSignalHandler,
        store: checkpoints.CheckpointStore,
        keep_checkpoints: int,
    ) -> None:
        self._reporter = reporter
        self._stop = stop
        self._store = store
        self._keep = keep_checkpoints
        self._began_at = 0.0
        self._began_step = 0
        self._tokens_at_last = 0.0
        self._last_at = 0.0
        #: The newest training loss and validation loss.
        self.loss: float | None = None
        self.evaluation: float | None = None
        self.evaluated_step = -1
        #: The newest of what was logged beside the loss.
        self.trainer_metrics: dict[str, float] = {}

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        self._began_at = self._last_at = time.monotonic()
        self._began_step = state.global_step
        self._tokens_at_last = float(state.num_input_tokens_seen or 0)

    def on_step_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        if self._stop.requested:
            control.should_save = True
            control.should_evaluate = False
            control.should_training_stop = True

    def on_log(
        self, _args: Any, state: Any, _control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        logs = logs or {}
        if "eval_loss" in logs:
            self.evaluation = float(logs["eval_loss"])
            self.evaluated_step = state.global_step
            self._report_point(state, eval_loss=self.evaluation)
        elif "loss" in logs:
            self.loss = float(logs["loss"])
            self.trainer_metrics = {
                name: float(logs[key]) for key, name in _TRAINER_METRICS.items() if key in logs
            }
            self._report_point(
                state,
                loss=self.loss,
                **self.trainer_metrics,
                learning_rate=float(logs.get("learning_rate", 0.0)),
                tokens_per_second=self._tokens_per_second(state),
            )

    def on_save(self, args: Any, state: Any, _control: Any, **_: Any) -> None:
        root = Path(args.output_dir)
        folder = root / f"checkpoint-{state.global_step}"
        checkpoints.mark_checkpoint_complete(folder)
        checkpoints.delete_older_checkpoints(root, count=self._keep)
        self._reporter.checkpoint(step=state.global_step)
        self._store.saved(step=state.global_step)

    def _report_point(self, state: Any, **values: float | None) -> None:
        self._reporter.progress(
            step=state.global_step,
            total_steps=state.max_steps,
            epoch=round(float(state.epoch or 0.0), 3),
            **values,
            eta_seconds=self._eta_seconds(state),
        )

    def _eta_seconds(self, state: Any) -> float | None:
        done = state.global_step - self._began_step
        if done <= 0:
            return None
        elapsed = time.monotonic() - self._began_at
        return round(float(elapsed / done * (state.max_steps - state.global_step)), 1)

    def _tokens_per_second(self, state: Any) -> float | None:
        now, tokens = time.monotonic(), float(state.num_input_tokens_seen or 0)
        elapsed, counted = now - self._last_at, tokens - self._tokens_at_last
        self._last_at, self._tokens_at_last = now, tokens
        return round(counted / elapsed, 1) if elapsed > 0 and counted > 0 else None
