"""The hub port: where models are published. One adapter for each interface, not for each mirror.

Mirrors serve a hub's interface under another address, so an adapter gets its address with every call and
has only the default one of its own. Every call goes through ``controlplane.ports.outbound_http``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from controlplane.domain.common.reasons import ReasonedError
from controlplane.domain.registry.model_hubs import RepositoryListing
from controlplane.ports.outbound_http import OutboundHttpClient


class HubUnreachable(ReasonedError):
    """No usable response; trying again later may help. The message describes the response."""


@runtime_checkable
class ModelHub(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """Display name."""

    @property
    def address(self) -> str:
        """Where it is, unless a mirror is set."""

    @property
    def default_revision(self) -> str: ...

    def listing(
        self,
        outbound: OutboundHttpClient,
        *,
        address: str,
        repository: str,
        revision: str,
        token: str,
    ) -> RepositoryListing:
        """Every file of the repository at that revision.

        :raises HubImportRefused: if there is no such repository or revision, or it may not be read.
        :raises HubUnreachable: if the hub does not answer as it should.
        :raises EgressRefused: if the policy forbids the address.
        """

    def file_url(self, *, address: str, repository: str, commit: str, path: str) -> str:
        """Answers GET with the content, possibly by redirects, and understands ``Range``."""

    def headers(self, *, token: str) -> Mapping[str, str]:
        """For calls to the hub itself; never sent to where a redirect leads."""
