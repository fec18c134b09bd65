"""A card or node out of use, from its taking out until it has proved itself.

::

    DRAINING ──emptied──▶ EMPTY ──test──▶ TESTING ──prove─▶ RETURNED
        │                  ▲ │               │
        │                  │ └──release──▶ RETURNED (by a person, with a reason)
        └──release──▶ …    └──────fail───────┘

While it drains, what ran there saves and stops. Nothing is placed on it before it is RETURNED.
"""

from __future__ import annotations

from enum import StrEnum

from controlplane.domain.machines import Machine


class IsolationState(StrEnum):
    DRAINING = "draining"
    EMPTY = "empty"
    TESTING = "testing"
    RETURNED = "returned"


class IsolationEvent(StrEnum):
    EMPTIED = "emptied"
    TEST = "test"
    PROVE = "prove"
    FAIL = "fail"
    RELEASE = "release"


ISOLATION = Machine(
    name="isolation",
    initial=IsolationState.DRAINING,
    arrows={
        (IsolationState.DRAINING, IsolationEvent.EMPTIED): IsolationState.EMPTY,
        (IsolationState.EMPTY, IsolationEvent.TEST): IsolationState.TESTING,
        (IsolationState.TESTING, IsolationEvent.PROVE): IsolationState.RETURNED,
        (IsolationState.TESTING, IsolationEvent.FAIL): IsolationState.EMPTY,
        (IsolationState.DRAINING, IsolationEvent.RELEASE): IsolationState.RETURNED,
        (IsolationState.EMPTY, IsolationEvent.RELEASE): IsolationState.RETURNED,
        (IsolationState.TESTING, IsolationEvent.RELEASE): IsolationState.RETURNED,
    },
)
