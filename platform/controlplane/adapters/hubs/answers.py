"""What both hubs answer alike: JSON with a status, and the words for what went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from controlplane.domain.registry.hubs import HubRefused
from controlplane.ports.hubs import HubUnreachable
from controlplane.ports.outbound import Answer, Outbound, OutboundFailed


def ask(
    outbound: Outbound, url: str, *, headers: Mapping[str, str], about: str
) -> tuple[Any, Answer]:
    """The JSON at the URL, with its answer.

    :raises HubRefused: if there is nothing there, or it may not be read.
    :raises HubUnreachable: if no JSON came.
    """
    try:
        answer = outbound.fetch(url, headers=headers)
    except OutboundFailed as failure:
        raise HubUnreachable(f"the hub cannot be reached: {failure}") from failure
    if answer.status == 404:
        raise HubRefused(f"the hub knows no {about}")
    if answer.status in (401, 403):
        raise HubRefused(
            f"the hub does not let us read {about}; it may not exist, or its owner asks for consent: "
            "give consent on the hub and set a token of that account"
        )
    if answer.status != 200:
        raise HubUnreachable(f"the hub answered {answer.status} when asked about {about}")
    try:
        return json.loads(answer.body), answer
    except (ValueError, RecursionError):
        raise HubUnreachable(f"the hub's answer about {about} is no JSON") from None


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def count(value: Any) -> int:
    """A size; -1, which no check lets pass, where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else -1
