"""The API of one Kubernetes cluster in plain dicts, over the official client's transport.

The client's typed models change with each of its releases; its connection handling, certificates and tokens do
not. Only these are used. Lists are read in pages, calls are paced, and every failure becomes one of ours::

    no connection, time-out, 429, 5xx ─▶ ClusterUnavailable     the same call may succeed later
    401, and 403 but of a creation    ─▶ ClusterUnavailable     as soon as an administrator has put it right
    404, 409, 410, 422, 403 …         ─▶ ApiRefused             with the server's own reason and message
"""

from __future__ import annotations

import json
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from kubernetes.client import ApiClient, Configuration
from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from controlplane.adapters.clusters.kubernetes.kubeconfig import ApiAccess
from controlplane.ports.clusters import ClusterError, ClusterUnavailable

Object = Mapping[str, Any]
Query = Mapping[str, str]

#: Who we are to server-side apply and to the audit log of a cluster.
FIELD_MANAGER: Final = "ninefold"
_CONNECT, _READ = 5.0, 30.0
_PAGE = 500
_EXPIRED, _CONFLICT, _MISSING, _FORBIDDEN, _UNAUTHORIZED = 410, 409, 404, 403, 401
#: Too many requests, or a time-out on the server's side: ask again later.
_LATER = (408, 429)
_LARGEST_REFUSAL = 64 * 1024


