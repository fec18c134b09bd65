"""Secrets at rest."""

from __future__ import annotations

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from controlplane.persistence.encryption import Undecryptable, decrypt, encrypt


def test_what_is_sealed_can_be_opened_and_does_not_show(settings: Settings) -> None:
    settings.NINEFOLD_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    sealed = encrypt(b"the engine's key")

    assert b"engine" not in sealed
    assert decrypt(sealed) == b"the engine's key"


def test_a_rotated_key_still_opens_what_it_sealed_while_it_is_listed(settings: Settings) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.NINEFOLD_ENCRYPTION_KEYS = [old]
    sealed = encrypt(b"secret")

    settings.NINEFOLD_ENCRYPTION_KEYS = [new, old]
    assert decrypt(sealed) == b"secret"

    settings.NINEFOLD_ENCRYPTION_KEYS = [new]
    with pytest.raises(Undecryptable, match="add the old key"):
        decrypt(sealed)
