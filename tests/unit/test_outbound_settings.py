"""What the environment says about the outside is read strictly: a slip opens nothing by accident."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.settings import outbound


def test_by_default_nothing_but_https_to_the_public_internet_and_no_mail() -> None:
    policy = outbound.egress_policy()
    assert policy.schemes == {"https"}
    assert policy.ports == {443, 8443}
    assert (policy.allowed_hosts, policy.allowed_networks) == ((), ())
    assert outbound.egress_proxy() == ""
    assert outbound.mail_server().sender == ""


def test_http_is_opened_with_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINEFOLD_EGRESS_SCHEMES", "https, http")
    monkeypatch.setenv("NINEFOLD_EGRESS_ALLOW", "*.example.com, 10.1.0.0/16")
    policy = outbound.egress_policy()
    assert policy.ports == {80, 443, 8443}
    assert policy.allowed_hosts == ("*.example.com",)
    assert [str(one) for one in policy.allowed_networks] == ["10.1.0.0/16"]


def test_a_mail_server_is_read_from_its_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINEFOLD_EMAIL_URL", "smtp+tls://robot:p%40ss@mail.example.com:587")
    monkeypatch.setenv("NINEFOLD_EMAIL_FROM", "Ninefold <ninefold@example.com>")
    server = outbound.mail_server()
    assert (server.host, server.port, server.user, server.password) == (
        "mail.example.com",
        587,
        "robot",
        "p@ss",
    )
    assert (server.starttls, server.tls) == (True, False)


@pytest.mark.parametrize(
    ("variable", "value", "read"),
    [
        ("NINEFOLD_EGRESS_ALLOW", "10.0.0.0/99", outbound.egress_policy),
        ("NINEFOLD_EGRESS_DENY", "*", outbound.egress_policy),
        ("NINEFOLD_EGRESS_SCHEMES", "gopher", outbound.egress_policy),
        ("NINEFOLD_EGRESS_PORTS", "https", outbound.egress_policy),
        ("NINEFOLD_EGRESS_PROXY", "proxy:3128", outbound.egress_proxy),
        ("NINEFOLD_EMAIL_URL", "mail.example.com", outbound.mail_server),
        ("NINEFOLD_EMAIL_URL", "smtp://mail.example.com", outbound.mail_server),
        ("NINEFOLD_PUBLIC_URL", "ninefold", lambda: outbound.public_url("")),
    ],
)
def test_what_is_wrong_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, read: object
) -> None:
    monkeypatch.setenv(variable, value)
    assert callable(read)
    with pytest.raises(ImproperlyConfigured, match=r"NINEFOLD_E|NINEFOLD_PUBLIC"):
        read()