class ApiRefused(ClusterError):
    """The API server rejected the request. ``reason`` is its Status reason, such as ``AlreadyExists``."""

    def __init__(self, *, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    @property
    def missing(self) -> bool:
        return self.status == _MISSING

    @property
    def exists(self) -> bool:
        return self.status == _CONFLICT and self.reason == "AlreadyExists"

    @property
    def expired(self) -> bool:
        """The requested resource version or list page has expired: list again."""
        return self.status == _EXPIRED


class NotAllowed(ApiRefused, ClusterUnavailable):
    """The credential is rejected or lacks permission: nothing proceeds until an administrator acts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectList:
    items: Sequence[Object]
    #: From where a watch goes on.
    version: str


class ApiRateLimiter:
    """At most ``rate`` calls a second after a burst; calls beyond the rate wait."""

    def __init__(
        self, *, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._lock = threading.Lock()
        self._left, self._at = float(burst), clock()

    def delay(self) -> float:
        """Take one call; the seconds to wait before making it."""
        with self._lock:
            now = self._clock()
            self._left = min(self._burst, self._left + (now - self._at) * self._rate)
            self._at = now
            self._left -= 1
            return max(0.0, -self._left / self._rate)


class KubernetesApi:
    """Safe to share between threads."""

    def __init__(
        self,
        access: ApiAccess,
        *,
        rate: float = 50.0,
        burst: int = 200,
        read_within: float = _READ,
    ) -> None:
        self.access = access
        self._rate_limiter = ApiRateLimiter(rate=rate, burst=burst)
        self._read_within = read_within
        self._pool: PoolManager = ApiClient(_client_configuration(access)).rest_client.pool_manager
        if access.certificate:
            self._pool.connection_pool_kw["ssl_context"] = _client_certificate_context(access)

    def get(self, path: str, *, query: Query | None = None) -> dict[str, Any]:
        """:raises ApiRefused: if it is not there, or may not be seen."""
        return self._request_json("GET", path, query=query)

    def found(self, path: str) -> dict[str, Any] | None:
        """The object; None if it is not there."""
        try:
            return self.get(path)
        except ApiRefused as refusal:
            if refusal.missing:
                return None
            raise

    def list(self, path: str, *, query: Query | None = None) -> ObjectList:
        """Every object, page by page, as of one version; begun again if that grows too old meanwhile."""
        while True:
            try:
                return self._list_all_pages(path, dict(query or {}))
            except ApiRefused as refusal:
                if not refusal.expired:
                    raise

    def _list_all_pages(self, path: str, query: dict[str, str]) -> ObjectList:
        items: list[Object] = []
        query["limit"] = str(_PAGE)
        while True:
            answer = self._request_json("GET", path, query=query)
            items += answer.get("items") or ()
            following = answer["metadata"].get("continue")
            if not following:
                return ObjectList(items=items, version=answer["metadata"]["resourceVersion"])
            query["continue"] = following

    def create(self, path: str, body: Object) -> dict[str, Any]:
        """:raises ApiRefused: ``exists`` if there is one of that name already."""
        return self._request_json("POST", path, query={"fieldManager": FIELD_MANAGER}, body=body)

    def apply(self, path: str, body: Object) -> dict[str, Any]:
        """Server-side apply as the one manager of these fields; what we leave out and had set goes away."""
        return self._request_json(
            "PATCH",
            path,
            query={"fieldManager": FIELD_MANAGER, "force": "true"},
            body=body,
            kind="application/apply-patch+yaml",
        )

    def merge(self, path: str, body: Object) -> dict[str, Any]:
        """A merge patch: what is None is taken away."""
        return self._request_json(
            "PATCH",
            path,
            query={"fieldManager": FIELD_MANAGER},
            body=body,
            kind="application/merge-patch+json",
        )

    def delete(self, path: str, *, grace: int | None = None, uid: str = "") -> None:
        """Request deletion; an object already deleted is no error. With ``uid``, only that exact object."""
        body: dict[str, Any] = {"propagationPolicy": "Background"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            self._request_json("DELETE", path, body=body)
        except ApiRefused as refusal:
            if not refusal.missing:
                raise

    def open(
        self,
        path: str,
        *,
        query: Query | None = None,
        read_within: float | None = None,
        accept: str = "application/json",
    ) -> BaseHTTPResponse:
        """A response whose body is unread; the caller closes it, or returns its connection to the pool."""
        return self._open_response("GET", path, query=query, read_within=read_within, accept=accept)

    def stream(
        self, path: str, *, query: Query | None = None, read_within: float | None = None
    ) -> Iterator[bytes]:
        """Chunks of a response as they arrive; the connection is closed at the end or when the reader stops."""
        response = self._open_response("GET", path, query=query, read_within=read_within)
        try:
            yield from response.stream(1 << 16, decode_content=True)
        except HTTPError as error:
            raise _unavailable_error(self.access, error) from error
        finally:
            response.close()

    def watch(
        self, path: str, *, version: str, seconds: int, query: Query | None = None
    ) -> Iterator[dict[str, Any]]:
        """Events after that version, bookmarks among them, until the server ends it after ``seconds``.

        :raises ApiRefused: ``expired`` if the version is too old.
        :raises ClusterUnavailable: if the connection breaks, or is idle for longer than a healthy one is.
        """
        requested = {
            **(query or {}),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }
        rest = b""
        for chunk in self.stream(path, query=requested, read_within=seconds + 15.0):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.strip():
                    event: dict[str, Any] = json.loads(line)
                    if event.get("type") == "ERROR":
                        raise _error_for_status(event["object"].get("code", 500), event["object"])
                    yield event

    def _request_json(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        kind: str = "application/json",
    ) -> dict[str, Any]:
        response = self._open_response(method, path, query=query, body=body, kind=kind)
        try:
            answer: dict[str, Any] = json.loads(response.read() or b"{}")
        except (HTTPError, ValueError) as error:
            raise _unavailable_error(self.access, error) from error
        finally:
            response.release_conn()
        return answer

    def _open_response(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        kind: str = "application/json",
        read_within: float | None = None,
        accept: str = "application/json",
    ) -> BaseHTTPResponse:
        if delay := self._rate_limiter.delay():
            time.sleep(delay)
        address = f"{self.access.server}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": accept, "Content-Type": kind, **self._authorization_header()}
        try:
            response = self._pool.request(
                method,
                address,
                headers=headers,
                body=None if body is None else json.dumps(body),
                timeout=Timeout(connect=_CONNECT, read=read_within or self._read_within),
                preload_content=False,
                retries=False,
            )
        except HTTPError as error:
            raise _unavailable_error(self.access, error) from error
        if response.status >= 400:
            raise _error_of_response(self.access, response, method=method)
        return response

    def _authorization_header(self) -> Mapping[str, str]:
        token = self.access.token
        if self.access.token_file:
            token = Path(self.access.token_file).read_text(encoding="ascii").strip()
        return {"Authorization": f"Bearer {token}"} if token else {}


def _client_configuration(access: ApiAccess) -> Configuration:
    configuration = Configuration(host=access.server)
    configuration.ca_cert_data = access.authority or None
    configuration.tls_server_name = access.server_name or None
    # The product's own egress decides on proxies; an API server is reached directly.
    configuration.proxy = None
    return configuration


def _client_certificate_context(access: ApiAccess) -> ssl.SSLContext:
    """With the client's certificate. Its key lies on a disk only while it is read."""
    context = ssl.create_default_context(cadata=access.authority or None)
    with tempfile.TemporaryDirectory(prefix="ninefold-kubernetes-") as folder:
        certificate, key = Path(folder, "client.crt"), Path(folder, "client.key")
        for path, text in ((certificate, access.certificate), (key, access.key)):
            path.touch(mode=0o600)
            path.write_text(text, encoding="ascii")
        context.load_cert_chain(str(certificate), str(key))
    return context


def _error_of_response(
    access: ApiAccess, response: BaseHTTPResponse, *, method: str
) -> ClusterError:
    """The exception for an error response; reads its body and returns the connection to the pool."""
    try:
        content = response.read(_LARGEST_REFUSAL)
    except HTTPError as error:
        return _unavailable_error(access, error)
    finally:
        response.release_conn()
    try:
        status = json.loads(content)
    except ValueError:
        status = {"message": content[:200].decode(errors="replace")}
    if not isinstance(status, dict):
        status = {}
    return _error_for_status(response.status, status, creating=method == "POST")


def _error_for_status(code: int, status: Object, *, creating: bool = False) -> ClusterError:
    """:param creating: 403 then means a denied admission, by a quota for instance, not a missing permission."""
    reason = str(status.get("reason") or "")
    message = str(status.get("message") or f"the API server answered {code}")
    if code in _LATER or code >= 500:
        return ClusterUnavailable(f"the API server is busy or not ready: {message}")
    if code == _UNAUTHORIZED:
        message = (
            "the credential is not accepted (401): it has expired or was withdrawn; give a new one"
        )
        return NotAllowed(status=code, reason=reason, message=message)
    if code == _FORBIDDEN and not creating:
        return NotAllowed(status=code, reason=reason, message=f"not permitted (403): {message}")
    return ApiRefused(status=code, reason=reason, message=message)


def _unavailable_error(access: ApiAccess, error: Exception) -> ClusterUnavailable:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ClusterUnavailable(f"the API server {access.server} does not answer: {text}")
