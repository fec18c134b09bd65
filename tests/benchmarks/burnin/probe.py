"""Run by an engine's Python: false alarms and detected faults of the matrix test of burn-in.

Each three arguments are one check; the results are printed as one JSON list::

    kernels SIZE,… SEEDS   products by torch's kernels, as the environment chooses them
    orders SIZE SEEDS      sums in emulated orders
    flips SIZE COUNT       flipped bits in right products
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ninefold_runtime.burnin import matrix_test

DTYPES = ("float32", "bfloat16", "float16")
THREADS = (1, 2, 3)
_ROWS = 4
_BLOCKS = (2, 7, 16, 100)
_INTEGERS = {2: torch.int16, 4: torch.int32}

Round = Callable[[Any], Any]


def kernels(sizes: list[int], seeds: int) -> dict[str, Any]:
    """How many whole products were checked, and which of them were called wrong."""
    checked, alarms = 0, []
    for dtype in DTYPES:
        for size in sizes:
            for seed in range(seeds):
                left, right = matrix_test.exact_factors(size, dtype=dtype, seed=seed)
                truth = left.double() @ right.double()
                for threads in THREADS:
                    torch.set_num_threads(threads)
                    product = torch.empty_like(left)
                    matrix_test.multiply_into(left, right, out=product)
                    checked += 1
                    if error := matrix_test.largest_unexplained_error(product, truth):
                        alarms.append([dtype, size, seed, threads, error])
    return {"checked": checked, "alarms": alarms}


def orders(size: int, seeds: int) -> dict[str, Any]:
    """Alarms by type and order; ``distinct`` counts the results of the same orders for random reals."""
    checked, alarms = 0, []
    for dtype in DTYPES:
        for seed in range(seeds):
            left, right = matrix_test.exact_factors(size, dtype=dtype, seed=seed)
            truth = left[:_ROWS].double() @ right.double()
            for name, total in _summed(left[:_ROWS], right):
                checked += 1
                if error := matrix_test.largest_unexplained_error(total.to(left.dtype), truth):
                    alarms.append([dtype, name, seed, error])
    generator = torch.Generator().manual_seed(0)
    reals = [torch.randn(size, size, generator=generator) for _ in range(2)]
    totals = {total.numpy().tobytes() for _, total in _summed(reals[0][:_ROWS], reals[1])}
    return {"checked": checked, "alarms": alarms, "distinct": len(totals)}


def _summed(left: Any, right: Any) -> Iterator[tuple[str, Any]]:
    """Products with a float32 accumulator: each order, rounded to nearest and truncated, with and without FMA."""
    terms = (left.double()[:, None, :] * right.double().T[None, :, :]).movedim(-1, 0)
    by_magnitude = terms.abs().argsort(dim=0)
    ordered = {
        "sequential": terms,
        "reversed": terms.flip(0),
        "ascending magnitude": terms.gather(0, by_magnitude),
        "descending magnitude": terms.gather(0, by_magnitude.flip(0)),
        "negative first": terms.sort(dim=0).values,
    }
    roundings: dict[str, Round] = {"nearest": _nearest, "truncated": _truncated}
    for mode, rounded in roundings.items():
        for fused in (True, False):
            suffix = f"{mode}, {'fused' if fused else 'separate'}"
            for name, each in ordered.items():
                rows = each if fused else rounded(each)
                yield f"{name}, {suffix}", _sequential(rows, rounded).float()
            rows = terms if fused else rounded(terms)
            yield f"pairwise, {suffix}", _pairwise(rows, rounded).float()
            for block in _BLOCKS:
                parts = [_sequential(part, rounded) for part in rows.split(block)]
                yield f"blocks of {block}, {suffix}", _sequential(parts, rounded).float()


def _nearest(value: Any) -> Any:
    return value.float().double()


def _truncated(value: Any) -> Any:
    """To 24 bits of significand, towards zero."""
    bits = value.contiguous().view(torch.int64) & ~((1 << 29) - 1)
    return bits.view(torch.float64)


def _sequential(rows: Any, rounded: Round) -> Any:
    total = torch.zeros_like(rows[0])
    for row in rows:
        total = rounded(total + row)
    return total


def _pairwise(rows: Any, rounded: Round) -> Any:
    while len(rows) > 1:
        odd = rows[len(rows) // 2 * 2 :]
        rows = torch.cat([rounded(rows[0:-1:2] + rows[1::2]), odd])
    return rounded(rows[0])


def flips(size: int, count: int) -> dict[str, Any]:
    """Detected share of single flipped bits, by type and bit from the lowest.

    ``first`` and ``later`` are the comparisons of burn-in. For normal reals, ``gamma`` is ``gamma_K |A||B|`` and
    ``probable`` the same with ``8 sqrt(K) u`` for ``gamma_K``, both plus the rounding of the result.
    """
    found: dict[str, Any] = {}
    for dtype in DTYPES:
        left, right = matrix_test.exact_factors(size, dtype=dtype, seed=1)
        truth = left[:_ROWS].double() @ right.double()
        generator = torch.Generator().manual_seed(2)
        reals = [
            torch.randn(size, size, generator=generator).to(left.dtype).double() for _ in range(2)
        ]
        real_truth = reals[0][:_ROWS] @ reals[1]
        magnitude = reals[0][:_ROWS].abs() @ reals[1].abs()
        entries = torch.randperm(truth.numel(), generator=generator)[:count]
        exact, real, scale = (table.flatten()[entries] for table in (truth, real_truth, magnitude))
        right_result, real_result = exact.to(left.dtype), real.to(left.dtype)
        unit = 2.0**-24
        output = torch.finfo(left.dtype).eps / 2 * real.abs()
        gamma = size * unit / (1 - size * unit) * scale + output
        probable = 8 * size**0.5 * unit * scale + output
        rates: dict[str, list[float]] = {"first": [], "later": [], "probable": [], "gamma": []}
        for bit in range(8 * left.element_size()):
            flipped = _flipped(right_result, bit)
            seen = [
                matrix_test.largest_unexplained_error(one, aim)
                for one, aim in zip(flipped, exact, strict=True)
            ]
            later = [
                matrix_test.largest_difference(*pair)
                for pair in zip(flipped[:, None], right_result[:, None], strict=True)
            ]
            rates["first"].append(_share(torch.tensor(seen) != 0))
            rates["later"].append(_share(torch.tensor(later) != 0))
            error = (_flipped(real_result, bit).double() - real).abs()
            rates["probable"].append(_share(~(error <= probable)))
            rates["gamma"].append(_share(~(error <= gamma)))
        found[dtype] = rates
    return found


def _flipped(values: Any, bit: int) -> Any:
    kind = _INTEGERS[values.element_size()]
    lowest, highest = torch.iinfo(kind).min, 8 * values.element_size() - 1
    return (values.view(kind) ^ (lowest if bit == highest else 1 << bit)).view(values.dtype)


def _share(seen: Any) -> float:
    return round(float(seen.double().mean()), 4)


def main(arguments: list[str]) -> None:
    matrix_test._forbid_16_bit_partial_sums()
    results = []
    for what, sizes, count in zip(*[iter(arguments)] * 3, strict=True):
        if what == "kernels":
            results.append(kernels([int(size) for size in sizes.split(",")], int(count)))
        elif what == "orders":
            results.append(orders(int(sizes), int(count)))
        else:
            results.append(flips(int(sizes), int(count)))
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1:])
