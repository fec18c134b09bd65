"""Matrix products: the work that these cards are bought for.

The same product is computed again and again. Its first result is compared with a few rows computed in float64 by
the processor, all later ones with the first: a unit that errs, always or now and then, shows.
"""

from __future__ import annotations

import time
from typing import Any

import torch

from ninefold_runtime.burnin.cards import Card
from ninefold_runtime.burnin.outcomes import Outcome, broken, judged
from ninefold_runtime.burnin.specs import MatrixSpec

_TEST = "matrix"
_ROWS = 4
_WARM_UP = 2
#: Compared at once, so that a comparison needs little memory beside the matrices.
_ROWS_AT_ONCE = 1024
#: Units in the last place, of the largest entry: rounding and another order of summing stay far below.
_TOLERANCE = 4.0
#: A comparison costs as much as moving the matrix; between two, products run back to back for about so long.
_COMPARE_EVERY_SECONDS = 1.0


def run(spec: MatrixSpec, *, card: Card, deadline: float) -> Outcome:
    """Products until the deadline on the monotonic clock: the rate in TFLOP/s, and whether all were right."""
    kind = getattr(torch, spec.dtype)
    generator = torch.Generator().manual_seed(1)
    left, right = (
        torch.randn(spec.size, spec.size, generator=generator).to(kind) for _ in range(2)
    )
    truth = left[:_ROWS].double() @ right.double()
    bound = _TOLERANCE * torch.finfo(kind).eps * float(truth.abs().max())
    factors = left.to(card.device), right.to(card.device)
    product = torch.empty(spec.size, spec.size, dtype=kind, device=card.device)
    for _ in range(_WARM_UP):
        multiply(*factors, out=product)
    error = float((product[:_ROWS].double().cpu() - truth).abs().max())
    if not error <= bound:
        return _wrong(f"the first product differs from the true one by {error:.4g}", card, bound)
    first = product.clone()
    count, busy, batch = 0, 0.0, 1
    while count == 0 or time.monotonic() < deadline:
        card.synchronize()
        began = time.perf_counter()
        for _ in range(batch):
            multiply(*factors, out=product)
        card.synchronize()
        seconds = time.perf_counter() - began
        count, busy = count + batch, busy + seconds
        error = difference(product, first)
        if not error <= bound:
            return _wrong(f"product {count} differs from the first by {error:.4g}", card, bound)
        left_seconds = max(0.0, deadline - time.monotonic())
        wanted = min(_COMPARE_EVERY_SECONDS, left_seconds) / max(seconds / batch, 1e-9)
        batch = max(1, min(int(wanted), batch * 4))
    return judged(
        test=_TEST,
        card=card.index,
        measured=round(2 * spec.size**3 * count / busy / 1e12, 6),
        expected=spec.expected_tflops,
        floor=spec.floor,
        unit="TFLOP/s",
        words=f"{count} products of {spec.size} × {spec.size} in {spec.dtype}, all right",
    )


def multiply(left: Any, right: Any, *, out: Any) -> None:
    torch.matmul(left, right, out=out)


def difference(one: Any, other: Any) -> float:
    """The largest between two entries; not a number where one of them is not."""
    pairs = zip(one.split(_ROWS_AT_ONCE), other.split(_ROWS_AT_ONCE), strict=True)
    parts = [(here.float() - there.float()).abs().max() for here, there in pairs]
    return float(torch.stack(parts).max())


def _wrong(words: str, card: Card, bound: float) -> Outcome:
    return broken(
        test=_TEST,
        card=card.index,
        words=f"{words}; rounding explains {bound:.4g} at most: the card computes wrongly",
    )
