"""Deliveries of outbound messages: retried until they arrive or are given up.

::

    WAITING ──arrive──▶ ARRIVED ──again──▶ WAITING
       └─────give_up──▶ GIVEN_UP ─again──▶ WAITING

A failed try leaves it waiting, later each time.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from controlplane.domain.common.reasons import ReasonedValueError
from controlplane.domain.common.state_machine import StateMachine


class DeliveryState(StrEnum):
    WAITING = "waiting"
    ARRIVED = "arrived"
    GIVEN_UP = "given_up"


class DeliveryEvent(StrEnum):
    ARRIVE = "arrive"
    GIVE_UP = "give_up"
    AGAIN = "be sent again"


DELIVERY = StateMachine(
    name="delivery",
    initial=DeliveryState.WAITING,
    transitions={
        (DeliveryState.WAITING, DeliveryEvent.ARRIVE): DeliveryState.ARRIVED,
        (DeliveryState.WAITING, DeliveryEvent.GIVE_UP): DeliveryState.GIVEN_UP,
        (DeliveryState.ARRIVED, DeliveryEvent.AGAIN): DeliveryState.WAITING,
        (DeliveryState.GIVEN_UP, DeliveryEvent.AGAIN): DeliveryState.WAITING,
    },
)

#: Pause after the first failed attempt, the second, and so on: about a day in total.
PAUSES = (
    timedelta(seconds=30),
    timedelta(minutes=2),
    timedelta(minutes=10),
    timedelta(minutes=30),
    timedelta(hours=1),
    timedelta(hours=2),
    timedelta(hours=4),
    timedelta(hours=8),
    timedelta(hours=8),
)
#: Each pause is up to this share shorter or longer, so that what failed together is not tried together.
JITTER = 0.2
#: A webhook that gave up on so many deliveries in a row is switched off.
MOST_GIVEN_UP = 3


def delivery_retry_pause(*, tries: int, spread: float) -> timedelta | None:
    """Pause after that number of failed attempts (1, 2, …); None if there is no further one.

    ``spread`` is a random number from 0 to 1.
    """
    if tries < 1 or not 0 <= spread <= 1:
        raise ReasonedValueError(
            "delivery.retry.invalid_arguments",
            "the number of delivery tries must be at least 1 and their time spread 0 to 1, "
            "got {tries} and {spread}",
            tries=tries,
            spread=spread,
        )
    if tries > len(PAUSES):
        return None
    return PAUSES[tries - 1] * (1 + JITTER * (2 * spread - 1))


def is_delivered(status: int) -> bool:
    """Whether the receiver accepted it. A redirect is a failure: it is not followed."""
    return 200 <= status < 300
