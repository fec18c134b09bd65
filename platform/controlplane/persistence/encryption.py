"""Encryption of secrets at rest, with a rotatable key other than SECRET_KEY."""

from __future__ import annotations

import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from controlplane.domain.common.reasons import Reason


class DecryptionFailed(Exception):
    """None of the configured keys decrypts it."""


def _configured_cipher() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.NINEFOLD_ENCRYPTION_KEYS])


def encrypt(plain: bytes) -> bytes:
    """By the first key."""
    return _configured_cipher().encrypt(plain)


def decrypt(encrypted: bytes | memoryview) -> bytes:
    """By whichever key fits.

    :raises Undecryptable: if none does.
    """
    try:
        return _configured_cipher().decrypt(bytes(encrypted))
    except InvalidToken:
        raise DecryptionFailed(
            Reason(
                "encryption.key.not_found",
                "no key in NINEFOLD_ENCRYPTION_KEY can decrypt this value; add the old "
                "key to the list",
            )
        ) from None


def reencrypt(encrypted: bytes | memoryview) -> bytes | None:
    """The same by the first key; None if that encrypted it already.

    :raises Undecryptable: if no key fits.
    """
    try:
        Fernet(settings.NINEFOLD_ENCRYPTION_KEYS[0]).decrypt(bytes(encrypted))
    except InvalidToken:
        return encrypt(decrypt(encrypted))
    return None


def is_decryptable(encrypted: bytes | memoryview) -> bool:
    """Whether one of the keys that are known now encrypted it."""
    try:
        decrypt(encrypted)
    except DecryptionFailed:
        return False
    return True


def key_fingerprints() -> tuple[str, ...]:
    """Of each key, the first one first: enough to recognise a key, useless to decrypt with."""
    return tuple(
        hashlib.sha256(b"ninefold encryption key " + _key_bytes(key)).hexdigest()[:16]
        for key in settings.NINEFOLD_ENCRYPTION_KEYS
    )


def _key_bytes(key: str | bytes) -> bytes:
    return key.encode() if isinstance(key, str) else key
