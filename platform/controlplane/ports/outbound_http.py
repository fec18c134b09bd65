"""The outbound port: calls from the product to user-configured addresses.

Everything that calls a URL from a form goes through here, so that one policy
(``controlplane.domain.outbound.egress``) decides where the product may reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from controlplane.domain.common.reasons import ReasonedError


class OutboundFailed(ReasonedError):
    """No complete response; the message names the step that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundResponse:
    """The response, whatever its status. Redirects are responses too: none is followed."""

    status: int
    #: Names in lower case; of several with one name the last.
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: From the first name resolution to the last byte.
    seconds: float
    #: The IP address that was connected to.
    address: str


@runtime_checkable
class OutboundHttpClient(Protocol):
    def check(self, url: str) -> None:
        """Check a URL without calling it; names are not resolved.

        :raises EgressRefused: if the policy forbids it.
        """

    def fetch(
        self, url: str, *, headers: Mapping[str, str] | None = None, largest: int | None = None
    ) -> OutboundResponse:
        """GET, for an answer of at most ``largest`` bytes; without it the adapter's own bound holds.

        :raises EgressRefused: if the policy forbids the URL or an address that it leads to.
        :raises OutboundFailed: if no whole answer came in time, or it was too large.
        """

    def post(
        self, url: str, *, body: bytes, headers: Mapping[str, str] | None = None
    ) -> OutboundResponse:
        """POST, with the same refusals as :meth:`fetch`."""
