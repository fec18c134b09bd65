"""The gateway's configuration, read once from the environment."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from http_server.connection_limits import ConnectionLimits, InvalidSetting, read_number

MIB = 1024 * 1024

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TRUE = frozenset({"true", "on", "ok", "y", "yes", "1"})
_SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    #: URL of the control plane, without a trailing slash.
    control_url: str
    #: The secret shared with the control plane: it authenticates the gateway and signs snapshots.
    token: str
    #: Distinguishes this gateway's usage batches from those of every other one.
    gateway_id: str
    #: Private to this gateway: the stored snapshot and the usage journal.
    folder: Path
    host: str = "127.0.0.1"
    port: int = 8001
    #: Web origins whose pages may call the gateway directly; empty switches CORS off.
    origins: frozenset[str] = frozenset()
    connect_seconds: float = 5.0
    #: From sending a streamed request to the first byte of its stream. A response that is not
    #: streamed has no byte before it is complete, so only ``total_seconds`` applies to it.
    first_byte_seconds: float = 120.0
    total_seconds: float = 600.0
    #: The bearer token for ``/metrics``; empty: none is accepted.
    metrics_token: str = ""
    #: Whether ``/metrics`` is served to loopback without a token; off where jobs run on this machine.
    metrics_on_loopback: bool = False
    #: How long open requests may continue after SIGTERM.
    drain_seconds: float = 20.0
    max_body_bytes: int = 32 * MIB
    #: How long a client may take to send a body that did not come with its headers.
    body_seconds: float = 60.0
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    #: Maximum size of the journal while the control plane is unreachable.
    usage_max_bytes: int = 256 * MIB

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> GatewaySettings:
        """The settings that the ``NINEFOLD_*`` variables describe.

        Creates the gateway's folder and, where ``NINEFOLD_GATEWAY_ID`` is unset, a persistent id in
        it.

        :raises InvalidSetting: if a variable is missing or has a value that cannot be used.
        """
        home = Path(environ.get("NINEFOLD_HOME") or "var").resolve()
        gateway_id = _read_or_create_gateway_id(environ, home / "run" / "gateway")
        folder = home / "run" / "gateway" / gateway_id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(
            control_url=_control_url(environ),
            token=_read_token_setting(environ, home / "secrets" / "gateway_token"),
            gateway_id=gateway_id,
            folder=folder,
            host=environ.get("NINEFOLD_BIND") or "127.0.0.1",
            port=int(read_number(environ, "NINEFOLD_GATEWAY_PORT", 8001, least=0)),
            origins=_allowed_origins(environ),
            metrics_token=_metrics_token(environ, home / "secrets" / "metrics_token"),
            metrics_on_loopback=not _read_boolean_setting(
                environ, "NINEFOLD_LOCAL_CLUSTER", default=True
            ),
            connect_seconds=read_number(environ, "NINEFOLD_GATEWAY_CONNECT_SECONDS", 5.0),
            first_byte_seconds=read_number(environ, "NINEFOLD_GATEWAY_FIRST_BYTE_SECONDS", 120.0),
            total_seconds=read_number(environ, "NINEFOLD_GATEWAY_TOTAL_SECONDS", 600.0),
            drain_seconds=read_number(environ, "NINEFOLD_GATEWAY_DRAIN_SECONDS", 20.0),
            max_body_bytes=int(
                read_number(environ, "NINEFOLD_GATEWAY_MAX_BODY_BYTES", 32 * MIB, least=1024)
            ),
            body_seconds=read_number(environ, "NINEFOLD_GATEWAY_BODY_SECONDS", 60.0),
            connections=ConnectionLimits.from_environment(environ),
            usage_max_bytes=int(
                read_number(environ, "NINEFOLD_GATEWAY_USAGE_MAX_BYTES", 256 * MIB, least=MIB)
            ),
        )


def _control_url(environ: Mapping[str, str]) -> str:
    url = environ.get("NINEFOLD_CONTROL_URL") or "http://127.0.0.1:8000"
    if not re.fullmatch(r"https?://[^/\s?#]+(/[^\s?#]*)?", url):
        raise InvalidSetting(
            f"NINEFOLD_CONTROL_URL is {url!r}; it must look like http://127.0.0.1:8000"
        )
    return url.rstrip("/")


def _read_token_setting(environ: Mapping[str, str], file: Path) -> str:
    token = environ.get("NINEFOLD_GATEWAY_TOKEN", "").strip()
    source = "NINEFOLD_GATEWAY_TOKEN"
    if not token:
        source = str(file)
        try:
            token = file.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            raise InvalidSetting(
                f"no gateway token: set NINEFOLD_GATEWAY_TOKEN or write the token into {file}"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidSetting(f"the gateway token in {file} cannot be read: {error}") from error
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise InvalidSetting(
            f"the gateway token from {source} must be at least {_SHORTEST_TOKEN} printable "
            f"ASCII characters; it has {len(token)} characters"
        )
    return token


def _metrics_token(environ: Mapping[str, str], file: Path) -> str:
    token = environ.get("NINEFOLD_METRICS_TOKEN", "").strip()
    try:
        return token or file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"the metrics token in {file} cannot be read: {error}") from error


def _read_boolean_setting(environ: Mapping[str, str], name: str, *, default: bool) -> bool:
    """A boolean, parsed as django-environ does in the web."""
    text = environ.get(name, "").strip().lower()
    return text in _TRUE if text else default


def _read_or_create_gateway_id(environ: Mapping[str, str], folder: Path) -> str:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    chosen = environ.get("NINEFOLD_GATEWAY_ID", "").strip()
    source = "NINEFOLD_GATEWAY_ID"
    if not chosen:
        file = folder / "id"
        source = str(file)
        try:
            # Exclusive creation: two gateways started at once agree on the first one's id, and the
            # folder's lock then refuses the second.
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            chosen = file.read_text(encoding="utf-8").strip()
        else:
            chosen = f"gateway-{secrets.token_hex(6)}"
            with os.fdopen(descriptor, "w", encoding="utf-8") as created:
                created.write(f"{chosen}\n")
    if not _ID.fullmatch(chosen):
        raise InvalidSetting(
            f"the gateway id from {source} is {chosen!r}; it must be 1 to 64 letters, digits, "
            "dots, dashes or underscores and start with a letter or a digit"
        )
    return chosen


def _allowed_origins(environ: Mapping[str, str]) -> frozenset[str]:
    origins = frozenset(
        part.strip()
        for part in environ.get("NINEFOLD_GATEWAY_ORIGINS", "").split(",")
        if part.strip()
    )
    for origin in origins:
        if not re.fullmatch(r"https?://[^/\s*]+", origin):
            raise InvalidSetting(
                f"NINEFOLD_GATEWAY_ORIGINS names {origin!r}; each origin must be scheme and host, "
                "such as https://chat.example.com, without a path or a wildcard"
            )
    return origins
