"""The API of one Kubernetes cluster in plain dicts, over the transport of the official client.

The client's typed models change with each of its releases; its connection handling, certificates and tokens do
not. Only these are used. Lists are read in pages, calls are rate-limited, and failures are mapped to two
errors::

    no connection, time-out, 429, 5xx   ─▶ ClusterUnavailable     the same call may succeed later
    401, and 403 other than on creation ─▶ ClusterUnavailable     until an administrator fixes the permissions
    404, 409, 410, 422, 403 …           ─▶ ApiRefused             with the server's own reason and message
"""

from __future__ import annotations

import json
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from kubernetes.client import ApiClient, Configuration
from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from controlplane.adapters.clusters.kubernetes.kubeconfig import ApiAccess
from controlplane.domain.common.reasons import Reason, ReasonedValueError
from controlplane.ports.clusters import ClusterError, ClusterUnavailable

Object = Mapping[str, Any]
Manifest = dict[str, Any]
Query = Mapping[str, str]

#: Name of the field manager for server-side apply, and in the cluster's audit log.
FIELD_MANAGER: Final = "ninefold"
_JSON: Final = "application/json"
#: Metadata only: name, labels, version. A tenth of the size of a pod.
_METADATA: Final = f"{_JSON};as=PartialObjectMetadata{{list}};g=meta.k8s.io;v=v1,{_JSON}"
_CONNECT, _READ = 5.0, 30.0
_PAGE = 500
#: Too many requests, or a time-out on the server's side: retry later.
_LATER = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_LARGEST_REFUSAL = 64 * 1024


