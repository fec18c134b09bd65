"""Plain HTTP where HTTPS is expected, forged proxy headers, and endpoints that should not be open."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from tests import factories

ROOT = Path(__file__).resolve().parents[3]
_NAMES = (
    "SESSION_COOKIE_SECURE",
    "CSRF_COOKIE_SECURE",
    "LANGUAGE_COOKIE_SECURE",
    "SECURE_SSL_REDIRECT",
    "SECURE_REDIRECT_EXEMPT",
    "SECURE_HSTS_SECONDS",
    "SECURE_PROXY_SSL_HEADER",
)
_SCRIPT = f"""
import json
from config.settings import test as settings
print(json.dumps({{name: getattr(settings, name) for name in {_NAMES!r}}}))
"""


def read_settings(**variables: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}", **variables}
    return subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=environ, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def https_values() -> dict[str, Any]:
    """The product's own values where NINEFOLD_HTTPS is on."""
    done = read_settings(NINEFOLD_HTTPS="on", NINEFOLD_TRUSTED_PROXIES="10.0.0.0/8")
    assert done.returncode == 0, done.stderr
    values: dict[str, Any] = json.loads(done.stdout)
    return values


@pytest.fixture
def https(https_values: dict[str, Any], settings: Settings) -> None:
    for name, value in https_values.items():
        setattr(settings, name, tuple(value) if name.endswith("_HEADER") else value)
    settings.NINEFOLD_TRUSTED_PROXIES = (ip_network("10.0.0.0/8"),)


def by_proxy(proto: str) -> Client:
    return Client(REMOTE_ADDR="10.0.0.2", headers={"X-Forwarded-Proto": proto})


def test_without_https_nothing_is_redirected_and_cookies_work_on_loopback() -> None:
    values = json.loads(read_settings(NINEFOLD_HTTPS="off").stdout)
    assert not any(values[name] for name in _NAMES if name != "SECURE_REDIRECT_EXEMPT")


def test_https_without_a_trusted_proxy_is_refused_with_what_to_set() -> None:
    done = read_settings(NINEFOLD_HTTPS="on", NINEFOLD_TRUSTED_PROXIES="")
    assert done.returncode != 0
    assert "NINEFOLD_TRUSTED_PROXIES is empty; list the addresses" in done.stderr


@pytest.mark.django_db
def test_pages_and_rest_are_redirected_to_https(https: None) -> None:
    for path in ("/login", "/", "/api/v1/me", "/admin/"):
        redirected = by_proxy("http").get(path)
        assert redirected.status_code == 301, path
        assert redirected["Location"] == f"https://testserver{path}"


@pytest.mark.django_db
def test_https_pages_have_hsts_and_secure_cookies(https: None) -> None:
    user = factories.user("mei")
    page = by_proxy("https").get("/login")
    assert page.status_code == 200
    assert page["Strict-Transport-Security"] == "max-age=31536000"
    assert page.cookies["csrftoken"]["secure"]
    signed_in = by_proxy("https").post(
        "/login", {"username": user.username, "password": "open sesame"}
    )
    assert signed_in.status_code == 302
    assert signed_in.cookies["sessionid"]["secure"]


@pytest.mark.django_db
def test_a_forwarded_protocol_counts_only_from_a_trusted_proxy(https: None) -> None:
    forged = Client(REMOTE_ADDR="203.0.113.9", headers={"X-Forwarded-Proto": "https"})
    assert forged.get("/login").status_code == 301


@pytest.mark.django_db
def test_probes_gateways_jobs_and_agents_use_plain_http_inside_the_cluster(https: None) -> None:
    inside = Client(REMOTE_ADDR="10.1.2.3")
    assert inside.get("/healthz").status_code == 200
    assert inside.get("/readyz").status_code in (200, 503)
    paths = (
        "/metrics",
        "/internal/gateway/snapshot",
        "/api/v1/attempts/0123456789abcdef/manifest",
        "/api/v1/telemetry/push",
    )
    for path in paths:
        assert inside.get(path).status_code in (401, 403, 404, 405), path


@pytest.mark.django_db
def test_the_schema_and_its_page_need_a_sign_in(settings: Settings) -> None:
    assert Client().get("/api/v1/schema").status_code == 401
    page = Client().get("/api/v1/docs", headers={"Accept": "text/html"})
    assert page.status_code == 302
    assert page["Location"] == "/login?next=/api/v1/docs"
    reader = Client()
    reader.force_login(factories.user("mei"))
    assert reader.get("/api/v1/docs").status_code == 200
    schema = reader.get("/api/v1/schema")
    assert schema.status_code == 200
    assert b"/api/v1/jobs" in schema.content
    settings.NINEFOLD_PUBLIC_SCHEMA = True
    assert Client().get("/api/v1/docs").status_code == 200
    assert Client().get("/api/v1/schema").status_code == 200
