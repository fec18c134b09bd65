"""What the environment says about hubs of models: mirrors and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from config.settings.environment import env


@dataclass(frozen=True, slots=True, kw_only=True)
class HubAccess:
    """How one hub is reached."""

    #: Of a mirror; empty for the hub's own address.
    address: str = ""
    #: Of an account that may read what not everybody may.
    token: str = ""


def hub_access() -> Mapping[str, HubAccess]:
    """By hub: ``NINEFOLD_HUGGINGFACE_URL`` (else ``HF_ENDPOINT``) and ``_TOKEN``, ``NINEFOLD_MODELSCOPE_URL`` and
    ``_TOKEN``.

    :raises ImproperlyConfigured: if an address is none.
    """
    return {
        "huggingface": HubAccess(
            address=_address("NINEFOLD_HUGGINGFACE_URL") or _address("HF_ENDPOINT"),
            token=env.str("NINEFOLD_HUGGINGFACE_TOKEN", default=""),
        ),
        "modelscope": HubAccess(
            address=_address("NINEFOLD_MODELSCOPE_URL"),
            token=env.str("NINEFOLD_MODELSCOPE_TOKEN", default=""),
        ),
    }


def _address(name: str) -> str:
    address: str = env.str(name, default="")
    parts = urlsplit(address)
    if address and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ImproperlyConfigured(
            f"{name} must look like https://mirror.example.com, got {address!r}"
        )
    return address.rstrip("/")
