"""What a burn-in is asked for; as other specs, complete, so that nothing has a default here.

::

    {"kind": "burnin", "device": "cuda", "cards": 1, "seconds": 60,
     "matrix": {"size": 8192, "dtype": "bfloat16", "expected_tflops": 989.0, "floor": 0.7},
     "memory": {"share": 0.5},
     "collective": {"backend": "nccl", "expected_gb_s": null, "floor": 0.5}}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ninefold_runtime.exit_codes import InvalidTaskInput

#: Below this the result is not meaningful; beyond, it is another kind of test.
SHORTEST_SECONDS = 5
LONGEST_SECONDS = 86_400
MOST_CARDS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixSpec:
    #: Rows and columns of both factors.
    size: int
    dtype: Literal["float32", "bfloat16", "float16"]
    #: What the card should reach, in 10^12 operations a second: of the data sheet, or of an earlier burn-in of
    #: this kind of node. None: the rate is measured and not judged, only the numbers are.
    expected_tflops: float | None
    #: The share of it that is enough.
    floor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySpec:
    #: Of the card's free memory; of the processor's, of that of so many cores.
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveSpec:
    #: As torch calls it: gloo, nccl, hccl, …
    backend: str
    #: Bus bandwidth in 10^9 bytes a second. None: measured and not judged.
    expected_gb_s: float | None
    floor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BurninSpec:
    kind: Literal["burnin"]
    #: As torch names it: cpu, cuda, npu, musa, …
    device: str
    #: How many of the node's, from the first that is visible.
    cards: int
    #: The limit for everything; the tests divide it among themselves.
    seconds: int
    matrix: MatrixSpec
    memory: MemorySpec
    collective: CollectiveSpec

    def check(self) -> None:
        """:raises InvalidTaskInput: if a number is beyond its bounds; the message names it."""
        _require_range("cards", self.cards, 1, MOST_CARDS)
        _require_range("seconds", self.seconds, SHORTEST_SECONDS, LONGEST_SECONDS)
        _require_range("matrix.size", self.matrix.size, 64, 32_768)
        _require_share("matrix.floor", self.matrix.floor)
        _require_share("memory.share", self.memory.share)
        _require_share("collective.floor", self.collective.floor)
        _require_positive("matrix.expected_tflops", self.matrix.expected_tflops)
        _require_positive("collective.expected_gb_s", self.collective.expected_gb_s)
        if not self.device.isidentifier():
            raise InvalidTaskInput(
                f"device must be a name of torch, such as cpu or cuda, not {self.device!r}"
            )


def _require_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InvalidTaskInput(f"{name} must be from {low} to {high}, not {value}")


def _require_share(name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise InvalidTaskInput(f"{name} must be above 0 and at most 1, not {value}")


def _require_positive(name: str, value: float | None) -> None:
    if value is not None and not value > 0:
        raise InvalidTaskInput(
            f"{name} must be above 0, or null where nobody knows it, not {value}"
        )
