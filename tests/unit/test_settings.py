"""What the settings make of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.settings.artifacts import s3_options
from config.settings.environment import (
    allowed_hosts,
    database_settings,
    format_url_host,
    read_currency,
)
from tests.contract.web_servers import make_authority


def test_our_own_processes_are_let_in_whatever_hosts_people_name() -> None:
    hosts = allowed_hosts(named=["models.example"], inside=["http://127.0.0.1:8000"])
    assert hosts == ["models.example", "127.0.0.1"]


@pytest.mark.parametrize(
    ("address", "host"), [("10.0.0.5", "10.0.0.5"), ("::1", "[::1]"), ("web", "web")]
)
def test_an_address_is_allowed_as_a_host_header_has_it(address: str, host: str) -> None:
    url = f"http://{format_url_host(address)}:8000"
    assert allowed_hosts(named=[], inside=[url]) == [host]


def test_a_url_without_a_host_and_a_host_named_twice_add_nothing() -> None:
    assert allowed_hosts(named=["a"], inside=["http://", "http://a:1", "https://a"]) == ["a"]


def test_money_is_counted_in_a_currency_of_three_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NINEFOLD_CURRENCY", raising=False)
    assert read_currency("NINEFOLD_CURRENCY") == "CNY"
    monkeypatch.setenv("NINEFOLD_CURRENCY", "USD")
    assert read_currency("NINEFOLD_CURRENCY") == "USD"
    monkeypatch.setenv("NINEFOLD_CURRENCY", "yuan")
    with pytest.raises(ImproperlyConfigured, match=r"NINEFOLD_CURRENCY is 'yuan'; .* like CNY"):
        read_currency("NINEFOLD_CURRENCY")


def test_the_database_does_not_compile_our_statements_unless_its_url_says_otherwise() -> None:
    said = database_settings("postgresql://user:secret@db.example:5433/ninefold?sslmode=require")
    assert said["OPTIONS"] == {"options": "-c jit=off", "sslmode": "require"}
    other = database_settings("postgresql://db.example/ninefold?options=-c%20jit%3Don")
    assert other["OPTIONS"] == {"options": "-c jit=on"}
    pooler = database_settings("postgresql://pooler.example/ninefold?options=&sslmode=")
    assert pooler["OPTIONS"] == {"options": ""}


def test_the_authorities_of_an_s3_service_are_read_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NINEFOLD_S3_BUCKET", "artifacts")
    assert s3_options(required=True)["ca_file"] == ""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NINEFOLD_S3_CA_FILE", "authority.pem")
    file = make_authority(tmp_path, names=("s3.company",)).certificate
    # Other processes have other working directories.
    assert s3_options(required=True)["ca_file"] == str(file)

    def refused() -> str:
        with pytest.raises(
            ImproperlyConfigured, match=r"NINEFOLD_S3_CA_FILE is 'authority\.pem'"
        ) as seen:
            s3_options(required=True)
        return str(seen.value)

    file.write_bytes(file.read_bytes() + b"#" * 128 * 1024)
    assert "it must have at most 131072: keep only" in refused()
    file.write_text("-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n")
    assert "has no valid PEM certificate" in refused()
    file.write_text("")
    assert "has no valid PEM certificate" in refused()
    file.unlink()
    assert refused().endswith("cannot be read: No such file or directory")
    file.mkdir()
    assert refused().endswith("cannot be read: Is a directory")
