"""What every objective's trainer is made of: the model, the arguments that all share, the adapter, the rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import datasets
import torch
from peft import LoraConfig

from ninefold_runtime import conversations, devices
from ninefold_runtime.exits import BadInput, Diverged
from ninefold_runtime.inputs import Folders, Message
from ninefold_runtime.report import Reporter
from ninefold_runtime.specs import FinetuneSpec
from ninefold_runtime.training_progress import Observer
from ninefold_runtime.training_rows import Row

#: Above this many parameters activations are recomputed rather than kept, on accelerators.
_RECOMPUTE_ABOVE = 1_000_000_000


class FiniteLoss:
    """For a trainer: stops at the first loss that is not finite, before it is saved."""

    args: Any
    state: Any

    def training_step(self, *arguments: Any, **keywords: Any) -> Any:
        loss = super().training_step(*arguments, **keywords)  # type: ignore[misc]  # of the trainer
        if not torch.isfinite(loss):
            raise Diverged(
                f"the loss became {loss.item()} at step {self.state.global_step + 1}: "
                f"the learning rate of {self.args.learning_rate:g} is probably too high"
            )
        return loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run with everything loaded."""

    spec: FinetuneSpec
    folders: Folders
    reporter: Reporter
    observer: Observer
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
        on_processor = devices.device().type == "cpu"
        return {
            "output_dir": str(self.folders.checkpoints),
            "num_train_epochs": spec.epochs,
            "max_steps": spec.max_steps or -1,
            "learning_rate": spec.learning_rate,
            "per_device_train_batch_size": spec.batch_size,
            "per_device_eval_batch_size": spec.batch_size,
            "gradient_accumulation_steps": spec.gradient_accumulation,
            "gradient_checkpointing": self._recomputes(on_processor=on_processor),
            "warmup_steps": spec.warmup_ratio,
            "weight_decay": spec.weight_decay,
            "lr_scheduler_type": spec.scheduler,
            "seed": spec.seed,
            "data_seed": spec.seed,
            "bf16": devices.dtype(spec.precision) == torch.bfloat16,
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

    def dataset(self, name: str, rows: Iterable[Row]) -> Any:
        """Memory-mapped from the working folder, so that a large dataset need not fit into memory as tokens."""
        kept = rows if isinstance(rows, list) else list(rows)

        def generate() -> Iterator[Row]:
            yield from kept

        cache = self.folders.work / "tmp" / "datasets" / name
        shutil.rmtree(cache, ignore_errors=True)
        return datasets.Dataset.from_generator(generate, cache_dir=str(cache))

    def announce(self, *, train: int, validation: int, learns: str) -> None:
        """Say what is about to be trained, on what, and what it learns from."""
        self.reporter.message(
            f"{self.model.config.architectures[0]} with {self.model.num_parameters():,} parameters on "
            f"{devices.device()}; {train:,} rows to train on, {validation:,} to validate; {learns}"
        )

    def note_lost_rows(self, *, rows: int, kept: int, limit: int) -> None:
        """Say how many rows teach nothing, since their answer begins beyond so many tokens.

        :raises BadInput: if none is left.
        """
        if kept == 0:
            raise BadInput(
                f"max_length of {limit} tokens cuts the answer off in every one of {rows} rows"
            )
        if kept < rows:
            self.reporter.message(
                f"left out {rows - kept} rows whose answer begins beyond {limit} tokens"
            )

    def prompt_fits(self, prompt: list[Message], *, within: int) -> bool:
        """Whether the prompt takes fewer tokens than that."""
        return len(conversations.prompt_ids(self.tokenizer, prompt)) < within

    def _recomputes(self, *, on_processor: bool) -> bool:
        if self.spec.recompute == "auto":
            return not on_processor and self.model.num_parameters() > _RECOMPUTE_ABOVE
        return self.spec.recompute == "on"


#: Makes the trainer of one objective.
Builder = Callable[[Run], Any]
