"""News leaves as soon as it is committed, where the broker takes a message; otherwise with the next beat."""

from __future__ import annotations

import logging
import time

from kombu.exceptions import ChannelError, OperationalError

from config.tasks import relay_outbox

log = logging.getLogger(__name__)

#: Seconds for which a broker that failed is left alone: nobody who publishes waits for it again and again.
_LEFT_ALONE = 30.0
#: Between two turns that one process asks for.
_APART = 0.1
#: Of a message that nobody took: the beat has relayed long since.
_EXPIRES = 10.0


class Waker:
    """Asks for a turn of the relay. The beat asks, too: what fails here costs a second and nothing else."""

    def __init__(self) -> None:
        self._not_before = 0.0

    def __call__(self) -> None:
        if time.monotonic() < self._not_before:
            return
        self._not_before = time.monotonic() + _APART
        try:
            relay_outbox.apply_async(expires=_EXPIRES, retry=False)
        except (OperationalError, ChannelError, OSError) as error:
            self._not_before = time.monotonic() + _LEFT_ALONE
            log.warning(
                "the broker takes no message: news waits for the beat", extra={"error": str(error)}
            )
