"""Checkpoints that can be trusted after a kill at any instant.

::

    checkpoints/checkpoint-200/…           what the trainer writes, file by file
    checkpoints/checkpoint-200/complete    written last: every file's size

A checkpoint counts only if its marker is there and every file still has the size that the marker says.
Older ones are removed after a newer one is complete, never before, so that there is always one to go on
from. The files may be hard links into an earlier attempt's folder: they are replaced or removed, never
written into.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

MARKER = "complete"
_NAME = re.compile(r"checkpoint-(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    step: int
    folder: Path


def newest_checkpoint(root: Path) -> Checkpoint | None:
    """The complete checkpoint with the highest step; None if there is none."""
    complete = [each for each in _complete_checkpoints(root) if _is_complete(each.folder)]
    return max(complete, key=lambda each: each.step, default=None)


def mark_checkpoint_complete(folder: Path) -> None:
    """Mark the folder as complete, once its files are on the disk."""
    sizes = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as content:
            os.fsync(content.fileno())
        sizes[path.relative_to(folder).as_posix()] = path.stat().st_size
    partial = folder / f"{MARKER}.partial"
    with partial.open("w", encoding="utf-8") as marker:
        json.dump(sizes, marker)
        marker.flush()
        os.fsync(marker.fileno())
    partial.replace(folder / MARKER)


def delete_incomplete_checkpoints(root: Path) -> tuple[str, ...]:
    """Remove what a killed attempt left half-written; return their names."""
    gone = [each.folder for each in _complete_checkpoints(root) if not _is_complete(each.folder)]
    for folder in gone:
        shutil.rmtree(folder)
    return tuple(folder.name for folder in gone)


def delete_older_checkpoints(root: Path, *, count: int) -> None:
    """Remove all but the ``count`` newest complete checkpoints."""
    complete = sorted(
        (each for each in _complete_checkpoints(root) if _is_complete(each.folder)),
        key=lambda each: each.step,
    )
    for each in complete[: max(0, len(complete) - count)]:
        shutil.rmtree(each.folder)


def _complete_checkpoints(root: Path) -> list[Checkpoint]:
    if not root.is_dir():
        return []
    return [
        Checkpoint(step=int(match[1]), folder=folder)
        for folder in root.iterdir()
        if (match := _NAME.fullmatch(folder.name)) and folder.is_dir() and not folder.is_symlink()
    ]


def _is_complete(folder: Path) -> bool:
    try:
        sizes = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        return isinstance(sizes, dict) and all(
            (folder / name).stat().st_size == size for name, size in sizes.items()
        )
    except (OSError, ValueError):
        return False
