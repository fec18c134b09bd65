"""The read-only inputs of a task: model, dataset, code.

Every error in one is reported here, in one line that names the file and the row, before torch is even imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ninefold_runtime.exit_codes import InvalidTaskInput

ARCHIVE_NAMES = ("code.tar.gz", "code.zip", "code.tar")
_ROLES = frozenset({"system", "user", "assistant"})

Message = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferencePair:
    """A conversation whose last answer was preferred to another one."""

    messages: list[Message]
    #: The other answer.
    rejected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFolders:
    """Where a task reads and writes."""

    work: Path
    inputs: Path

    @classmethod
    def from_environment(cls) -> TaskFolders:
        """:raises InvalidTaskInput: if ``NINEFOLD_WORK`` or ``NINEFOLD_INPUTS`` is not set."""
        values = {}
        for name in ("NINEFOLD_WORK", "NINEFOLD_INPUTS"):
            if not os.environ.get(name):
                raise InvalidTaskInput(f"the variable {name} is not set; it must name a folder")
            values[name] = Path(os.environ[name]).absolute()
        return cls(work=values["NINEFOLD_WORK"], inputs=values["NINEFOLD_INPUTS"])

    @property
    def checkpoints(self) -> Path:
        return self.work / "checkpoints"

    @property
    def outputs(self) -> Path:
        return self.work / "outputs"

    def model(self) -> Path:
        """:raises InvalidTaskInput: if there is no model, or not one in safetensors."""
        folder = self.input_folder("model")
        if not (folder / "config.json").is_file():
            raise InvalidTaskInput("the model has no config.json")
        if not any(folder.glob("*.safetensors")):
            raise InvalidTaskInput(
                "the model has no *.safetensors file; other formats are not loaded"
            )
        return folder

    def archive(self) -> Path | None:
        """The code of a script; None if it has none.

        :raises InvalidTaskInput: if there is a code tree and it does not hold exactly one archive.
        """
        folder = self.inputs / "code"
        if not folder.is_dir():
            return None
        found = [folder / name for name in ARCHIVE_NAMES if (folder / name).is_file()]
        if len(found) != 1:
            names = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
            raise InvalidTaskInput(
                f"the code must be one of {', '.join(ARCHIVE_NAMES)}; found {names}"
            )
        return found[0]

    def rows(self, split: str, *, limit: int | None = None) -> list[list[Message]]:
        """The conversations of a split, at most ``limit`` of them.

        :raises InvalidTaskInput: if the split is missing or empty, or a row is not a conversation that ends
            with an answer.
        """
        conversations = []
        for row in islice(_read_rows(self._split_path(split)), limit):
            conversations.append(_conversation_of_row(row))
        if not conversations:
            raise InvalidTaskInput(f"the split {split!r} has no rows")
        return conversations

    def preferences(self, split: str) -> list[PreferencePair]:
        """The conversations of a split, each with the answer that was liked less.

        :raises InvalidTaskInput: if the split is missing or empty, or a row has no such answer.
        """
        preferences = []
        for row in _read_rows(self._split_path(split)):
            rejected = row.content.get("rejected")
            if not isinstance(rejected, str) or not rejected:
                raise InvalidTaskInput(
                    f"{row.where} has no rejected answer; dpo learns from rows with prompt, chosen "
                    "and rejected"
                )
            preferences.append(
                PreferencePair(messages=_conversation_of_row(row), rejected=rejected)
            )
        if not preferences:
            raise InvalidTaskInput(f"the split {split!r} has no rows")
        return preferences

    def has_split(self, split: str) -> bool:
        path = self.inputs / "dataset" / f"{split}.jsonl"
        return path.is_file() and path.stat().st_size > 0

    def _split_path(self, split: str) -> Path:
        folder = self.input_folder("dataset")
        path = folder / f"{split}.jsonl"
        if not path.is_file():
            found = ", ".join(sorted(each.stem for each in folder.glob("*.jsonl"))) or "none"
            raise InvalidTaskInput(f"the dataset has no split {split!r}; its splits: {found}")
        return path

    def input_folder(self, name: str) -> Path:
        """:raises InvalidTaskInput: if there is no such input."""
        folder = self.inputs / name
        if not folder.is_dir():
            raise InvalidTaskInput(f"the input {name!r} is missing")
        return folder


@dataclass(frozen=True, slots=True, kw_only=True)
class _DatasetRow:
    content: dict[str, Any]
    #: Its file and number, for messages.
    where: str


def _read_rows(path: Path) -> Iterator[_DatasetRow]:
    with path.open(encoding="utf-8") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                where = f"{path.name}, row {number}"
                try:
                    content = json.loads(line)
                except ValueError as error:
                    raise InvalidTaskInput(f"{where} is not JSON: {error}") from error
                yield _DatasetRow(content=content if isinstance(content, dict) else {}, where=where)
        except UnicodeDecodeError as error:
            raise InvalidTaskInput(f"{path.name} is not UTF-8: {error}") from error


def _conversation_of_row(row: _DatasetRow) -> list[Message]:
    where, messages = row.where, row.content.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidTaskInput(f"{where} has no list of messages")
    conversation = []
    for message in messages:
        if (
            not isinstance(message, dict)
            or message.get("role") not in _ROLES
            or not isinstance(message.get("content"), str)
        ):
            raise InvalidTaskInput(
                f"{where} has a message without a known role and a text: {message!r:.80}"
            )
        conversation.append({"role": message["role"], "content": message["content"]})
    if conversation[-1]["role"] != "assistant":
        raise InvalidTaskInput(
            f"{where} ends with {conversation[-1]['role']!r}; the last message must be the assistant's"
        )
    return conversation