class ApiRefused(ClusterError):
    """The API server rejected the request. ``reason`` is its Status reason, such as ``AlreadyExists``."""

    def __init__(self, *, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    @property
    def missing(self) -> bool:
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def exists(self) -> bool:
        return self.status == HTTPStatus.CONFLICT and self.reason == "AlreadyExists"

    @property
    def expired(self) -> bool:
        """The requested resource version or list page has expired: list again."""
        return self.status == HTTPStatus.GONE


class ApiAccessDenied(ApiRefused, ClusterUnavailable):
    """The credential is rejected or lacks permission: nothing proceeds until an administrator acts."""


class MalformedResponse(ReasonedValueError):
    """The response is not one of the API; the message quotes its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    items: Sequence[Object]
    #: Resource version of the whole list, from which a watch starts.
    version: str


def api_object(kind: str, metadata: Manifest, *, version: str = "v1", **parts: object) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def collection_path(manifest: Object) -> str:
    """The path under which objects of that kind are created, with the plural that Kubernetes guesses of a kind."""
    version, kind = manifest["apiVersion"], manifest["kind"].lower()
    namespace = manifest["metadata"].get("namespace")
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else kind + ("es" if kind[-1] == "s" else "s")
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"/{'api' if version == 'v1' else 'apis'}/{version}{within}/{plural}"


def object_path(manifest: Object) -> str:
    return f"{collection_path(manifest)}/{object_name(manifest)}"


def labels_of(manifest: Object) -> Mapping[str, str]:
    return manifest["metadata"].get("labels") or {}


def annotations_of(manifest: Object) -> Mapping[str, str]:
    return manifest["metadata"].get("annotations") or {}


def object_name(manifest: Object) -> str:
    return str(manifest["metadata"]["name"])


def nested_field(manifest: Object, *path: str) -> Any:
    """The field at that path, such as ``("status", "conditions")``; empty if a part of it is missing."""
    found: Any = manifest
    for key in path:
        found = found.get(key) or {}
    return found


def parse_time(text: object) -> datetime | None:
    """Parse a timestamp of the API; None if it is missing or invalid."""
    try:
        found = datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


class ApiRateLimiter:
    """At most ``rate`` calls a second after a burst; calls beyond the rate wait."""

    def __init__(
        self, *, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._lock = threading.Lock()
        self._left, self._at = float(burst), clock()

    def delay(self) -> float:
        """Account for one call; return the seconds to wait before making it."""
        with self._lock:
            now = self._clock()
            self._left = min(self._burst, self._left + (now - self._at) * self._rate)
            self._at = now
            self._left -= 1
            return max(0.0, -self._left / self._rate)


class KubernetesApi:
    """Safe to share between threads."""

    def __init__(
        self, access: ApiAccess, *, rate: float = 50.0, burst: int = 200, read_within: float = _READ
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

    def list(self, path: str, *, query: Query | None = None) -> Sequence[Object]:
        """Every object, as of one version; begun again if that grows too old meanwhile."""
        while True:
            try:
                return [item for page in self.pages(path, query=query) for item in page.items]
            except ApiRefused as refusal:
                if not refusal.expired:
                    raise

    def list_visible(self, path: str, *, query: Query | None = None) -> Sequence[Object]:
        """Every object; none where the kind is not served or we may not see it."""
        try:
            return self.list(path, query=query)
        except ApiRefused as refusal:
            if refusal.status == HTTPStatus.UNAUTHORIZED:
                raise
            return ()

    def pages(
        self,
        path: str,
        *,
        query: Query | None = None,
        size: int = _PAGE,
        metadata_only: bool = False,
        read_within: float | None = None,
    ) -> Iterator[ListPage]:
        """A list, page by page.

        :raises ApiRefused: ``expired`` if the server's version expires meanwhile: list again.
        :raises MalformedResponse: if the response is no list.
        """
        requested = {**(query or {}), "limit": str(size)}
        accept = _METADATA.format(list="List") if metadata_only else _JSON
        while True:
            answer = self._request_json(
                "GET", path, query=requested, accept=accept, read_within=read_within
            )
            metadata, items = answer.get("metadata"), answer.get("items")
            if not isinstance(metadata, dict) or not isinstance(items, list | None):
                raise MalformedResponse(f"this is no list of Kubernetes: {str(answer)[:80]!r}")
            yield ListPage(items=items or (), version=str(metadata.get("resourceVersion", "")))
            if not metadata.get("continue"):
                return
            requested["continue"] = str(metadata["continue"])

    def create(self, path: str, body: Object) -> dict[str, Any]:
        """:raises ApiRefused: ``exists`` if there is one of that name already."""
        return self._request_json("POST", path, query={"fieldManager": FIELD_MANAGER}, body=body)

    def ensure(self, manifest: Object) -> None:
        """Create it unless there is one of that name, which stays unchanged."""
        try:
            self.create(collection_path(manifest), manifest)
        except ApiRefused as refusal:
            if not refusal.exists:
                raise

    def apply(self, manifest: Object) -> dict[str, Any]:
        """Server-side apply as the only manager of these fields; fields that were set before and are omitted now
        are removed.
        """
        return self._request_json(
            "PATCH",
            object_path(manifest),
            query={"fieldManager": FIELD_MANAGER, "force": "true"},
            body=manifest,
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

    def merge_if_found(self, path: str, body: Object) -> None:
        """A merge patch of an object that may have been deleted meanwhile."""
        try:
            self.merge(path, body)
        except ApiRefused as refusal:
            if not refusal.missing:
                raise

    def annotate(self, path: str, annotations: Mapping[str, str]) -> None:
        """Set annotations of an object that may have been deleted meanwhile."""
        self.merge_if_found(path, {"metadata": {"annotations": annotations}})

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

    def open_watch(
        self,
        path: str,
        *,
        query: Query,
        version: str,
        seconds: float,
        metadata_only: bool,
        read_within: float,
    ) -> BaseHTTPResponse:
        """The unread response of a watch for ``seconds`` after that version; the caller closes it.

        :raises ApiRefused: ``expired`` if the version is too old.
        """
        requested = {
            **query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(int(seconds)),
        }
        accept = _METADATA.format(list="") if metadata_only else _JSON
        return self._open_response(
            "GET", path, query=requested, read_within=read_within, accept=accept
        )

    def probe(self, *, read_within: float) -> None:
        """Request the version and ignore the response."""
        self._open_response("GET", "/version", read_within=read_within).close()

    def _request_json(
        self, method: str, path: str, *, query: Query | None = None, **options: Any
    ) -> dict[str, Any]:
        response = self._open_response(method, path, query=query, **options)
        try:
            content = response.read()
            answer = json.loads(content or b"{}")
            if not isinstance(answer, dict):
                raise MalformedResponse(
                    "cluster.api.malformed_response",
                    "the response is not a JSON object: {detail}",
                    detail=repr(content[:80]),
                )
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
        kind: str = _JSON,
        read_within: float | None = None,
        accept: str = _JSON,
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
            raise _error_of_response(self.access, response, creating=method == "POST")
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
    """With the client's certificate. Its key is on disk only while it is loaded."""
    context = ssl.create_default_context(cadata=access.authority or None)
    with tempfile.TemporaryDirectory(prefix="ninefold-kubernetes-") as folder:
        certificate, key = Path(folder, "client.crt"), Path(folder, "client.key")
        for path, text in ((certificate, access.certificate), (key, access.key)):
            path.touch(mode=0o600)
            path.write_text(text, encoding="ascii")
        context.load_cert_chain(str(certificate), str(key))
    return context


def _error_of_response(
    access: ApiAccess, response: BaseHTTPResponse, *, creating: bool
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
    return error_for_status(response.status, status, creating=creating)


def error_for_status(code: int, status: Object, *, creating: bool = False) -> ClusterError:
    """:param creating: 403 then means a denied admission, by a quota for instance, not a missing permission."""
    reason = str(status.get("reason") or "")
    message = str(status.get("message") or "") or Reason(
        "cluster.api.status", "the API server returned status {status}", status=code
    )
    if code in _LATER or code >= 500:
        return ClusterUnavailable(
            "cluster.api.busy",
            "the API server is overloaded or not ready: {detail}",
            detail=message,
        )
    if code == HTTPStatus.UNAUTHORIZED:
        message = Reason(
            "cluster.api.unauthorized",
            "the API server rejected the credential (401); it has expired or was revoked; enter a new one",
        )
        return ApiAccessDenied(status=code, reason=reason, message=message)
    if code == HTTPStatus.FORBIDDEN and not creating:
        return ApiAccessDenied(
            status=code,
            reason=reason,
            message=Reason(
                "cluster.api.forbidden",
                "the account lacks the permission (403): {detail}",
                detail=message,
            ),
        )
    return ApiRefused(status=code, reason=reason, message=message)


def _unavailable_error(access: ApiAccess, error: Exception) -> ClusterUnavailable:
    text = str(error) or type(error).__name__
    if not isinstance(text, Reason):
        text = text.splitlines()[0]
    return ClusterUnavailable(
        "cluster.api.unreachable",
        "the API server {server} does not respond: {detail}",
        server=access.server,
        detail=text,
    )
