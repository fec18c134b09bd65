"""Trainers of the objectives ``sft``, ``pretrain``, ``dpo`` and ``grpo``, on TRL.

``sft`` and ``pretrain`` learn the next token of an answer, or of a text.

``dpo``, direct preference optimization (Rafailov et al., 2023), compares the trained model with the one that it
started from; with LoRA that is the same model without its adapter, else TRL computes the reference log
probabilities first, so that no second copy is in memory.

``grpo``, group relative policy optimization (Shao et al., 2024), compares several answers to one prompt with
each other. The reward compares the answer with the row's reference, as an evaluation does
(``ninefold_runtime.answer_scoring``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from ninefold_runtime import training_run
from ninefold_runtime.answer_scoring import AnswerScore
from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.length_grouping import LengthGroupedSampler
from ninefold_runtime.task_folders import Message, PreferencePair
from ninefold_runtime.training_run import (
    FiniteLossMixin,
    TrainingRun,
    preference_example,
    prompt_example,
)


class _SftTrainer(FiniteLossMixin, SFTTrainer):
    """Batches rows of like length."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        rows = train_dataset if train_dataset is not None else self.train_dataset
        return LengthGroupedSampler(
            [len(ids) for ids in rows["input_ids"]],
            batch_size=self.args.per_device_train_batch_size,
            seed=self.args.data_seed,
        )


def sft_trainer(run: TrainingRun) -> Any:
    """Trains on the assistant's turns."""
    every_turn = training_run.has_assistant_markers(run.tokenizer)
    train = run.folders.rows(run.spec.train_split)
    validation = run.folders.rows(run.spec.validation_split or "") if run.validates() else []
    run.announce(
        train=len(train),
        validation=len(validation),
        learns=f"the loss falls on {'every' if every_turn else 'the last'} answer of a conversation",
    )
    trainer = _SftTrainer(
        model=run.model,
        processing_class=run.tokenizer,
        args=SFTConfig(
            **run.arguments(), max_length=run.max_length, assistant_only_loss=every_turn
        ),
        train_dataset=run.dataset(
            "train", [training_run.sft_example(row, every_turn=every_turn) for row in train]
        ),
        eval_dataset=run.dataset(
            "validation",
            [training_run.sft_example(row, every_turn=every_turn) for row in validation],
        )
        if validation
        else None,
        peft_config=run.adapter(),
        callbacks=[run.observer],
    )
    remaining = len(trainer.train_dataset)
    run.report_dropped_examples(rows=len(train), remaining=remaining, limit=run.max_length)
    return trainer


def pretrain_trainer(run: TrainingRun) -> Any:
    """Learns running text. Texts are strung together and cut every ``max_length`` tokens, so none is lost."""
    train = run.folders.rows(run.spec.train_split)
    validation = run.folders.rows(run.spec.validation_split or "") if run.validates() else []
    run.announce(
        train=len(train), validation=len(validation), learns="the loss falls on every token"
    )
    return _SftTrainer(
        model=run.model,
        processing_class=run.tokenizer,
        args=SFTConfig(
            **run.arguments(),
            max_length=run.max_length,
            packing=True,
            packing_strategy="wrapped",
        ),
        train_dataset=run.dataset("train", map(training_run.text_example, train)),
        eval_dataset=run.dataset("validation", map(training_run.text_example, validation))
        if validation
        else None,
        peft_config=run.adapter(),
        callbacks=[run.observer],
    )


class _DpoTrainer(FiniteLossMixin, DPOTrainer):
    pass


