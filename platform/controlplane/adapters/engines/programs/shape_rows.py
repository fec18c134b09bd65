"""Rewrites the rows of a split in the form that an engine reads: ``shape_rows.py SHAPE SOURCE TARGET``.

A row of a dataset is a conversation, ``{"messages": [{"role", "content"}, …]}``; a preference has a ``rejected``
text beside it, and a text is a conversation in which only the assistant speaks. Shapes::

    pairs    {"messages": prompt, "chosen": message, "rejected": message}
    prompts  {"messages": prompt, "reference": text}
    texts    {"text": text}
    spoken   {"messages": [{"role": "assistant", "content": text}]}

The target appears whole or not at all, so that replicas that share a folder do not disturb each other.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class InvalidRow(Exception):
    """A row does not have the columns of the shape."""


def preference_row(row: Row) -> Row:
    rejected = row.get("rejected")
    if not isinstance(rejected, str) or not rejected:
        raise InvalidRow("has no rejected answer")
    *prompt, chosen = row["messages"]
    answer = {"role": "assistant", "content": rejected}
    return {"messages": prompt, "chosen": chosen, "rejected": answer}


def prompt_row(row: Row) -> Row:
    *prompt, answer = row["messages"]
    if not prompt:
        raise InvalidRow("has no prompt")
    return {"messages": prompt, "reference": answer["content"]}


def text_row(row: Row) -> Row:
    return {"text": "\n\n".join(message["content"] for message in row["messages"])}


def conversation_row(row: Row) -> Row:
    return {"messages": [{"role": "assistant", "content": text_row(row)["text"]}]}


SHAPES = {
    "pairs": preference_row,
    "prompts": prompt_row,
    "texts": text_row,
    "spoken": conversation_row,
}


def write_shaped_rows(name: str, *, source: Path, target: Path) -> int:
    """Write the target; the number of its rows.

    :raises InvalidRow: naming the file and the row.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = target.with_name(f".{target.name}.{os.getpid()}")
    count = 0
    with source.open(encoding="utf-8") as lines, staging.open("w", encoding="utf-8") as out:
        for line in lines:
            count += 1
            try:
                row = SHAPES[name](json.loads(line))
            except (InvalidRow, KeyError, ValueError) as error:
                staging.unlink()
                raise InvalidRow(f"{source.name}, row {count}: {error}") from error
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    staging.replace(target)
    return count


def main() -> int:
    name, source, target = sys.argv[1:]
    try:
        count = write_shaped_rows(name, source=Path(source), target=Path(target))
    except (InvalidRow, OSError) as error:
        print(f"failed: {error}", file=sys.stderr, flush=True)
        return 1
    print(f"{count} rows as {name} in {target}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
