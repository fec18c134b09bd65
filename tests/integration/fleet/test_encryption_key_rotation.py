"""After a rotation of keys everything that is kept can be read by the new one alone."""

from __future__ import annotations

from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from pytest_django import Settings

from apps.fleet.models import Cluster
from apps.notifications.models import Webhook
from apps.telemetry.models import Source
from controlplane.persistence.encryption import decrypt, encrypt, encrypted_fields
from tests.integration.company import Company


def sealed(company: Company, secret: str) -> None:
    Cluster.objects.create(name="east", kind="fake", kubeconfig=encrypt(secret.encode()))
    Webhook.objects.create(
        team=company.team,
        name="hook",
        url="https://hooks.example.com/",
        kinds=["job.failed"],
        secret=encrypt(secret.encode()),
    )

    Source.objects.create(
        name="scraped",
        cluster=company.cluster_row,
        kind="prometheus",
        credential=encrypt(secret.encode()),
    )


def opened() -> list[bytes]:
    stored = (
        Cluster.objects.get(name="east").kubeconfig,
        Webhook.objects.get().secret,
        Source.objects.get(name="scraped").credential,
    )
    return [decrypt(one or b"") for one in stored]


def said() -> str:
    out = StringIO()
    call_command("rotate_encryption_key", stdout=out)
    return out.getvalue()


def test_secrets_of_an_old_key_are_reencrypted_once(company: Company, settings: Settings) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.NINEFOLD_ENCRYPTION_KEYS = [old]
    sealed(company, "token")
    settings.NINEFOLD_ENCRYPTION_KEYS = [new, old]

    first, second = said().splitlines(), said().splitlines()
    assert len(first) == len(list(encrypted_fields()))
    assert {line for line in first if ": 1 encrypted" in line} == {
        f"{column}: 1 encrypted with the first key"
        for column in ("cluster: kubeconfig", "webhook: secret", "source: credential")
    }
    assert all(": 0 encrypted" in line for line in second)

    settings.NINEFOLD_ENCRYPTION_KEYS = [new]
    assert opened() == [b"token"] * 3


def test_a_lost_key_is_reported_and_nothing_is_overwritten(
    company: Company, settings: Settings
) -> None:
    old = Fernet.generate_key().decode()
    settings.NINEFOLD_ENCRYPTION_KEYS = [old]
    sealed(company, "token")
    settings.NINEFOLD_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    with pytest.raises(CommandError, match="add the old key"):
        said()

    settings.NINEFOLD_ENCRYPTION_KEYS = [old]
    assert opened() == [b"token"] * 3
