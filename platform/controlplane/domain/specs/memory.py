"""After a fine-tune ran out of memory: the same steps in smaller pieces.

A step sees as many rows as before: the batch on the card is halved and the accumulation grows by as much, so
that learning goes on as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: What engines other than ours print when a card has no memory left, in lower case.
_WORDS = ("outofmemoryerror", "out of memory. tried to allocate", "npu out of memory")

ADVICE = (
    "its batches cannot become smaller; choose a smaller max_length, recompute on, the method lora, "
    "or a card with more memory"
)


def smaller_batches(spec: Mapping[str, Any]) -> dict[str, int] | None:
    """The fields that change, with their new values; None where one row at once is too much already, or the
    engine takes no such fields.

    Where the batch is odd, it becomes the largest that divides a step's rows and is no more than half.
    """
    batch, accumulation = spec.get("batch_size", 1), spec.get("gradient_accumulation", 1)
    if batch <= 1:
        return None
    rows = batch * accumulation
    smaller = next(size for size in range(batch // 2, 0, -1) if rows % size == 0)
    return {"batch_size": smaller, "gradient_accumulation": rows // smaller}


def says_out_of_memory(log: str) -> bool:
    """Whether the end of a log says that a card had no memory left."""
    text = log.lower()
    return any(words in text for words in _WORDS)
