"""The objective ``dpo``: one answer is liked better than another.

Direct preference optimization (Rafailov et al., 2023) compares the trained model with the one that it began
as; with LoRA that is the same model without its adapter, else TRL computes the old model's figures first, so
that no second copy lies in memory.
"""

from __future__ import annotations

from typing import Any

from trl import DPOConfig, DPOTrainer

from ninefold_runtime.inputs import Preference
from ninefold_runtime.training_rows import preference_row
from ninefold_runtime.training_run import FiniteLoss, Run


class _Trainer(FiniteLoss, DPOTrainer):
    pass


def preferences_trainer(run: Run) -> Any:
    """Learns to prefer the chosen answers.

    :raises BadInput: if a row has no rejected answer, or every prompt is longer than ``max_length``.
    """
    spec = run.spec
    train = run.folders.preferences(spec.train_split)
    held_out = run.folders.preferences(spec.validation_split or "") if run.validates() else []
    run.announce(
        train=len(train),
        validation=len(held_out),
        learns=f"it learns which of two answers is better, held to its beginning with beta {spec.dpo.beta:g}",
    )
    fitting = _fitting(run, train)
    run.note_lost_rows(rows=len(train), kept=len(fitting), limit=run.max_length)
    held_out = _fitting(run, held_out)
    return _Trainer(
        model=run.model,
        processing_class=run.tokenizer,
        args=DPOConfig(
            **run.arguments(),
            max_length=run.max_length,
            beta=spec.dpo.beta,
            precompute_ref_log_probs=spec.method == "full",
        ),
        train_dataset=run.dataset("train", map(preference_row, fitting)),
        eval_dataset=run.dataset("validation", map(preference_row, held_out)) if held_out else None,
        peft_config=run.adapter(),
        callbacks=[run.observer],
    )


def _fitting(run: Run, preferences: list[Preference]) -> list[Preference]:
    """Those whose answers begin before the row is cut off."""
    return [
        each for each in preferences if run.prompt_fits(each.messages[:-1], within=run.max_length)
    ]
