"""Matrices of cases inside one test: all cases run, and every failure is reported with its case."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def for_each_case(
    names: str | Sequence[str], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test's body once per case, as ``pytest.mark.parametrize`` would, but as one test.

    An item per case costs a collection entry, its fixtures and a report; for a matrix that is most of the
    time. Use this where cases share no state. Fixtures of the test are created once for all cases.

    A case must not skip: that would leave out those behind it, so it counts as a failure.

    :param names: the parameters that a case fills, as ``parametrize`` takes them.
    :param cases: values, tuples of values for several names, or ``pytest.param`` objects.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_values(case, keys) for case in cases]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        assert table, f"{test.__name__} has no cases"

        @functools.wraps(test)
        def every_case(**fixtures: Any) -> None:
            failures: list[Exception] = []
            for case in table:
                try:
                    test(**fixtures, **case)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001 - raised below
                    failure = error if isinstance(error, Exception) else AssertionError(str(error))
                    failure.add_note("case: " + ", ".join(f"{k}={v!r}" for k, v in case.items()))
                    failures.append(failure)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} cases failed", failures)

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in keys]
        every_case.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return every_case

    return decorate


def _values(case: Any, keys: Sequence[str]) -> dict[str, Any]:
    if hasattr(case, "values") and hasattr(case, "marks"):  # pytest.param
        return dict(zip(keys, case.values, strict=True))
    return dict(zip(keys, case if len(keys) > 1 else (case,), strict=True))
