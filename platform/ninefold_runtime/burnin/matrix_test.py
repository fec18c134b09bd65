"""Matrix products: the work that these cards are bought for.

The same product is computed again and again. Its first result is compared with a few rows computed in float64 by
the processor, all later ones with the first.

**No rounding, so no tolerance.** The factors hold integers ``|a|, |b| <= M`` in a unit that is a power of two,
with ``K M^2 <= 2^24`` for ``K`` terms to an entry. Every product and every sum of any subset of the terms is
then an integer of at most ``2^24`` units, which an accumulator with a significand of 24 bits (float32) holds.
In the bound for every order of summing, ``|C' - C| <= gamma_K |A||B|`` (Higham, *Accuracy and Stability of
Numerical Algorithms*, 2nd edition, 2002, section 3.5), each of the factors ``1 + delta`` behind ``gamma_K`` is
1: ``delta`` is 0 for a result that is representable. Order, blocking, split sums, fused multiply-add and the
accumulator's direction of rounding (tensor cores truncate: Fasi, Higham, Mikaitis and Pranesh, *PeerJ Computer
Science* 7:e330, 2021) change nothing. ``M <= 2^8`` keeps the factors exact in bfloat16, float16 and TF32.

One rounding is left: of the accumulator to a 16-bit result. What the type holds must come out as it is, anything
else as one of its two neighbors, less than a unit in the last place away. The float64 reference is exact.

A bound on the rounding errors of random reals hides most bits of the significand: ``gamma_K |A||B|``, and also
the probabilistic one with ``sqrt(K)`` for ``K`` (Higham and Mary, *SIAM J. Sci. Comput.* 41(5), A2815-A2835,
2019), which truncation would break. ``docs/benchmarks.md`` compares them.
"""

from __future__ import annotations

import math
import time
from typing import Any

import torch

from ninefold_runtime.burnin.card import BurninCard
from ninefold_runtime.burnin.outcomes import BurninOutcome, failed_outcome, rate_outcome
from ninefold_runtime.burnin.specs import MatrixSpec

_TEST = "matrix"
_ROWS = 4
_WARM_UP = 2
#: Compared at once, so that a comparison needs little memory beside the matrices.
_ROWS_AT_ONCE = 1024
#: Sums of at most so many units are exact in float32, and in the accumulators of cards for 16-bit factors.
_EXACT_SUM = 2**24
#: Integers up to this are exact in bfloat16, the type with the shortest significand.
_EXACT_FACTOR = 2**8
#: Of the integers, so that the largest sum, 2^24 of its square, stays far below the largest float16.
_UNIT = 2.0**-5
#: A comparison costs as much as moving the matrix; between two, products run back to back for about so long.
_COMPARE_EVERY_SECONDS = 1.0


def run_matrix_test(spec: MatrixSpec, *, card: BurninCard, deadline: float) -> BurninOutcome:
    """Products until the deadline on the monotonic clock: the rate in TFLOP/s, and whether all were right."""
    _forbid_16_bit_partial_sums()
    left, right = exact_factors(spec.size, dtype=spec.dtype, seed=1)
    truth = left[:_ROWS].double() @ right.double()
    on_card = left.to(card.device), right.to(card.device)
    product = torch.empty_like(on_card[0])
    for _ in range(_WARM_UP):
        multiply_into(*on_card, out=product)
    error = largest_unexplained_error(product[:_ROWS].cpu(), truth)
    if error != 0:
        return _failed_matrix_outcome(
            f"the first product differs from the true one by {error:.4g}", card
        )
    first = product.clone()
    count, busy, batch = 0, 0.0, 1
    while count == 0 or time.monotonic() < deadline:
        card.synchronize()
        began = time.perf_counter()
        for _ in range(batch):
            multiply_into(*on_card, out=product)
        card.synchronize()
        seconds = time.perf_counter() - began
        count, busy = count + batch, busy + seconds
        error = largest_difference(product, first)
        if error != 0:
            return _failed_matrix_outcome(
                f"product {count} differs from the first by {error:.4g}", card
            )
        left_seconds = max(0.0, deadline - time.monotonic())
        wanted = min(_COMPARE_EVERY_SECONDS, left_seconds) / max(seconds / batch, 1e-9)
        batch = max(1, min(int(wanted), batch * 4))
    return rate_outcome(
        test=_TEST,
        card=card.index,
        measured=round(2 * spec.size**3 * count / busy / 1e12, 6),
        expected=spec.expected_tflops,
        floor=spec.floor,
        unit="TFLOP/s",
        message=f"{count} products of {spec.size} × {spec.size} in {spec.dtype}, all right",
    )


def exact_factors(size: int, *, dtype: str, seed: int) -> tuple[Any, Any]:
    """Two square tensors of integers times a power of two, whose product is exact in every order of summing."""
    most = min(_EXACT_FACTOR, math.isqrt(_EXACT_SUM // size))
    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, dtype)
    left, right = (
        torch.randint(-most, most + 1, (size, size), generator=generator, dtype=torch.int16)
        .to(kind)
        .mul_(_UNIT)
        for _ in range(2)
    )
    return left, right


def largest_unexplained_error(product: Any, truth: Any) -> float:
    """The largest difference from ``truth`` (float64) that a rounding to the product's type does not explain.

    0 if there is none; not a number where an entry is not.
    """
    binade = torch.ldexp(torch.ones_like(truth), torch.frexp(truth).exponent - 1)
    rounding = torch.finfo(product.dtype).eps * binade
    rounding[truth.to(product.dtype).double() == truth] = 0
    error = (product.double() - truth).abs()
    wrong = error[~(error <= rounding)]
    return float(wrong.max()) if len(wrong) else 0.0


def _forbid_16_bit_partial_sums() -> None:
    """Forbid partial sums in 16 bits, which torch allows CUDA and ROCm for 16-bit factors by default."""
    matmul = torch.backends.cuda.matmul
    matmul.allow_fp16_reduced_precision_reduction = False
    matmul.allow_bf16_reduced_precision_reduction = False
    matmul.allow_fp16_accumulation = False


def multiply_into(left: Any, right: Any, *, out: Any) -> None:
    torch.matmul(left, right, out=out)


def largest_difference(one: Any, other: Any) -> float:
    """The largest between two entries; not a number where one of them is not."""
    pairs = zip(one.split(_ROWS_AT_ONCE), other.split(_ROWS_AT_ONCE), strict=True)
    parts = [(here.float() - there.float()).abs().max() for here, there in pairs]
    return float(torch.stack(parts).max())


def _failed_matrix_outcome(message: str, card: BurninCard) -> BurninOutcome:
    return failed_outcome(
        test=_TEST,
        card=card.index,
        message=f"{message}; no order of summing explains that: the card computes wrongly",
    )
