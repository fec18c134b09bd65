"""Secrets at rest."""

from __future__ import annotations

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from controlplane.persistence.encryption import DecryptionFailed, decrypt, encrypt


def test_encrypted_text_can_be_decrypted_and_is_not_readable(settings: Settings) -> None:
    settings.NINEFOLD_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    sealed = encrypt(b"the engine's key")

    assert b"engine" not in sealed
    assert decrypt(sealed) == b"the engine's key"


def test_a_rotated_key_decrypts_while_it_is_configured(settings: Settings) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.NINEFOLD_ENCRYPTION_KEYS = [old]
    sealed = encrypt(b"secret")

    settings.NINEFOLD_ENCRYPTION_KEYS = [new, old]
    assert decrypt(sealed) == b"secret"

    settings.NINEFOLD_ENCRYPTION_KEYS = [new]
    with pytest.raises(DecryptionFailed, match="add the old key"):
        decrypt(sealed)
