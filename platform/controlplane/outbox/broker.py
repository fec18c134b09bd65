"""What waits in the broker, which nothing but time depends on."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol

from celery import current_app
from kombu.exceptions import ChannelError, OperationalError

#: News goes to the first, the beat's calls to the second.
QUEUES = ("celery", "beat")
_TIMEOUT_SECONDS = 2


class BrokerSilent(Exception):
    """The broker did not answer; the message says what it or the network said instead."""


def waiting() -> Mapping[str, int]:
    """How many messages no worker has taken, by queue.

    :raises BrokerSilent: if the broker does not answer within :data:`_TIMEOUT_SECONDS`.
    """
    options = {"socket_timeout": _TIMEOUT_SECONDS, "socket_connect_timeout": _TIMEOUT_SECONDS}
    with current_app.connection_for_read(transport_options=options) as connection:
        silent: tuple[type[BaseException], ...] = (
            OSError,
            OperationalError,
            *connection.connection_errors,
            *connection.channel_errors,
        )
        try:
            connection.ensure_connection(max_retries=1, timeout=_TIMEOUT_SECONDS)
            channel: Any = connection.default_channel
            return {queue: _depth(channel, queue) for queue in QUEUES}
        except silent as error:
            raise BrokerSilent(str(error)) from error


class Declared(Protocol):
    """What a broker says of a queue."""

    message_count: int


class Channel(Protocol):
    """What both of our transports offer, though kombu's base class does not declare it."""

    def queue_declare(self, queue: str, *, passive: bool) -> Declared: ...


def _depth(channel: Channel, queue: str) -> int:
    try:
        return channel.queue_declare(queue, passive=True).message_count
    except ChannelError as error:
        if str(error.reply_code) == str(HTTPStatus.NOT_FOUND.value):
            # Redis has no key for an empty list.
            return 0
        raise
