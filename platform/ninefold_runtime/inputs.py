"""The read-only trees that a task was given: model, dataset, code.

Whatever is wrong with one is said here, in one line that names the file and the row, before torch is
even imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ninefold_runtime.exits import BadInput

ARCHIVE_NAMES = ("code.tar.gz", "code.zip", "code.tar")
_ROLES = frozenset({"system", "user", "assistant"})

Message = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where a task reads and writes."""

    work: Path
    inputs: Path

    @classmethod
    def of_process(cls) -> Folders:
        """:raises BadInput: if ``NINEFOLD_WORK`` or ``NINEFOLD_INPUTS`` is not set."""
        values = {}
        for name in ("NINEFOLD_WORK", "NINEFOLD_INPUTS"):
            if not os.environ.get(name):
                raise BadInput(f"the variable {name} is not set; it must name a folder")
            values[name] = Path(os.environ[name]).absolute()
        return cls(work=values["NINEFOLD_WORK"], inputs=values["NINEFOLD_INPUTS"])

    @property
    def checkpoints(self) -> Path:
        return self.work / "checkpoints"

    @property
    def outputs(self) -> Path:
        return self.work / "outputs"

    def model(self) -> Path:
        """:raises BadInput: if there is no model, or not one in safetensors."""
        folder = self._tree("model")
        if not (folder / "config.json").is_file():
            raise BadInput("the model has no config.json")
        if not any(folder.glob("*.safetensors")):
            raise BadInput("the model has no *.safetensors file; other formats are not loaded")
        return folder

    def archive(self) -> Path | None:
        """The code of a script; None if it has none.

        :raises BadInput: if there is a code tree and it does not hold exactly one archive.
        """
        folder = self.inputs / "code"
        if not folder.is_dir():
            return None
        found = [folder / name for name in ARCHIVE_NAMES if (folder / name).is_file()]
        if len(found) != 1:
            names = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
            raise BadInput(f"the code must be one of {', '.join(ARCHIVE_NAMES)}; found {names}")
        return found[0]

    def rows(self, split: str, *, limit: int | None = None) -> list[list[Message]]:
        """The conversations of a split, at most ``limit`` of them.

        :raises BadInput: if the split is missing or empty, or a row is not a conversation that ends
            with an answer.
        """
        folder = self._tree("dataset")
        path = folder / f"{split}.jsonl"
        if not path.is_file():
            found = ", ".join(sorted(each.stem for each in folder.glob("*.jsonl"))) or "none"
            raise BadInput(f"the dataset has no split {split!r}; its splits: {found}")
        conversations = []
        for number, messages in _conversations(path):
            if limit is not None and number > limit:
                break
            conversations.append(messages)
        if not conversations:
            raise BadInput(f"the split {split!r} has no rows")
        return conversations

    def has_split(self, split: str) -> bool:
        path = self.inputs / "dataset" / f"{split}.jsonl"
        return path.is_file() and path.stat().st_size > 0

    def _tree(self, name: str) -> Path:
        folder = self.inputs / name
        if not folder.is_dir():
            raise BadInput(f"the input {name!r} is missing")
        return folder


def _conversations(path: Path) -> Iterator[tuple[int, list[Message]]]:
    with path.open(encoding="utf-8") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                yield number, _conversation(line, where=f"{path.name}, row {number}")
        except UnicodeDecodeError as error:
            raise BadInput(f"{path.name} is not UTF-8: {error}") from error


def _conversation(line: str, *, where: str) -> list[Message]:
    try:
        row: Any = json.loads(line)
    except ValueError as error:
        raise BadInput(f"{where} is not JSON: {error}") from error
    messages = row.get("messages") if isinstance(row, dict) else None
    if not isinstance(messages, list) or not messages:
        raise BadInput(f"{where} has no list of messages")
    kept = []
    for message in messages:
        if (
            not isinstance(message, dict)
            or message.get("role") not in _ROLES
            or not isinstance(message.get("content"), str)
        ):
            raise BadInput(
                f"{where} has a message without a known role and a text: {message!r:.80}"
            )
        kept.append({"role": message["role"], "content": message["content"]})
    if kept[-1]["role"] != "assistant":
        raise BadInput(
            f"{where} ends with {kept[-1]['role']!r}; the last message must be the assistant's"
        )
    return kept
