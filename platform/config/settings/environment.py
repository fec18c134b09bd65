"""Environment variables, read once. Every variable begins with ``NINEFOLD_``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from launcher.configuration import CHECKOUT, default_home

_PACKAGE = Path(__file__).resolve().parents[1]
#: The folder of ``templates`` and ``static``: in an installed package inside ``config``, else the checkout's root.
RESOURCES = _PACKAGE / "resources" if CHECKOUT is None else CHECKOUT

env = environ.Env()

HOME = Path(env.str("NINEFOLD_HOME", default=str(default_home()))).resolve()
_UP = "ninefold-server up" if CHECKOUT is None else "make up"


def read_secret(name: str, *, required: bool = True) -> str:
    """``NINEFOLD_<NAME>``, or the file ``<home>/secrets/<name>`` that ``make up`` generates.

    :returns: empty if there is neither and it is not required.
    :raises ImproperlyConfigured: if there is neither and it is required.
    """
    variable = f"NINEFOLD_{name.upper()}"
    value: str = env.str(variable, default="")
    path = HOME / "secrets" / name
    if not value and path.is_file():
        value = path.read_text().strip()
    if required and not value:
        raise ImproperlyConfigured(
            f"set {variable}, or run `{_UP}` once: it generates {path.name} under {path.parent}"
        )
    return value


def read_comma_separated(variable: str) -> list[str]:
    """The entries of a comma-separated list, without the blanks around them."""
    listed: list[str] = env.list(variable, default=[])
    return [entry.strip() for entry in listed if entry.strip()]


def require_one_of(variable: str, choices: tuple[str, ...]) -> str:
    """Return the value of the variable, by default the first choice.

    :raises ImproperlyConfigured: if it is none of the choices.
    """
    value: str = env.str(variable, default="") or choices[0]
    if value not in choices:
        raise ImproperlyConfigured(f"{variable} is {value!r}; it must be {' or '.join(choices)}")
    return value


def read_currency(variable: str) -> str:
    """Three letters of ISO 4217, by default ``CNY``.

    :raises ImproperlyConfigured: if it is anything else.
    """
    value: str = env.str(variable, default="") or "CNY"
    if not re.fullmatch("[A-Z]{3}", value):
        raise ImproperlyConfigured(
            f"{variable} is {value!r}; it must be three capital letters, like CNY"
        )
    return value


def database_url() -> str:
    """``NINEFOLD_DATABASE_URL``, or what the embedded PostgreSQL wrote when it started."""
    value: str = env.str("NINEFOLD_DATABASE_URL", default="")
    path = HOME / "run" / "database-url"
    if not value and path.is_file():
        value = path.read_text().strip()
    if not value:
        raise ImproperlyConfigured(f"set NINEFOLD_DATABASE_URL, or start the product with `{_UP}`")
    return value


def database_settings(url: str) -> dict[str, Any]:
    """Django's settings for ``postgresql://user:password@host:port/name?option=…``.

    A unix socket is given as ``?host=/folder`` (libpq's own form), since a folder's letters must keep
    their case. JIT compilation is disabled: it takes longer than our statements. ``options`` of the URL, even if
    empty, replace this.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(
            f"NINEFOLD_DATABASE_URL must begin with postgresql://, got {parts.scheme}://"
        )
    url_options = {
        name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()
    }
    options = {"options": "-c jit=off"}
    options |= {name: value for name, value in url_options.items() if value or name == "options"}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": unquote(parts.username or options.pop("user", "")),
        "PASSWORD": unquote(parts.password or options.pop("password", "")),
        "HOST": unquote(parts.hostname or "") or options.pop("host", ""),
        "PORT": str(parts.port or options.pop("port", "")),
        "OPTIONS": options,
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }


def format_url_host(address: str) -> str:
    """Return an address as written in a URL: IPv6 in brackets."""
    return f"[{address}]" if ":" in address else address


def allowed_hosts(*, named: Iterable[str], inside: Iterable[str]) -> list[str]:
    """Return the configured hosts and those of the URLs that our own processes use.

    Without the second, configuring a public host would exclude jobs, gateways and the supervisor.
    """
    own = (urlsplit(url).hostname for url in inside)
    return list(dict.fromkeys((*named, *(format_url_host(host) for host in own if host))))
