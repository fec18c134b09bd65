"""The objectives ``sft`` and ``pretrain``: the next token of an answer, or of a text."""

from __future__ import annotations

from typing import Any

from trl import SFTConfig, SFTTrainer

from ninefold_runtime import training_rows
from ninefold_runtime.length_batches import LengthGroupedOrder
from ninefold_runtime.training_run import FiniteLoss, Run


class _Trainer(FiniteLoss, SFTTrainer):
    """Batches rows of like length."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        rows = train_dataset if train_dataset is not None else self.train_dataset
        return LengthGroupedOrder(
            [len(ids) for ids in rows["input_ids"]],
            batch_size=self.args.per_device_train_batch_size,
            seed=self.args.data_seed,
        )


def answers_trainer(run: Run) -> Any:
    """Learns what the assistant says."""
    every_turn = training_rows.marks_assistant(run.tokenizer)
    train = run.folders.rows(run.spec.train_split)
    held_out = run.folders.rows(run.spec.validation_split or "") if run.validates() else []
    run.announce(
        train=len(train),
        validation=len(held_out),
        learns=f"the loss falls on {'every' if every_turn else 'the last'} answer of a conversation",
    )
    trainer = _Trainer(
        model=run.model,
        processing_class=run.tokenizer,
        args=SFTConfig(
            **run.arguments(), max_length=run.max_length, assistant_only_loss=every_turn
        ),
        train_dataset=run.dataset(
            "train", [training_rows.answer_row(row, every_turn=every_turn) for row in train]
        ),
        eval_dataset=run.dataset(
            "validation", [training_rows.answer_row(row, every_turn=every_turn) for row in held_out]
        )
        if held_out
        else None,
        peft_config=run.adapter(),
        callbacks=[run.observer],
    )
    kept = len(trainer.train_dataset)
    run.note_lost_rows(rows=len(train), kept=kept, limit=run.max_length)
    return trainer


def texts_trainer(run: Run) -> Any:
    """Learns running text. Texts are strung together and cut every ``max_length`` tokens, so none is lost."""
    train = run.folders.rows(run.spec.train_split)
    held_out = run.folders.rows(run.spec.validation_split or "") if run.validates() else []
    run.announce(train=len(train), validation=len(held_out), learns="the loss falls on every token")
    return _Trainer(
        model=run.model,
        processing_class=run.tokenizer,
        args=SFTConfig(
            **run.arguments(),
            max_length=run.max_length,
            packing=True,
            packing_strategy="wrapped",
        ),
        train_dataset=run.dataset("train", map(training_rows.text_row, train)),
        eval_dataset=run.dataset("validation", map(training_rows.text_row, held_out))
        if held_out
        else None,
        peft_config=run.adapter(),
        callbacks=[run.observer],
    )
