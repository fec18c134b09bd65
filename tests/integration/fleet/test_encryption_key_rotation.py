"""After a rotation of keys everything that is kept can be read by the new one alone."""

from __future__ import annotations

from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from pytest_django import Settings

from apps.fleet.models import Cluster
from apps.notifications.models import Webhook
from controlplane.persistence.encryption import decrypt, encrypt
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


def opened() -> list[bytes]:
    kubeconfig = Cluster.objects.get(name="east").kubeconfig
    return [decrypt(kubeconfig or b""), decrypt(Webhook.objects.get().secret)]


def said() -> str:
    out = StringIO()
    call_command("rotate_encryption_key", stdout=out)
    return out.getvalue()


def test_secrets_of_an_old_key_are_reencrypted_once(company: Company, settings: Settings) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.NINEFOLD_ENCRYPTION_KEYS = [old]
    sealed(company, "token")
    settings.NINEFOLD_ENCRYPTION_KEYS = [new, old]

    assert said().startswith("1 kubeconfigs and 1 secrets")
    assert said().startswith("0 kubeconfigs and 0 secrets")

    settings.NINEFOLD_ENCRYPTION_KEYS = [new]
    assert opened() == [b"token", b"token"]


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
    assert opened() == [b"token", b"token"]