def dpo_trainer(run: TrainingRun) -> Any:
    """Learns to prefer the chosen answers.

    :raises InvalidTaskInput: if a row has no rejected answer, or every prompt is longer than ``max_length``.
    """
    spec = run.spec
    train = run.folders.preferences(spec.train_split)
    validation = run.folders.preferences(spec.validation_split or "") if run.validates() else []
    run.announce(
        train=len(train),
        validation=len(validation),
        learns=f"it learns which of two answers is better, held to its beginning with beta {spec.dpo.beta:g}",
    )
    fitting = _preferences_that_fit_context(run, train)
    run.report_dropped_examples(rows=len(train), remaining=len(fitting), limit=run.max_length)
    validation = _preferences_that_fit_context(run, validation)
    return _DpoTrainer(
        model=run.model,
        processing_class=run.tokenizer,
        args=DPOConfig(
            **run.arguments(),
            max_length=run.max_length,
            beta=spec.dpo.beta,
            precompute_ref_log_probs=spec.method == "full",
        ),
        train_dataset=run.dataset("train", map(preference_example, fitting)),
        eval_dataset=run.dataset("validation", map(preference_example, validation))
        if validation
        else None,
        peft_config=run.adapter(),
        callbacks=[run.observer],
    )


def _preferences_that_fit_context(
    run: TrainingRun, preferences: list[PreferencePair]
) -> list[PreferencePair]:
    """Those whose answers begin before the row is truncated."""
    return [
        each for each in preferences if run.prompt_fits(each.messages[:-1], within=run.max_length)
    ]


Reward = Callable[..., list[float]]


class _GrpoTrainer(FiniteLossMixin, GRPOTrainer):
    pass


def grpo_trainer(run: TrainingRun) -> Any:
    """Learns to answer as the rows do.

    :raises InvalidTaskInput: if batches cannot hold whole groups of answers, or no prompt leaves room for one.
    """
    spec, grpo = run.spec, run.spec.grpo
    group = spec.batch_size * spec.gradient_accumulation
    if group % grpo.generations:
        raise InvalidTaskInput(
            f"batch_size × gradient_accumulation is {group}, which is no multiple of the "
            f"{grpo.generations} answers a prompt"
        )
    if grpo.max_new_tokens >= run.context:
        raise InvalidTaskInput(
            f"grpo.max_new_tokens is {grpo.max_new_tokens}; the model supports {run.context} positions"
        )
    train = run.folders.rows(spec.train_split)
    max_prompt_tokens = run.context - grpo.max_new_tokens
    fitting = [row for row in train if run.prompt_fits(row[:-1], within=max_prompt_tokens)]
    run.announce(
        train=len(train),
        validation=0,
        learns=f"{grpo.generations} answers to each prompt are rewarded by {grpo.reward}",
    )
    run.report_dropped_examples(rows=len(train), remaining=len(fitting), limit=max_prompt_tokens)
    return _GrpoTrainer(
        model=run.model,
        processing_class=run.tokenizer,
        reward_funcs=[REWARDS[grpo.reward]],
        args=GRPOConfig(
            **run.arguments() | {"eval_strategy": "no", "include_num_input_tokens_seen": "no"},
            num_generations=grpo.generations,
            max_completion_length=grpo.max_new_tokens,
            beta=grpo.beta,
            temperature=grpo.temperature,
        ),
        train_dataset=run.dataset("train", map(prompt_example, fitting)),
        peft_config=run.adapter(),
        callbacks=[run.observer],
    )


def exact_match(
    completions: Sequence[Sequence[Message]], reference: Sequence[str], **_: Any
) -> list[float]:
    """1 for an answer that is the row's but for white space, else 0."""
    return [
        _score_answer(answer=answer[-1]["content"], reference=right).exact_match()
        for answer, right in zip(completions, reference, strict=True)
    ]


def label_accuracy(
    completions: Sequence[Sequence[Message]], reference: Sequence[str], **_: Any
) -> list[float]:
    """The share of the row's labels that the answer has right; 0 where the row has none."""
    return [
        _score_answer(answer=answer[-1]["content"], reference=right).label_accuracy() or 0.0
        for answer, right in zip(completions, reference, strict=True)
    ]


REWARDS: dict[str, Reward] = {"exact_match": exact_match, "label_accuracy": label_accuracy}


def _score_answer(*, answer: str, reference: str) -> AnswerScore:
    score = AnswerScore()
    score.add(answer=answer, reference=reference)
    return score
