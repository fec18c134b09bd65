"""A Dockerfile as its instructions, stage by stage."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_KNOWN = frozenset(
    {"ARG", "CMD", "COPY", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN", "USER"}
    | {"WORKDIR"}
)
_FROM = re.compile(r"(?P<image>\S+)(?: AS (?P<name>[a-z]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    image: str
    #: Empty for the last one.
    name: str
    #: (word, the rest) after FROM, in order.
    instructions: tuple[tuple[str, str], ...]

    def all(self, word: str) -> list[str]:
        return [rest for found, rest in self.instructions if found == word]

    def last(self, word: str) -> str:
        """What holds in the end; empty if it says nothing of it."""
        return (self.all(word) or [""])[-1]


def stages(path: Path) -> list[Stage]:
    """:raises ValueError: if a line is no instruction that we use."""
    found: list[tuple[str, str, list[tuple[str, str]]]] = []
    for line in _lines(path.read_text()):
        word, _, rest = line.partition(" ")
        if word not in _KNOWN or not rest.strip():
            raise ValueError(f"{path.name}: {line!r} is no instruction that we use")
        if word == "FROM":
            parts = _FROM.fullmatch(rest)
            if parts is None:
                raise ValueError(f"{path.name}: {line!r} names no image")
            found.append((parts["image"], parts["name"] or "", []))
        elif found:
            found[-1][2].append((word, rest.strip()))
    return [Stage(image=image, name=name, instructions=tuple(rest)) for image, name, rest in found]


def _lines(text: str) -> list[str]:
    """With what a backslash continues joined, without comments and empty lines."""
    uncommented = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(uncommented))
    return [line.strip() for line in joined.splitlines() if line.strip()]
