"""What is written inside of artifacts: a model's configuration, the rows of a dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from apps.models.models import Artifact, DatasetVersion
from apps.models.selectors import NoSuchFile, artifact_file, artifact_store
from controlplane.domain.models import ModelShape, read_licence, read_shape
from controlplane.ports.artifacts import BlobMissing

#: Larger files are not read for a page.
LARGEST_TEXT = 1 << 20
#: Rows of one page, and how much of a file is looked through for them at most.
ROWS_SHOWN = 20
MOST_SEARCHED = 32 << 20
#: Characters of one message that a page shows.
LONGEST_SHOWN = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    shape: ModelShape
    #: As its model card names it; empty where it does not.
    licence: str


def model_description(artifact: Artifact | None) -> ModelDescription | None:
    """What the model's own files say of it; None where they are not here."""
    if artifact is None or artifact.removed_at is not None:
        return None
    tree = artifact.tree
    try:
        return _description(tree["config.json"], tree.get("README.md", ""))
    except (KeyError, BlobMissing):
        return None


@lru_cache(maxsize=256)
def _description(config: str, card: str) -> ModelDescription:
    """By digest, so what was read once is right for ever."""
    return ModelDescription(
        shape=read_shape(_json(_text(config))), licence=read_licence(_text(card)) if card else ""
    )


def _text(digest: str) -> str:
    store = artifact_store()
    if store.size(digest) > LARGEST_TEXT:
        return ""
    with store.open(digest) as stream:
        return stream.read().decode(errors="replace")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    #: Within its split, from 1.
    number: int
    messages: tuple[Mapping[str, str], ...]
    #: The other answer of a preference; else empty.
    rejected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsPage:
    rows: tuple[ShownRow, ...]
    #: Where the next page begins: bytes, and the number of the row there. None at the end.
    next_at: tuple[int, int] | None
    #: The search gave up here for now; what follows was not looked at.
    cut: bool


def dataset_rows(
    version: DatasetVersion, *, split: str, text: str = "", offset: int = 0, number: int = 1
) -> RowsPage:
    """Rows of a split from the byte ``offset``, where row ``number`` begins; of those, the ones with the text.

    :raises NoSuchFile: if the split has no rows, or its bytes have been removed.
    :raises BlobMissing: if the store has lost them.
    """
    stream, size = artifact_file(version.artifact, f"{split}.jsonl")
    found: list[ShownRow] = []
    at, row = offset, number
    wanted = text.casefold()
    with stream:
        if not 0 <= offset <= size:
            raise NoSuchFile(f"the rows end at byte {size}, there is nothing at {offset}")
        stream.seek(offset)
        for line in _lines(stream):
            if len(found) == ROWS_SHOWN or at - offset > MOST_SEARCHED:
                return RowsPage(rows=tuple(found), next_at=(at, row), cut=len(found) < ROWS_SHOWN)
            shown = _shown(line, row, wanted)
            if shown is not None:
                found.append(shown)
            at, row = at + len(line), row + 1
    return RowsPage(rows=tuple(found), next_at=None, cut=False)


def _lines(stream: Any) -> Iterator[bytes]:
    yield from stream


def _shown(line: bytes, number: int, wanted: str) -> ShownRow | None:
    """The row, if the text is in it."""
    content = _json(line.decode(errors="replace"))
    row = content if isinstance(content, dict) else {}
    messages, rejected = row.get("messages", []), str(row.get("rejected", ""))
    texts = [str(one.get("content", "")) for one in messages] + [rejected]
    if wanted and not any(wanted in text.casefold() for text in texts):
        return None
    return ShownRow(
        number=number,
        messages=tuple(
            {"role": str(one.get("role", "")), "content": _cut(str(one.get("content", "")))}
            for one in messages
        ),
        rejected=_cut(rejected),
    )


def _cut(content: str) -> str:
    return content if len(content) <= LONGEST_SHOWN else content[:LONGEST_SHOWN] + "…"
