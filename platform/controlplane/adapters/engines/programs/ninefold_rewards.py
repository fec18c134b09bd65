"""Rewards of GRPO for ms-swift: an answer is compared with the row's, as an evaluation compares them.

``ninefold_scoring`` is the product's own comparison, brought along beside this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ninefold_scoring import AnswerScore
from swift.rewards import ORM, orms


class ExactMatch(ORM):
    """1 for an answer that is the row's but for white space, else 0."""

    def __call__(
        self, completions: Sequence[str], reference: Sequence[str], **_: Any
    ) -> list[float]:
        pairs = zip(completions, reference, strict=True)
        return [_score_answer(*pair).exact_match() for pair in pairs]


class LabelAccuracy(ORM):
    """The share of the row's labels that the answer has right; 0 where the row has none."""

    def __call__(
        self, completions: Sequence[str], reference: Sequence[str], **_: Any
    ) -> list[float]:
        pairs = zip(completions, reference, strict=True)
        return [_score_answer(*pair).label_accuracy() or 0.0 for pair in pairs]


def _score_answer(answer: str, reference: str) -> AnswerScore:
    score = AnswerScore()
    score.add(answer=answer, reference=reference)
    return score


orms["ninefold_exact_match"] = ExactMatch
orms["ninefold_label_accuracy"] = LabelAccuracy
