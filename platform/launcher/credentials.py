"""Secrets that the first start makes up, each in a file that only the product's account reads."""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

ADMIN_PASSWORD = "admin_password"  # noqa: S105 - a file's name


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode("ascii")


_GENERATORS: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "secret_key": lambda: secrets.token_urlsafe(48),
        "encryption_key": _fernet_key,
        "gateway_token": lambda: secrets.token_urlsafe(32),
        "metrics_token": lambda: secrets.token_urlsafe(32),
        ADMIN_PASSWORD: lambda: secrets.token_urlsafe(12),
    }
)


def generate_missing(folder: Path) -> frozenset[str]:
    """Write each secret that is not there yet, mode 0600.

    :returns: the names of those written now.
    """
    made = set()
    for name, generate in _GENERATORS.items():
        path = folder / name
        if not path.exists():
            write_private(path, f"{generate()}\n")
            made.add(name)
    return frozenset(made)


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step by one that only this account may read (0600)."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)
