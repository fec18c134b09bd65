"""Client of ``POST /api/v1/telemetry/push``: one batch, one request, and the meaning of its response."""

from __future__ import annotations

import gzip
import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ninefold_runtime.agent.card_samples import SampleBatch
from ninefold_runtime.exit_codes import InvalidTaskInput

_PATH = "/api/v1/telemetry/push"
_LONGEST_ANSWER = 64 * 1024
_LONGEST_WAIT_SECONDS = 300.0
#: Answers after which the same request may succeed later, beside those of 500 and above.
_LATER = frozenset({408, 425, 429})
#: The code of a refusal because of a batch's age.
_OUTDATED = "push-outdated"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class ControlPlaneUnavailable(Exception):
    """The control plane cannot take it now."""

    def __init__(self, message: str, *, wait_seconds: float = 0.0) -> None:
        super().__init__(message)
        #: Its ``Retry-After``; 0 without one.
        self.wait_seconds = wait_seconds


class MetricPushFailed(ControlPlaneUnavailable):
    """It failed on this batch, perhaps on this one alone: it sent no ``Retry-After``."""


class MetricPushRejected(Exception):
    """It will never take this batch."""


class MetricBatchOutdated(MetricPushRejected):
    """It will never take this batch nor any that was measured before it."""


class AgentTokenRejected(Exception):
    """It takes nothing with this token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushResult:
    """The control plane's response on success."""

    #: The highest sequence number that it has of this node.
    known: int
    #: Whether the batch counted. Not where it did before, nor where its number is not remembered as missing.
    taken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPushEndpoint:
    """Where the control plane is."""

    secure: bool
    host: str
    port: int | None
    path: str
    #: Certificates to trust beside none other; None: those of the system.
    authorities: Path | None = None

    @classmethod
    def of(cls, url: str, *, authorities: Path | None = None) -> MetricPushEndpoint:
        """:raises InvalidTaskInput: if it is no http(s) address, or the certificates cannot be read."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise InvalidTaskInput(f"--server {url!r} is no address: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidTaskInput(f"--server must be an http(s) address, not {url!r}")
        if authorities is not None:
            try:
                ssl.create_default_context(cafile=str(authorities))
            except (OSError, ssl.SSLError) as error:
                raise InvalidTaskInput(
                    f"--authorities {authorities} cannot be used: {error}"
                ) from error
        return cls(
            secure=parts.scheme == "https",
            host=parts.hostname,
            port=port,
            path=parts.path.rstrip("/") + _PATH,
            authorities=authorities,
        )

    @property
    def is_plaintext(self) -> bool:
        """Whether the token crosses a network in the clear."""
        return not self.secure and self.host not in _LOOPBACK

    def connect(self, *, timeout_seconds: float) -> http.client.HTTPConnection:
        if not self.secure:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout_seconds)
        cafile = str(self.authorities) if self.authorities else None
        context = ssl.create_default_context(cafile=cafile)
        return http.client.HTTPSConnection(
            self.host, self.port, timeout=timeout_seconds, context=context
        )


def push_batch(
    server: MetricPushEndpoint,
    batch: SampleBatch,
    *,
    sequence: int,
    vendor: str,
    token: str,
    timeout_seconds: float,
) -> PushResult:
    """Send one batch; each step, as to connect and to be answered, may take as long as the time-out.

    :raises ControlPlaneUnavailable: if it may be taken later.
    :raises MetricPushFailed: if it may be taken later, without a stated wait.
    :raises MetricPushRejected: if it never will be.
    :raises MetricBatchOutdated: if it was measured too long ago.
    :raises AgentTokenRejected: if the token is invalid, or another node's.
    """
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "text/plain; version=0.0.4; charset=utf-8",
        "Content-Encoding": "gzip",
        "X-Ninefold-Sequence": str(sequence),
        "X-Ninefold-At": batch.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "X-Ninefold-Vendor": vendor,
        "X-Ninefold-Agent": "ninefold-agent",
    }
    connection = server.connect(timeout_seconds=timeout_seconds)
    try:
        connection.request(
            "POST", server.path, gzip.compress(batch.text.encode(), compresslevel=1), headers
        )
        response = connection.getresponse()
        status, body = response.status, response.read(_LONGEST_ANSWER)
        wait = response.headers.get("Retry-After", "")
    except (OSError, http.client.HTTPException) as error:
        raise ControlPlaneUnavailable(f"{type(error).__name__}: {error}") from error
    finally:
        connection.close()
    if status >= 500 or status in _LATER:
        seconds = min(float(wait), _LONGEST_WAIT_SECONDS) if wait.isdecimal() else 0.0
        kind = MetricPushFailed if status >= 500 and not seconds else ControlPlaneUnavailable
        raise kind(f"it answered {status}", wait_seconds=seconds)
    if status in (401, 403):
        raise AgentTokenRejected(f"it answered {status}: {_refusal_reason(body)}")
    if status != 200:
        refusal = (
            MetricBatchOutdated
            if _parse_problem(body).get("code") == _OUTDATED
            else MetricPushRejected
        )
        raise refusal(f"it answered {status}: {_refusal_reason(body)}")
    return _parse_answer(body, sequence=sequence)


def _parse_answer(body: bytes, *, sequence: int) -> PushResult:
    """:raises ControlPlaneUnavailable: if the answer is not of the control plane, but of a proxy."""
    try:
        answer = json.loads(body)
        return PushResult(known=int(answer["sequence"]), taken=bool(answer["taken"]))
    except (ValueError, TypeError, KeyError) as error:
        raise ControlPlaneUnavailable(
            f"its answer to batch {sequence} is not understood: {body[:100]!r}"
        ) from error


def _refusal_reason(body: bytes) -> str:
    problem = _parse_problem(body)
    text = body.decode("utf-8", "replace").strip() or "without a word"
    return str(problem.get("detail") or problem.get("title") or text)[:300]


def _parse_problem(body: bytes) -> dict[str, Any]:
    """Problem details; empty where the answer has none."""
    try:
        problem = json.loads(body)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
