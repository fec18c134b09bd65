"""Uploads for the tests below."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pytest

from controlplane.domain.datasets import DatasetRefused, FileLimits, FileProblem, inspect_dataset

Fields = dict[str, Any]


def as_jsonl(rows: Sequence[Any]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_json(rows: Sequence[Any]) -> bytes:
    return json.dumps(list(rows), ensure_ascii=False, indent=1).encode()


def as_csv(rows: Sequence[dict[str, str]], *, delimiter: str = ",") -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(
        text, list(rows[0]), delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL
    )
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def pairs(count: int) -> list[dict[str, str]]:
    return [{"instruction": f"问 {n}", "output": f"答 {n}"} for n in range(count)]


def refusal(content: bytes, filename: str = "data.jsonl", **options: Any) -> DatasetRefused:
    """The refusal of a file that must be refused."""
    with pytest.raises(DatasetRefused) as caught:
        inspect_dataset(io.BytesIO(content), filename=filename, **options)
    return caught.value


def problem(content: bytes, filename: str = "data.jsonl", **options: Any) -> FileProblem:
    """The only problem of a file."""
    refused = refusal(content, filename, **options)
    assert refused.total == 1, refused.problems
    return refused.problems[0]


SMALL = FileLimits(size=4096, rows=50, row_size=256, array_size=2048, problems=3, preview=2)
