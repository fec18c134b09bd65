"""Output of processes: rotating log files, and prefixed lines on the terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

_RESET = "\x1b[0m"
_DIM = "\x1b[2m"
_BOLD = "\x1b[1m"
#: Distinct on dark and light backgrounds; red is reserved for errors.
_COLOURS = ("\x1b[36m", "\x1b[35m", "\x1b[34m", "\x1b[33m", "\x1b[32m")


class RotatingLog:
    """A log file of at most ``limit`` bytes, with ``backup_count`` earlier ones (``web.log.1`` …).

    A full disk loses lines, never the process that prints them.
    """

    def __init__(self, path: Path, *, limit: int = 8 * 1024 * 1024, backup_count: int = 3) -> None:
        self._path = path
        self._limit = limit
        self._backup_count = backup_count
        self._size = path.stat().st_size if path.exists() else 0

    def write(self, line: str) -> None:
        data = f"{line}\n".encode(errors="replace")
        with contextlib.suppress(OSError):
            if self._size and self._size + len(data) > self._limit:
                self._rotate_files()
            with self._path.open("ab") as file:
                file.write(data)
            self._size += len(data)

    def _rotate_files(self) -> None:
        for number in range(self._backup_count - 1, 0, -1):
            older = self._rotated_path(number)
            if older.exists():
                older.replace(self._rotated_path(number + 1))
        self._path.replace(self._rotated_path(1))
        self._size = 0

    def _rotated_path(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


class TerminalOutput:
    """Terminal output. Colour only on a terminal; a closed one is no error."""

    def __init__(self, stream: TextIO, *, names: Iterable[str] = (), echo: bool = True) -> None:
        self._stream = stream
        #: Whether it is a terminal, not a file or pipe.
        self.is_interactive = stream.isatty()
        self._echo = echo
        known = list(names)
        self._width = max(map(len, known), default=0)
        self._colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(known)}

    def say(self, text: str) -> None:
        """Print a message of the launcher itself."""
        self._write_text(f"{_BOLD}{text}{_RESET}" if self.is_interactive else text)

    def line(self, name: str, text: str) -> None:
        """Print a line of a process, unless ``echo`` is off."""
        if not self._echo:
            return
        label = f"{name:<{self._width}} |"
        if self.is_interactive:
            label = f"{self._colours.get(name, _DIM)}{label}{_RESET}"
        self._write_text(f"{label} {text}")

    def _write_text(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{text}\n")
            self._stream.flush()
