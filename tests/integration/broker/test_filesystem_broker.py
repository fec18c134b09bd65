"""The filesystem transport under a writer and a reader at once."""

from __future__ import annotations

import threading
from pathlib import Path
from queue import Empty
from typing import Any

from kombu import Connection

from config.filesystem_broker import Transport

MESSAGES = 3000


def test_a_reader_never_meets_a_message_that_is_half_written(tmp_path: Path) -> None:
    options = {
        "data_folder_in": str(tmp_path),
        "data_folder_out": str(tmp_path),
        "control_folder": str(tmp_path / "control"),
    }
    with (
        Connection(transport=Transport, transport_options=options) as writing,
        Connection(transport=Transport, transport_options=options) as reading,
    ):
        # A channel's own halves: the public ones wait long enough between them to hide the fault.
        sender: Any = writing.channel()
        receiver: Any = reading.channel()

        def write() -> None:
            for number in range(MESSAGES):
                sender._put("work", {"number": number})

        writer = threading.Thread(target=write)
        writer.start()
        seen: list[int] = []
        while len(seen) < MESSAGES:
            alive = writer.is_alive()
            try:
                seen.append(receiver._get("work")["number"])
            except Empty:
                assert alive, f"{MESSAGES - len(seen)} messages were lost"
        writer.join()

    assert sorted(seen) == list(range(MESSAGES))
