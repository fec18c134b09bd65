"""A real OpenID provider on loopback, and a browser that walks through it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.test import Client
from pytest_django import Settings

from apps.accounts.models import Team
from controlplane.domain.accounts.single_sign_on import GroupGrant, SsoProvider
from controlplane.domain.common.permissions import TeamRole
from tests import factories


@dataclass(frozen=True, kw_only=True)
class SignOn:
    """The provider, and the settings by which it is known."""

    provider: SsoProvider
    settings: Settings

    def user(self, subject: str, **claims: Any) -> None:
        """Make or change somebody at the provider."""
        claims = {"preferred_username": subject, **claims}
        requests.put(f"{self.provider.issuer}/users/{subject}", json=claims, timeout=10)

    def configure(self, **changes: Any) -> SsoProvider:
        changed = replace(self.provider, **changes)
        self.settings.NINEFOLD_OIDC = changed
        return changed

    def agree(self, address: str, subject: str) -> str:
        """Log in at the provider's own page; the address to which it sends the browser back."""
        answer = requests.post(address, data={"sub": subject}, allow_redirects=False, timeout=10)
        assert answer.status_code == 302, answer.text
        return answer.headers["Location"]

    def come_back(self, client: Client, subject: str, *, next_url: str = "") -> str:
        """Where our callback is called, with its query; for what happens there."""
        departed = client.get("/sign-on", {"next": next_url} if next_url else {})
        assert departed.status_code == 302, departed.content
        parts = urlsplit(self.agree(departed["Location"], subject))
        return f"{parts.path}?{parts.query}"

    def log_in(self, client: Client, subject: str, *, next_url: str = "") -> Any:
        return client.get(self.come_back(client, subject, next_url=next_url))


def query_of(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


@contextmanager
def running_provider() -> Iterator[str]:
    """Its issuer. A process of its own: what it warns of is none of ours."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    issuer = f"http://localhost:{port}"
    try:
        _wait_until_it_answers(issuer)
        yield issuer
    finally:
        process.terminate()
        process.wait(timeout=10)


def _wait_until_it_answers(issuer: str) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            requests.get(f"{issuer}/.well-known/openid-configuration", timeout=5).raise_for_status()
        except requests.RequestException:
            assert time.monotonic() < deadline, "the provider did not start"
            time.sleep(0.1)
        else:
            return


@pytest.fixture(scope="session")
def issuer() -> Iterator[str]:
    with running_provider() as issuer:
        yield issuer


@pytest.fixture
def maps(db: None) -> Team:
    return factories.team("maps")


@pytest.fixture
def search(db: None) -> Team:
    return factories.team("search")


@pytest.fixture
def sign_on(issuer: str, settings: Settings, maps: Team, search: Team) -> SignOn:
    provider = SsoProvider(
        issuer=issuer,
        client_id="ninefold",
        client_secret="not checked by this provider",
        name="Acme ID",
        groups=(
            GroupGrant(group="ml", team="maps", role=TeamRole.ENGINEER),
            GroupGrant(group="leads", team="maps", role=TeamRole.ADMINISTRATOR),
            GroupGrant(group="leads", team="search", role=TeamRole.VIEWER),
            GroupGrant(group="ghosts", team="nowhere", role=TeamRole.VIEWER),
        ),
        admin_group="root",
        operator_group="sre",
    )
    settings.NINEFOLD_OIDC = provider
    return SignOn(provider=provider, settings=settings)
