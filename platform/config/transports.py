"""The filesystem broker, with messages that appear whole.

kombu's own transport creates a message's file and then fills it; a consumer that looks in between reads
nothing and ends with an error. Here the file gets its name only when its content is there.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    """kombu declares no types for this class."""

    # The published types give this parameter two names, one in each class above.
    def _put(  # type: ignore[override]
        self,
        queue: str,
        payload: Any,
        **_more: Any,
    ) -> None:
        """:raises ChannelError: if the folder cannot be written to."""
        # Consumers take files in the order of their names and look at what follows the first dot.
        stem = f"{time.monotonic_ns() // 1_000_000}_{uuid.uuid4()}"
        folder = Path(self.data_folder_out)
        partial = folder / f"{stem}.partial"
        try:
            partial.write_bytes(dumps(payload).encode())
            partial.rename(folder / f"{stem}.{queue}.msg")
        except OSError as error:
            raise ChannelError(f"a message cannot be added to {folder}: {error}") from error


class Transport(filesystem.Transport):
    Channel = Channel
