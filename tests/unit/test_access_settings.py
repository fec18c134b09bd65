"""What the environment says about who may come in."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.settings.access import oidc_provider, read_bounded_integer, read_networks

OIDC = {
    "NINEFOLD_OIDC_ISSUER": "https://id.acme.example/",
    "NINEFOLD_OIDC_CLIENT_ID": "ninefold",
    "NINEFOLD_OIDC_CLIENT_SECRET": "hush",
}


@pytest.fixture
def oidc(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in OIDC.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_without_an_issuer_there_is_no_provider() -> None:
    assert oidc_provider() is None


def test_a_provider_is_read_with_sensible_defaults(oidc: pytest.MonkeyPatch) -> None:
    oidc.setenv("NINEFOLD_OIDC_GROUPS", '{"ml": "maps:engineer"}')
    provider = oidc_provider()
    assert provider is not None
    assert provider.issuer == "https://id.acme.example"
    assert provider.scopes == ("openid", "profile", "email")
    assert not provider.required
    assert [grant.team for grant in provider.groups] == ["maps"]


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("NINEFOLD_OIDC_ISSUER", "http://id.acme.example", "must begin with https://"),
        ("NINEFOLD_OIDC_CLIENT_ID", "", "set NINEFOLD_OIDC_CLIENT_ID"),
        ("NINEFOLD_OIDC_CLIENT_SECRET", "", "set NINEFOLD_OIDC_CLIENT_SECRET"),
        ("NINEFOLD_OIDC_SCOPES", "profile", "must contain openid"),
        ("NINEFOLD_OIDC_GROUPS", "{", "NINEFOLD_OIDC_GROUPS: .* not valid JSON"),
    ],
)
def test_a_provider_that_cannot_work_is_refused_at_once(
    oidc: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    oidc.setenv(variable, value)
    with pytest.raises(ImproperlyConfigured, match=message):
        oidc_provider()


def test_proxies_are_addresses_or_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXIES", "10.0.0.7, 192.168.0.0/24,::1")
    assert read_networks("PROXIES") == tuple(
        ip_network(one) for one in ("10.0.0.7", "192.168.0.0/24", "::1")
    )
    monkeypatch.setenv("PROXIES", "10.0.0.7/8")
    with pytest.raises(ImproperlyConfigured, match="host bits"):
        read_networks("PROXIES")


def test_a_number_below_its_least_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_bounded_integer("FAILURES", default=5, least=1) == 5
    monkeypatch.setenv("FAILURES", "0")
    with pytest.raises(ImproperlyConfigured, match="FAILURES is 0; it must be 1 or more"):
        read_bounded_integer("FAILURES", default=5, least=1)
