"""Python SDK of Ninefold: a client of the REST API, its errors and its configuration file."""

from __future__ import annotations

from ninefold_client.client import Client
from ninefold_client.errors import (
    ApiError,
    ConfigurationError,
    ConnectionFailed,
    FieldError,
    NinefoldError,
)

__all__ = [
    "ApiError",
    "Client",
    "ConfigurationError",
    "ConnectionFailed",
    "FieldError",
    "NinefoldError",
]
