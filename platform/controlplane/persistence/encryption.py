"""Encryption of secrets at rest, with a rotatable key other than SECRET_KEY."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.apps import apps
from django.conf import settings
from django.db import models, transaction

from controlplane.domain.common.reasons import ReasonedError


class DecryptionFailed(ReasonedError):
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
            "encryption.key.not_found",
            "no key in NINEFOLD_ENCRYPTION_KEY can decrypt this value; add the old key to the list",
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


def encrypted_fields() -> Iterator[models.BinaryField[Any, Any]]:
    """The columns with secrets: all binary ones."""
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, models.BinaryField):
                yield field


def secrets_reencrypt() -> dict[str, int]:
    """Encrypt every stored secret with the first key; return how many of each column another key had encrypted.

    :raises DecryptionFailed: if no key decrypts one of them.
    """
    counts = {}
    for field in encrypted_fields():
        rows = field.model._default_manager.exclude(**{field.name: None})
        count = 0
        for key in rows.order_by("pk").values_list("pk", flat=True).iterator():
            with transaction.atomic():
                row = rows.select_for_update(no_key=True).filter(pk=key).first()
                stored = getattr(row, field.attname, None)
                sealed = reencrypt(stored) if stored else None
                if sealed is not None:
                    count += rows.filter(pk=key).update(**{field.name: sealed})
        counts[f"{field.model._meta.verbose_name}: {field.verbose_name}"] = count
    return counts


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
