"""How traffic moves to a new revision: pure functions from a deployment's weights in a route to its new ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Backend = TypeVar("Backend")


def shift_all_traffic_at_once(weights: Mapping[Backend, int], *, to: Backend) -> dict[Backend, int]:
    """Give one backend all of the traffic.

    :param weights: of the backends of one deployment in one route, relative to the other backends of the route.
    :param to: the backend of the new revision, whose replicas are ready.
    :returns: the weights of the backends that keep some; the others leave the route.
    """
    return {to: sum(weights.values())}
