"""The HTTP client of one server: credentials, retries, errors and pages."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self
from uuid import uuid4

import httpx

from ninefold_client.configuration import Credentials, resolve_credentials
from ninefold_client.errors import ConnectionFailed, api_error_of_response

API_PREFIX = "/api/v1"
IDEMPOTENCY_KEY = "Idempotency-Key"
#: Largest page of the server.
PAGE_SIZE = 200
_IDEMPOTENT_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_RETRIED_STATUSES = frozenset({429, 502, 503, 504})
_RETRIED_ERRORS = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.ReadError,
    httpx.ReadTimeout,
    httpx.RemoteProtocolError,
    httpx.WriteError,
)

Query = Mapping[str, str | int | bool | list[str]]


@cache
def trusted_certificates() -> ssl.SSLContext:
    """The certificates that httpx trusts; loading them takes longer than most requests."""
    return httpx.create_ssl_context()


class RetryTransport(httpx.BaseTransport):
    """Repeats idempotent requests after connection errors and the statuses 429, 502, 503 and 504.

    A POST is idempotent if it has an ``Idempotency-Key``. Waits for ``Retry-After``, else 0.25 s, 0.5 s, 1 s …
    """

    def __init__(
        self,
        transport: httpx.BaseTransport,
        *,
        retries: int = 4,
        longest_wait: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport = transport
        self._retries = retries
        self._longest_wait = longest_wait
        self._sleep = sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        retries = self._retries if _is_idempotent(request) else 0
        for attempt in range(retries + 1):
            wait = 0.25 * 2**attempt * random.uniform(0.75, 1.25)  # noqa: S311 - spreads clients
            try:
                response = self._transport.handle_request(request)
            except _RETRIED_ERRORS:
                if attempt == retries:
                    raise
            else:
                if response.status_code not in _RETRIED_STATUSES or attempt == retries:
                    return response
                requested = response.headers.get("Retry-After", "")
                wait = float(requested) if requested.isdecimal() else wait
                if wait > self._longest_wait:
                    return response
                response.close()
            self._sleep(min(wait, self._longest_wait))
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        self._transport.close()


def _is_idempotent(request: httpx.Request) -> bool:
    return request.method in _IDEMPOTENT_METHODS or IDEMPOTENCY_KEY in request.headers


class Client:
    """A client of one Ninefold server. Use it as a context manager, or close it.

    Functions of ``ninefold_client.generated.api`` take it as ``client``; its own methods return JSON values.

    :param url: address of the server; default ``NINEFOLD_URL``, then the configuration file.
    :param token: personal token; default ``NINEFOLD_TOKEN``, then the configuration file.
    :param context: context of the configuration file; default ``NINEFOLD_CONTEXT``, then the current one.
    :param timeout: seconds without progress until a request fails.
    :raises ConfigurationError: if address or token is missing or invalid.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        context: str | None = None,
        timeout: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.credentials: Credentials = resolve_credentials(url=url, token=token, context=context)
        #: Whether the server only validates what POST, PATCH, PUT and DELETE would do.
        self.dry_run = False
        self._http = httpx.Client(
            base_url=self.credentials.url,
            headers={
                "Authorization": f"Bearer {self.credentials.token}",
                "Accept": "application/json",
                "User-Agent": f"ninefold-client/{_package_version()}",
            },
            timeout=timeout,
            transport=RetryTransport(
                transport or httpx.HTTPTransport(verify=trusted_certificates())
            ),
            event_hooks={"response": [_raise_for_problem]},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def as_dry_run(self) -> Self:
        """Return a client of the same connections with :attr:`dry_run`.

        The server refuses the operations that do not support it.
        """
        found = copy(self)
        found.dry_run = True
        return found

    def get_httpx_client(self) -> httpx.Client:
        """Return the HTTP client, which raises ``ApiError`` for every error response."""
        return self._http

    def get(self, path: str, **query: str | int | bool | list[str]) -> Any:
        """Return the JSON value at a path below ``/api/v1``.

        :raises ApiError: if the server refuses the request.
        :raises ConnectionFailed: if it cannot be reached.
        """
        return self._json("GET", path, query=query)

    def post(
        self, path: str, body: Mapping[str, Any] | None = None, **query: str | int | bool
    ) -> Any:
        """Send a POST with an idempotency key; raises as :meth:`get`."""
        return self.request("POST", path, body=body or {}, query=query)

    def patch(self, path: str, body: Mapping[str, Any], **query: str | int | bool) -> Any:
        """Send a PATCH; raises as :meth:`get`."""
        return self._json("PATCH", path, body=body, query=query)

    def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a PUT; raises as :meth:`get`."""
        return self._json("PUT", path, body=body)

    def delete(self, path: str) -> Any:
        """Send a DELETE; raises as :meth:`get`."""
        return self._json("DELETE", path)

    def request(
        self, method: str, path: str, *, body: Mapping[str, Any] | None = None, query: Query
    ) -> Any:
        """Send a request, a POST with an idempotency key; raises as :meth:`get`."""
        headers = {IDEMPOTENCY_KEY: uuid4().hex} if method == "POST" else None
        return self._json(method, path, body=body, query=query, headers=headers)

    def list_all(
        self, path: str, **query: str | int | bool | list[str]
    ) -> Iterator[dict[str, Any]]:
        """Iterate over the objects of all pages of a list; raises as :meth:`get`."""
        page = self.get(path, **{"page_size": PAGE_SIZE, **query})
        if isinstance(page, list):
            yield from page
            return
        while True:
            yield from page["results"]
            if not page["next"]:
                return
            # The address of the next page may name another host, as the server knows itself.
            following = httpx.URL(page["next"])
            page = self._json("GET", path, query=dict(following.params))

    def upload(self, path: str, *, file: tuple[str, bytes], fields: Mapping[str, str]) -> Any:
        """Send a file and fields as a form; raises as :meth:`get`."""
        with _connection_errors(self.credentials.url):
            response = self._http.post(
                f"{API_PREFIX}/{path}",
                files={"file": file},
                data=dict(fields),
                params=self._write_parameters("POST", {}),
                headers={IDEMPOTENCY_KEY: uuid4().hex},
            )
        return response.json()

    def stream_text(self, path: str, **query: str | int | bool) -> Iterator[bytes]:
        """Iterate over the bytes of a plain-text response while it arrives; raises as :meth:`get`."""
        yield from self._stream(path, query=query, accept="text/plain", timeout=None)

    def stream_bytes(self, path: str) -> Iterator[bytes]:
        """Iterate over the bytes of a file while it arrives; raises as :meth:`get`."""
        yield from self._stream(path, query={}, accept="*/*", timeout=self._http.timeout)

    def _stream(
        self, path: str, *, query: Query, accept: str, timeout: httpx.Timeout | None
    ) -> Iterator[bytes]:
        with (
            _connection_errors(self.credentials.url),
            self._http.stream(
                "GET",
                f"{API_PREFIX}/{path}",
                params=_parameters(query),
                headers={"Accept": accept},
                timeout=timeout,
            ) as response,
        ):
            yield from response.iter_bytes()

    def stream_events(
        self, path: str, *, last_event_id: str = "", **query: str | int | bool
    ) -> Iterator[str]:
        """Iterate over the lines of the server-sent events of a list while they arrive; raises as :meth:`get`."""
        headers = {"Accept": "text/event-stream"}
        if last_event_id:
            headers["Last-Event-ID"] = last_event_id
        # The server sends a bookmark every 15 s.
        timeout = httpx.Timeout(10.0, read=60.0)
        with (
            _connection_errors(self.credentials.url),
            self._http.stream(
                "GET",
                f"{API_PREFIX}/{path}",
                params=_parameters({**query, "watch": True}),
                headers=headers,
                timeout=timeout,
            ) as response,
        ):
            yield from response.iter_lines()

    def _json(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        with _connection_errors(self.credentials.url):
            response = self._http.request(
                method,
                f"{API_PREFIX}/{path}",
                json=body,
                params=self._write_parameters(method, query or {}),
                headers=headers,
            )
        return response.json() if response.content else None

    def _write_parameters(self, method: str, query: Query) -> dict[str, str | int | list[str]]:
        dry_run = {"dry_run": True} if self.dry_run and method != "GET" else {}
        return _parameters({**query, **dry_run})


def _parameters(query: Query) -> dict[str, str | int | list[str]]:
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
    }


def _raise_for_problem(response: httpx.Response) -> None:
    if response.is_error:
        response.read()
        raise api_error_of_response(response)


@contextmanager
def _connection_errors(url: str) -> Iterator[None]:
    try:
        yield
    except httpx.TransportError as error:
        raise ConnectionFailed(
            f"{url} cannot be reached ({error}); check the address and that the server is running"
        ) from error


def _package_version() -> str:
    try:
        return version("ninefold-client")
    except PackageNotFoundError:
        return "0"
