"""Secrets at rest: encrypted by a key that is not SECRET_KEY and can be rotated."""

from __future__ import annotations

import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class Undecryptable(Exception):
    """None of the keys that are known now encrypted it."""


def _cipher() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.NINEFOLD_ENCRYPTION_KEYS])


def encrypt(plain: bytes) -> bytes:
    """By the first key."""
    return _cipher().encrypt(plain)


def decrypt(sealed: bytes | memoryview) -> bytes:
    """By whichever key fits.

    :raises Undecryptable: if none does.
    """
    try:
        return _cipher().decrypt(bytes(sealed))
    except InvalidToken:
        raise Undecryptable(
            "none of the keys in NINEFOLD_ENCRYPTION_KEY decrypts this; add the old key to the list"
        ) from None


def sealed_again(sealed: bytes | memoryview) -> bytes | None:
    """The same by the first key; None if that encrypted it already.

    :raises Undecryptable: if no key fits.
    """
    try:
        Fernet(settings.NINEFOLD_ENCRYPTION_KEYS[0]).decrypt(bytes(sealed))
    except InvalidToken:
        return encrypt(decrypt(sealed))
    return None


def decryptable(sealed: bytes | memoryview) -> bool:
    """Whether one of the keys that are known now encrypted it."""
    try:
        decrypt(sealed)
    except Undecryptable:
        return False
    return True


def fingerprints() -> tuple[str, ...]:
    """Of each key, the first one first: enough to recognise a key, useless to decrypt with."""
    return tuple(
        hashlib.sha256(b"ninefold encryption key " + _bytes(key)).hexdigest()[:16]
        for key in settings.NINEFOLD_ENCRYPTION_KEYS
    )


def _bytes(key: str | bytes) -> bytes:
    return key.encode() if isinstance(key, str) else key
