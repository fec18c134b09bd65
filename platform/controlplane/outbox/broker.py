"""Queue depths of the message broker."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol

from celery import current_app
from kombu.exceptions import ChannelError, OperationalError

#: Queues of outbox messages and of the beat.
QUEUES = ("celery", "beat")
_TIMEOUT_SECONDS = 2


class BrokerUnreachable(Exception):
    """The broker did not answer; the message has the error."""


def celery_queue_depths() -> Mapping[str, int]:
    """Return the number of messages that no worker has taken, by queue.

    :raises BrokerUnreachable: if the broker does not answer within :data:`_TIMEOUT_SECONDS`.
    """
    options = {"socket_timeout": _TIMEOUT_SECONDS, "socket_connect_timeout": _TIMEOUT_SECONDS}
    with current_app.connection_for_read(transport_options=options) as connection:
        unreachable: tuple[type[BaseException], ...] = (
            OSError,
            OperationalError,
            *connection.connection_errors,
            *connection.channel_errors,
        )
        try:
            connection.ensure_connection(max_retries=1, timeout=_TIMEOUT_SECONDS)
            channel: Any = connection.default_channel
            return {queue: _queue_depth(channel, queue) for queue in QUEUES}
        except unreachable as error:
            raise BrokerUnreachable(str(error)) from error


class QueueDeclaration(Protocol):
    """The reply of a broker to a queue declaration."""

    message_count: int


class BrokerChannel(Protocol):
    """A method of both of our transports that kombu's base class does not declare."""

    def queue_declare(self, queue: str, *, passive: bool) -> QueueDeclaration: ...


def _queue_depth(channel: BrokerChannel, queue: str) -> int:
    try:
        return channel.queue_declare(queue, passive=True).message_count
    except ChannelError as error:
        if str(error.reply_code) == str(HTTPStatus.NOT_FOUND.value):
            # Redis has no key for an empty list.
            return 0
        raise
