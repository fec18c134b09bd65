"""Checkpoints that can be trusted after a kill at any instant.

::

    checkpoints/checkpoint-200/…           what the trainer writes, file by file
    checkpoints/checkpoint-200/complete    written last: every file's size

A checkpoint counts only if its marker is there and every file still has the size that the marker says.
Older ones are removed after a newer one is complete, never before, so that there is always one to go on
from. The files may be hard links into an earlier attempt's folder: they are replaced or removed, never
written into.

Where folders do not outlive their pod, ``CheckpointStore`` uploads the newest complete checkpoint to the artifact
store, and the next attempt downloads it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ninefold_runtime.exit_codes import InvalidTaskInput, ReportNotDelivered
from ninefold_runtime.report import Reporter
from ninefold_runtime.weight_cache import InputUnavailable, RemoteBlob, WeightCache

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


#: Below the folder of checkpoints, so that files are linked there instead of copied.
_UPLOADING, _DOWNLOADING = "uploading", "downloading"
#: Seconds from a failed upload to the next one, at the least.
_RETRY_SECONDS = 60.0
#: Seconds that the end of a successful training waits for an upload that it has cancelled.
_CANCELLED_WITHIN = 10.0
#: Failures in a row after which a download is given up: about ten minutes.
_DOWNLOAD_ATTEMPTS = 24


class CheckpointStore:
    """The checkpoints of a job in the artifact store; use it as a context manager around the training.

    A thread uploads the newest complete checkpoint, at most once in an interval, from hard links: training goes on
    and may delete the checkpoint meanwhile. A failed upload is a warning, and is tried again with the checkpoint
    that is then the newest. Training that ends with an exception waits until its last checkpoint is stored; one
    that succeeds cancels the upload, because its model is the result.
    """

    def __init__(
        self,
        root: Path,
        *,
        reporter: Reporter,
        keep: int,
        interval_seconds: float | None,
        retry_seconds: float = _RETRY_SECONDS,
    ) -> None:
        """:param root: the folder of the checkpoints.
        :param keep: checkpoints that stay stored.
        :param interval_seconds: from the start of an upload to that of the next one; None uploads and downloads
            nothing.
        """
        self._root = root
        self._reporter = reporter
        self._keep = keep
        self._interval = interval_seconds
        self._retry_seconds = retry_seconds
        self._changed = threading.Condition()
        self._cancelled = threading.Event()
        self._finishing = False
        #: Steps of the newest checkpoint that was saved, and of the newest that is stored.
        self._saved = self._stored = -1
        self._due_at = 0.0
        self._uploader = threading.Thread(
            target=self._upload_forever, name="checkpoints", daemon=True
        )

    @classmethod
    def from_environment(cls, root: Path, *, reporter: Reporter, keep: int) -> Self:
        """:raises InvalidTaskInput: if ``NINEFOLD_CHECKPOINT_UPLOAD_SECONDS`` is not a number."""
        text = os.environ.get("NINEFOLD_CHECKPOINT_UPLOAD_SECONDS", "")
        try:
            interval = float(text) if text else None
        except ValueError as error:
            raise InvalidTaskInput(
                f"NINEFOLD_CHECKPOINT_UPLOAD_SECONDS must be a number of seconds, not {text!r}"
            ) from error
        return cls(root, reporter=reporter, keep=keep, interval_seconds=interval)

    def __enter__(self) -> Self:
        if self._interval is not None:
            self._uploader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._interval is None:
            return
        if kind is None:
            self._cancelled.set()
        with self._changed:
            self._finishing = True
            self._changed.notify_all()
        # After a stop request the grace period limits the wait.
        self._uploader.join(_CANCELLED_WITHIN if kind is None else None)

    def saved(self, *, step: int) -> None:
        """Note that a complete checkpoint is in the folder. Never blocks on the network and never fails."""
        with self._changed:
            self._saved = step
            self._changed.notify_all()

    def download(self) -> None:
        """Put the newest stored checkpoint into the folder, unless a newer one is there.

        :raises ReportNotDelivered: if the control plane does not answer for long.
        :raises InputUnavailable: if the artifact store does not answer for long, or its bytes are wrong. Training
            must not begin again then: the checkpoint may hold the work of days.
        :raises DiskFull: if the disk has no room for it.
        """
        if self._interval is None:
            return
        # What a killed attempt left.
        for name in (_UPLOADING, _DOWNLOADING):
            shutil.rmtree(self._root / name, ignore_errors=True)
        local = newest_checkpoint(self._root)
        found = self._reporter.stored_checkpoint()
        if found.get("step") is None or (local is not None and local.step >= found["step"]):
            return
        self._root.mkdir(parents=True, exist_ok=True)
        received = 0
        while True:
            blobs = {each["path"]: RemoteBlob(**_blob_fields(each)) for each in found["files"]}
            size = sum({blob.digest: blob.size for blob in blobs.values()}.values())
            cache = WeightCache(
                self._root / _DOWNLOADING,
                limit=size,
                hold_seconds=0.0,
                attempts=_DOWNLOAD_ATTEMPTS,
            )
            try:
                cache.fetch(blobs.values(), report=self._reporter.message)
                break
            except InputUnavailable:
                # Its URLs may have expired: get new ones for as long as bytes arrive.
                before, received = received, _bytes_below(cache.root)
                if received <= before:
                    raise
                found = self._reporter.stored_checkpoint()
        self._store_downloaded(cache, blobs, step=found["step"])
        self._stored = found["step"]
        self._reporter.message(f"downloaded the checkpoint at step {found['step']} ({size} bytes)")

    def _store_downloaded(
        self, cache: WeightCache, blobs: Mapping[str, RemoteBlob], *, step: int
    ) -> None:
        complete = cache.root / f"{step}"
        for path, blob in blobs.items():
            target = complete / path
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(cache.path(blob.digest), target)
        mark_checkpoint_complete(complete)
        target = self._root / f"checkpoint-{step}"
        shutil.rmtree(target, ignore_errors=True)
        complete.replace(target)
        shutil.rmtree(cache.root)

    def _upload_forever(self) -> None:
        while self._wait_until_due():
            began_at = time.monotonic()
            self._due_at = began_at + (self._interval or 0.0)
            saved = self._saved
            try:
                step, size = self._upload_newest()
            # A fault of an upload must end neither the training nor the uploads that follow.
            except Exception as error:  # noqa: BLE001
                if self._cancelled.is_set():
                    return
                text = str(error) if isinstance(error, ReportNotDelivered) else repr(error)
                self._reporter.checkpoint_not_uploaded(step=saved, error=text)
                if self._finishing and saved == self._saved:
                    return
                self._due_at = max(self._due_at, time.monotonic() + self._retry_seconds)
            else:
                self._stored = max(saved, step)
                self._reporter.message(
                    f"uploaded the checkpoint at step {step} "
                    f"({size} bytes in {time.monotonic() - began_at:.1f} s)"
                )

    def _upload_newest(self) -> tuple[int, int]:
        """Upload the newest complete checkpoint; return its step and bytes.

        :raises ReportNotDelivered: if it is not stored.
        :raises OSError: if it cannot be read.
        """
        folder = self._root / _UPLOADING
        try:
            newest = self._link_newest(folder)
            size = self._reporter.upload_checkpoint(
                folder, step=newest.step, keep=self._keep, cancelled=self._cancelled
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return newest.step, size

    def _link_newest(self, folder: Path) -> Checkpoint:
        """Link the files of the newest complete checkpoint into the folder, without the marker."""
        while True:
            shutil.rmtree(folder, ignore_errors=True)
            newest = newest_checkpoint(self._root)
            if newest is None:
                raise ReportNotDelivered("no checkpoint is complete")
            try:
                shutil.copytree(newest.folder, folder, copy_function=os.link, symlinks=True)
            except OSError:
                if newest.folder.exists():
                    raise
                # A newer one has replaced it.
                continue
            # The attempt that downloads the checkpoint writes its own.
            (folder / MARKER).unlink()
            return newest

    def _wait_until_due(self) -> bool:
        """Whether there is a checkpoint to upload; False once there will be none."""
        with self._changed:
            while not self._cancelled.is_set():
                pending = self._saved > self._stored
                wait = self._due_at - time.monotonic()
                if self._finishing or (pending and wait <= 0):
                    return pending
                self._changed.wait(wait if pending else None)
        return False


def _blob_fields(file: Mapping[str, Any]) -> dict[str, Any]:
    return {name: file[name] for name in ("digest", "size", "url")}


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
