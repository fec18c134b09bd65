"""Artifacts, outbound calls and telemetry in memory, with the same refusals as the real adapters."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from controlplane.domain.outbound.egress import Address, EgressPolicy, EgressTarget, parse_target
from controlplane.ports.artifacts import ArtifactError, Blob, BlobMissing, StorageFull, StoredBlob
from controlplane.ports.outbound_http import OutboundFailed, OutboundHttpClient, OutboundResponse
from controlplane.ports.telemetry import TelemetryBatch, TelemetryFailed


def _system_clock() -> datetime:
    return datetime.now(UTC)


class MemoryArtifacts:
    """Implements ``controlplane.ports.artifacts.ArtifactStore``; ``capacity`` is in bytes."""

    def __init__(
        self, *, capacity: int | None = None, clock: Callable[[], datetime] = _system_clock
    ) -> None:
        self.contents: dict[str, bytes] = {}
        self.capacity = capacity
        self._clock = clock
        self._since: dict[str, datetime] = {}
        self._aside: set[str] = set()

    def put(self, chunks: Iterable[bytes], *, expected: str | None = None) -> Blob:
        content = b"".join(chunks)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if expected is not None and digest != expected:
            raise ArtifactError(f"expected {expected}, the {len(content)} bytes are {digest}")
        if digest not in self.contents:
            used = sum(len(blob) for blob in self.contents.values())
            if self.capacity is not None and used + len(content) > self.capacity:
                raise StorageFull(
                    f"{len(content)} bytes do not fit: {used} of {self.capacity} used"
                )
            self.contents[digest] = content
        self._since[digest] = self._clock()
        self._aside.discard(digest)
        return Blob(digest=digest, size=len(content))

    def size(self, digest: str) -> int:
        return len(self._find_blob(digest))

    def open(self, digest: str) -> BinaryIO:
        self.bring_back(digest)
        return io.BytesIO(self._find_blob(digest))

    def materialise(self, digest: str, destination: Path) -> None:
        content = self._find_blob(digest)
        self.bring_back(digest)
        destination.unlink(missing_ok=True)
        destination.write_bytes(content)
        destination.chmod(0o444)

    def delete(self, digest: str) -> None:
        self.contents.pop(digest, None)
        self._aside.discard(digest)

    def blobs(self, *, after: str = "") -> Iterator[StoredBlob]:
        for digest in sorted(self.contents):
            if digest > after:
                yield StoredBlob(
                    digest=digest,
                    size=len(self.contents[digest]),
                    since=self._since[digest],
                    set_aside=digest in self._aside,
                )

    def set_aside(self, digest: str) -> None:
        if digest in self.contents:
            self._since[digest] = self._clock()
            self._aside.add(digest)

    def bring_back(self, digest: str) -> None:
        self._aside.discard(digest)

    def discard(self, digest: str) -> None:
        if digest in self._aside:
            self.delete(digest)

    def delete_unfinished_writes(self, *, before: datetime) -> int:
        return 0

    def _find_blob(self, digest: str) -> bytes:
        if digest not in self.contents:
            raise BlobMissing(f"there is no blob {digest} in this store")
        return self.contents[digest]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One call, as the other side would have seen it."""

    method: str
    target: EgressTarget
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


#: What the other side does with a call: status, headers, body.
Respond = Callable[[RecordedCall], tuple[int, Mapping[str, str], bytes]]


class MemoryOutbound:
    """Implements ``controlplane.ports.outbound_http.Outbound``; ``names`` replaces the resolver."""

    def __init__(
        self,
        *,
        policy: EgressPolicy,
        names: Mapping[str, tuple[Address, ...]],
        respond: Respond,
        largest_answer: int = 1024 * 1024,
    ) -> None:
        self.calls: list[RecordedCall] = []
        self._policy = policy
        self._names = names
        self._respond = respond
        self._largest = largest_answer

    def check(self, url: str) -> None:
        self._policy.check_target(parse_target(url))

    def fetch(
        self, url: str, *, headers: Mapping[str, str] | None = None, largest: int | None = None
    ) -> OutboundResponse:
        bound = self._largest if largest is None else largest
        return self._answer_request("GET", url, body=b"", headers=headers or {}, largest=bound)

    def post(
        self, url: str, *, body: bytes, headers: Mapping[str, str] | None = None
    ) -> OutboundResponse:
        return self._answer_request(
            "POST", url, body=body, headers=headers or {}, largest=self._largest
        )

    def _answer_request(
        self, method: str, url: str, *, body: bytes, headers: Mapping[str, str], largest: int
    ) -> OutboundResponse:
        target = parse_target(url)
        self._policy.check_target(target)
        literal = target.literal
        addresses = (literal,) if literal else self._names.get(target.host, ())
        if not addresses:
            raise OutboundFailed(f"the name {target.host} cannot be resolved")
        for address in addresses:
            self._policy.check_address(address, host=target.host)
        sent = {**headers, "Host": target.authority}
        call = RecordedCall(method=method, target=target, headers=sent, body=body)
        self.calls.append(call)
        status, response_headers, content = self._respond(call)
        if len(content) > largest:
            raise OutboundFailed(f"the response is larger than {largest} bytes")
        return OutboundResponse(
            status=status,
            headers={name.lower(): value for name, value in response_headers.items()},
            body=content,
            seconds=0.0,
            address=str(addresses[0]),
        )


class MemoryTelemetry:
    """Implements ``controlplane.ports.telemetry.Telemetry``; ``error`` makes it fail."""

    def __init__(
        self,
        *,
        outbound: OutboundHttpClient | None = None,
        token: str = "",
        batch: TelemetryBatch | None = None,
        error: str = "",
    ) -> None:
        self.token = token
        self.batch = batch or TelemetryBatch()
        self.error = error

    def read(self) -> TelemetryBatch:
        if self.error:
            raise TelemetryFailed(self.error)
        return self.batch
