"""The configuration file with its contexts: one server address and token each.

``~/.config/ninefold/config.yaml`` (``XDG_CONFIG_HOME`` and ``NINEFOLD_CONFIG`` are respected) has the mode 0600,
because tokens are stored as they are.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from ninefold_client.errors import ConfigurationError

DEFAULT_CONTEXT = "default"
URL_VARIABLE = "NINEFOLD_URL"
TOKEN_VARIABLE = "NINEFOLD_TOKEN"  # noqa: S105 - the name of a variable
CONTEXT_VARIABLE = "NINEFOLD_CONTEXT"
FILE_VARIABLE = "NINEFOLD_CONFIG"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One server and the credentials for it."""

    url: str
    token: str = field(repr=False)
    #: Gateway keys that the client created, as uid and text, by uid of the team.
    gateway_keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The content of the configuration file."""

    current: str = ""
    contexts: Mapping[str, Context] = field(default_factory=dict)

    def with_context(self, name: str, context: Context) -> Configuration:
        """Return the configuration with that context as the current one."""
        return replace(self, current=name, contexts={**self.contexts, name: context})

    def without_context(self, name: str) -> Configuration:
        """Return the configuration without that context; another one becomes current."""
        contexts = {each: one for each, one in self.contexts.items() if each != name}
        current = next(iter(contexts), "") if self.current == name else self.current
        return Configuration(current=current, contexts=contexts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a client connects with."""

    url: str
    token: str = field(repr=False)
    #: Name of the context that they come from; empty if they come from elsewhere.
    context: str = ""


def configuration_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the configuration file."""
    if given := environ.get(FILE_VARIABLE):
        return Path(given)
    home = environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "ninefold" / "config.yaml"


def load_configuration(path: Path) -> Configuration:
    """Return the stored configuration; an empty one if there is no file.

    :raises ConfigurationError: if others may read the file, or its content is invalid.
    """
    try:
        mode = path.stat().st_mode & 0o777
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Configuration()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    if mode & 0o077:
        raise ConfigurationError(
            f"{path} has mode {mode:04o} and contains tokens; it must be 0600. Run: chmod 600 {path}"
        )
    try:
        document = yaml.safe_load(text) or {}
        contexts = {name: _context(one) for name, one in (document.get("contexts") or {}).items()}
        return Configuration(current=str(document.get("current") or ""), contexts=contexts)
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{path} is not a valid configuration ({error}); remove it and run: ninefold login"
        ) from error


def _context(document: Mapping[str, Any]) -> Context:
    return Context(
        url=str(document["url"]),
        token=str(document["token"]),
        gateway_keys=dict(document.get("gateway_keys") or {}),
    )


def save_configuration(configuration: Configuration, *, path: Path) -> None:
    """Replace the file at once; its mode is 0600 from the start.

    :raises ConfigurationError: if it cannot be written.
    """
    document = {
        "current": configuration.current,
        "contexts": {
            name: {
                "url": one.url,
                "token": one.token,
                **({"gateway_keys": dict(one.gateway_keys)} if one.gateway_keys else {}),
            }
            for name, one in configuration.contexts.items()
        },
    }
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Creates the file with mode 0600.
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yaml.safe_dump(document, file, sort_keys=False)
        Path(draft).replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error


def resolve_credentials(
    *,
    url: str | None = None,
    token: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Credentials:
    """Return address and token: from the arguments, else from the environment, else from the configuration file.

    :raises ConfigurationError: if one of them is missing, or the address is invalid.
    """
    url, token = url or environ.get(URL_VARIABLE), token or environ.get(TOKEN_VARIABLE)
    context = context or environ.get(CONTEXT_VARIABLE)
    if url and token:
        return Credentials(url=valid_url(url), token=token)
    path = configuration_path(environ)
    configuration = load_configuration(path)
    name = context or configuration.current
    stored = configuration.contexts.get(name)
    if context and stored is None:
        known = ", ".join(configuration.contexts) or "none"
        raise ConfigurationError(f"{path} has no context {context!r}; its contexts: {known}")
    if stored is None and not url:
        raise ConfigurationError(
            f"not signed in. Run: ninefold login (or set {URL_VARIABLE} and {TOKEN_VARIABLE})"
        )
    if stored is None or (url and valid_url(url) != stored.url):
        # A stored token is never sent to another server.
        if not token:
            raise ConfigurationError(
                f"there is no token for {url}. Set {TOKEN_VARIABLE}, or run: ninefold login"
            )
        return Credentials(url=valid_url(str(url)), token=token)
    return Credentials(url=stored.url, token=token or stored.token, context=name)


def valid_url(url: str) -> str:
    """Return the address without a trailing slash.

    :raises ConfigurationError: unless it is an http or https address with a host.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not host:
        raise ConfigurationError(
            f"the address {url!r} is invalid; it must be an http or https URL, for example http://127.0.0.1:8000"
        )
    return url.rstrip("/")
