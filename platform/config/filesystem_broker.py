"""The filesystem broker of kombu, with atomic message files.

kombu's own transport creates the file of a message and then fills it; a consumer that reads in between gets
an empty message and fails. Here the file gets its final name only after its content is written.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.json import dumps


class AtomicFilesystemChannel(filesystem.Channel):
    """kombu declares no types for this class."""

    # The published types give this parameter two names, one in each class above.
    def _put(  # type: ignore[override]
        self,
        queue: str,
        payload: Any,
        **_more: Any,
    ) -> None:
        """:raises ChannelError: if the folder cannot be written to."""
        # Consumers take files in name order and match the part after the first dot.
        stem = f"{time.monotonic_ns() // 1_000_000}_{uuid.uuid4()}"
        folder = Path(self.data_folder_out)
        partial = folder / f"{stem}.partial"
        try:
            partial.write_bytes(dumps(payload).encode())
            partial.rename(folder / f"{stem}.{queue}.msg")
        except OSError as error:
            raise ChannelError(f"a message cannot be added to {folder}: {error}") from error


class Transport(filesystem.Transport):
    Channel = AtomicFilesystemChannel
