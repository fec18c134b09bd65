"""The objective ``grpo``: the model answers, answers are rewarded, and the better ones become likelier.

Group relative policy optimization (Shao et al., 2024): several answers to one prompt are compared with each
other. A reward comes from the row itself: the answer is compared with the row's, in the ways in which an
evaluation compares them (``ninefold_runtime.scoring``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trl import GRPOConfig, GRPOTrainer

from ninefold_runtime.exits import BadInput
from ninefold_runtime.inputs import Message
from ninefold_runtime.scoring import Score
from ninefold_runtime.training_rows import prompt_row
from ninefold_runtime.training_run import FiniteLoss, Run

Reward = Callable[..., list[float]]


class _Trainer(FiniteLoss, GRPOTrainer):
    pass


def rewards_trainer(run: Run) -> Any:
    """Learns to answer as the rows do.

    :raises BadInput: if batches cannot hold whole groups of answers, or no prompt leaves room for one.
    """
    spec, grpo = run.spec, run.spec.grpo
    group = spec.batch_size * spec.gradient_accumulation
    if group % grpo.generations:
        raise BadInput(
            f"batch_size × gradient_accumulation is {group}, which is no multiple of the "
            f"{grpo.generations} answers a prompt"
        )
    if grpo.max_new_tokens >= run.context:
        raise BadInput(
            f"grpo.max_new_tokens is {grpo.max_new_tokens}; the model supports {run.context} positions"
        )
    train = run.folders.rows(spec.train_split)
    room = run.context - grpo.max_new_tokens
    fitting = [row for row in train if run.prompt_fits(row[:-1], within=room)]
    run.announce(
        train=len(train),
        validation=0,
        learns=f"{grpo.generations} answers to each prompt are rewarded by {grpo.reward}",
    )
    run.note_lost_rows(rows=len(train), kept=len(fitting), limit=room)
    return _Trainer(
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
        train_dataset=run.dataset("train", map(prompt_row, fitting)),
        peft_config=run.adapter(),
        callbacks=[run.observer],
    )


def exact_match(
    completions: Sequence[Sequence[Message]], reference: Sequence[str], **_: Any
) -> list[float]:
    """1 for an answer that is the row's but for white space, else 0."""
    return [
        _score(answer=answer[-1]["content"], reference=right).exact_match()
        for answer, right in zip(completions, reference, strict=True)
    ]


def label_accuracy(
    completions: Sequence[Sequence[Message]], reference: Sequence[str], **_: Any
) -> list[float]:
    """The share of the row's labels that the answer has right; 0 where the row has none."""
    return [
        _score(answer=answer[-1]["content"], reference=right).label_accuracy() or 0.0
        for answer, right in zip(completions, reference, strict=True)
    ]


REWARDS: dict[str, Reward] = {"exact_match": exact_match, "label_accuracy": label_accuracy}


def _score(*, answer: str, reference: str) -> Score:
    score = Score()
    score.add(answer=answer, reference=reference)
    return score
