"""Memory patterns: what is written to a share of the memory is there when all of it has been written.

Every block is written before the first is read back, so that caches do not answer for the memory. What should be
there is made anew on the card for the comparison.
"""

from __future__ import annotations

import math
import time
from typing import Any

import torch

from ninefold_runtime.burnin.card import BurninCard
from ninefold_runtime.burnin.outcomes import BurninOutcome, BurninVerdict, failed_outcome
from ninefold_runtime.burnin.specs import MemorySpec

_TEST = "memory"
_WORD_BITS = 64
_WORD_BYTES = 8
_BLOCK_ELEMENTS = 4 * 1024 * 1024
_BLOCK_BYTES = _BLOCK_ELEMENTS * _WORD_BYTES
_GIB = float(1 << 30)
_SHOWN = 4
#: The part of the wanted share that has to be tested.
_LEAST = 0.25
#: Of the time that is planned with: a pace is an estimate.
_MARGIN = 0.8
PATTERNS = ("0x55", "0xAA", "walking one", "random")


def run_memory_test(spec: MemorySpec, *, card: BurninCard, deadline: float) -> BurninOutcome:
    """All patterns over the share, or over as much of it as there is time for until ``deadline`` (monotonic).

    The share shrinks to what the card's own pace allows, for other work may slow the memory of a processor; below
    ``_LEAST`` of it the card is too slow to be called sound.
    """
    wanted = max(1, int(card.free_memory() * spec.share) // _BLOCK_BYTES)
    writer = PatternWriter(card)
    blocks = _allocate_blocks(wanted, device=card.device)
    if len(blocks) < wanted:
        message = f"no more than that could be had, with {spec.share:.0%} of what is free wanted"
        return _failed_memory_outcome(message, card=card, blocks=len(blocks), wanted=wanted)
    seconds = deadline - time.monotonic()
    count = min(
        wanted, int(_MARGIN * seconds / _test_seconds_per_block(writer, blocks[0], card=card))
    )
    if count < wanted * _LEAST:
        message = f"in {seconds:.0f} s no more than that can be written and read: it is too slow"
        return _failed_memory_outcome(message, card=card, blocks=count, wanted=wanted)
    del blocks[count:]
    for pattern in PATTERNS:
        for number, block in enumerate(blocks):
            writer.write(block, pattern=pattern, number=number)
        for number, block in enumerate(blocks):
            found = writer.mismatch(block, pattern=pattern, number=number)
            if found:
                message = f"pattern {pattern}: {found}"
                return _failed_memory_outcome(message, card=card, blocks=number, wanted=wanted)
            if time.monotonic() > deadline + seconds:
                message = f"time was over in pattern {pattern}: it became slower"
                return _failed_memory_outcome(message, card=card, blocks=number, wanted=wanted)
    part = (
        ""
        if count == wanted
        else f" of {_size_of_blocks_in_gib(wanted)} GiB, as much as there was time for"
    )
    return BurninOutcome(
        test=_TEST,
        card=card.index,
        verdict=BurninVerdict.PASSED,
        measured=_size_of_blocks_in_gib(count),
        expected=_size_of_blocks_in_gib(max(1, math.ceil(wanted * _LEAST))),
        unit="GiB",
        message=f"read back as written{part}, in the patterns {', '.join(PATTERNS)}",
    )


class PatternWriter:
    """Makes patterns, and finds where a block differs from one."""

    def __init__(self, card: BurninCard) -> None:
        self._places = torch.arange(_BLOCK_ELEMENTS, dtype=torch.int64, device=card.device)
        self._should = torch.empty_like(self._places)
        self._scratch = torch.empty_like(self._places)
        self._one = torch.ones((), dtype=torch.int64, device=card.device)

    def write(self, block: Any, *, pattern: str, number: int) -> None:
        """Fill the block; walking and random patterns differ from block to block."""
        self._fill_with_pattern(block, pattern=pattern, number=number)

    def _fill_with_pattern(self, block: Any, *, pattern: str, number: int) -> None:
        if pattern == "0x55":
            block.fill_(_to_signed_int64(0x5555_5555_5555_5555))
        elif pattern == "0xAA":
            block.fill_(_to_signed_int64(0xAAAA_AAAA_AAAA_AAAA))
        elif pattern == "walking one":
            torch.add(self._places, number, out=self._scratch)
            torch.bitwise_and(self._scratch, _WORD_BITS - 1, out=self._scratch)
            torch.bitwise_left_shift(self._one, self._scratch, out=block)
        else:
            # Places scattered by multiplying and folding: as good as random here, and the same on every card.
            torch.add(self._places, number * _BLOCK_ELEMENTS + 1, out=block)
            for factor in (0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9):
                block.mul_(_to_signed_int64(factor))
                torch.bitwise_right_shift(block, 31, out=self._scratch)
                torch.bitwise_xor(block, self._scratch, out=block)

    def mismatch(self, block: Any, *, pattern: str, number: int) -> str:
        """Where and how the block differs from what was written, as a message; empty if it does not."""
        self._fill_with_pattern(self._should, pattern=pattern, number=number)
        if torch.equal(block, self._should):
            return ""
        places = torch.nonzero(block != self._should).flatten()
        shown = [self._check_block(block, int(place), number=number) for place in places[:_SHOWN]]
        return f"{len(places)} words differ: {'; '.join(shown)}"

    def _check_block(self, block: Any, place: int, *, number: int) -> str:
        offset = number * _BLOCK_BYTES + place * _WORD_BYTES
        address = block.data_ptr() + place * _WORD_BYTES
        wrote, read = (int(data[place]) & (2**_WORD_BITS - 1) for data in (self._should, block))
        return f"at 0x{address:x} (byte {offset}) wrote 0x{wrote:016x}, read 0x{read:016x}"


def _allocate_blocks(count: int, *, device: Any) -> list[Any]:
    """As many of the blocks as there is room for."""
    blocks: list[Any] = []
    for _ in range(count):
        try:
            blocks.append(torch.empty(_BLOCK_ELEMENTS, dtype=torch.int64, device=device))
        except (RuntimeError, MemoryError):
            break
    return blocks


def _test_seconds_per_block(writer: PatternWriter, block: Any, *, card: BurninCard) -> float:
    """Seconds that one block takes in all patterns, once its memory is there."""
    writer.write(block, pattern=PATTERNS[0], number=0)
    card.synchronize()
    began = time.perf_counter()
    for pattern in PATTERNS:
        writer.write(block, pattern=pattern, number=0)
        writer.mismatch(block, pattern=pattern, number=0)
    return max(time.perf_counter() - began, 1e-6)


def _failed_memory_outcome(
    message: str, *, card: BurninCard, blocks: int, wanted: int
) -> BurninOutcome:
    return failed_outcome(
        test=_TEST,
        card=card.index,
        message=message,
        measured=_size_of_blocks_in_gib(blocks),
        expected=_size_of_blocks_in_gib(max(1, math.ceil(wanted * _LEAST))),
        unit="GiB",
    )


def _size_of_blocks_in_gib(blocks: int) -> float:
    return round(blocks * _BLOCK_BYTES / _GIB, 3)


def _to_signed_int64(word: int) -> int:
    """The same 64 bits as torch's int64 has them."""
    return word - 2**_WORD_BITS if word >= 2 ** (_WORD_BITS - 1) else word
