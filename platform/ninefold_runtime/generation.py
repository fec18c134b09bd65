"""Greedy answers for many prompts at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def answers(
    model: Any, tokenizer: Any, prompts: Sequence[Sequence[int]], *, max_new_tokens: int
) -> list[str]:
    """The most likely continuation of each prompt, up to its end token, without special tokens.

    Prompts are padded on the left, so that every answer begins at the same position.
    """
    width = max(len(prompt) for prompt in prompts)
    padding = tokenizer.pad_token_id
    ids = [[padding] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    with torch.inference_mode():
        output = model.generate(
            input_ids=torch.tensor(ids, device=model.device),
            attention_mask=torch.tensor(mask, device=model.device),
            max_new_tokens=max_new_tokens,
            do_sample=False,
            temperature=None,
            top_p=None,
            top_k=None,
            pad_token_id=padding,
        )
    return [
        str(tokenizer.decode(row, skip_special_tokens=True)) for row in output[:, width:].tolist()
    ]


def answer_losses(
    model: Any, conversations: Sequence[tuple[Sequence[int], int]], *, padding: int
) -> tuple[float, int]:
    """Summed negative log likelihood (nats) of the answers' tokens, and how many those are.

    Each conversation is its token ids and the index at which the answer begins.
    """
    width = max(len(ids) for ids, _ in conversations)
    ids = [list(each) + [padding] * (width - len(each)) for each, _ in conversations]
    mask = [[1] * len(each) + [0] * (width - len(each)) for each, _ in conversations]
    answered = [
        [begin <= index < len(each) for index in range(1, width)] for each, begin in conversations
    ]
    inputs = torch.tensor(ids, device=model.device)
    with torch.inference_mode():
        logits = model(
            input_ids=inputs, attention_mask=torch.tensor(mask, device=model.device)
        ).logits[:, :-1]
    losses = torch.nn.functional.cross_entropy(
        logits.float().flatten(0, 1), inputs[:, 1:].flatten(), reduction="none"
    )
    chosen = losses[torch.tensor(answered, device=model.device).flatten()]
    return float(chosen.sum()), int(chosen.numel())
