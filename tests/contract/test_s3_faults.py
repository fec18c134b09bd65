"""The S3 adapter when requests fail: nothing is lost, nothing is half visible, calls end in bounded time.

A proxy injects the faults between the adapter and a real server process.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.retries.standard import ExponentialBackoff

from controlplane.adapters.artifacts.s3 import S3Artifacts
from controlplane.ports.artifacts import (
    ArtifactError,
    BlobMissing,
    StorageFull,
    StorageUnavailable,
)
from tests import s3_servers
from tests.s3_servers import PART, FaultyProxy

pytestmark = pytest.mark.slow

SMALL = b"config" * 100
LARGE = bytes(range(256)) * (PART // 256) * 2 + b"the last part"


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def in_chunks(content: bytes) -> Iterator[bytes]:
    stream = io.BytesIO(content)
    while chunk := stream.read(1 << 20):
        yield chunk


class Bucket:
    """A bucket as the server has it, and a store that reaches it through the proxy."""

    def __init__(self, url: str, proxy: FaultyProxy) -> None:
        self.name = s3_servers.new_bucket(url)
        self.proxy = proxy
        self.server = s3_servers.client(url)
        self.store = self.opened()

    def opened(self, **more: Any) -> S3Artifacts:
        return S3Artifacts(**s3_servers.store_options(self.proxy.url, self.name, **more))

    def keys(self) -> list[str]:
        listed = self.server.list_objects_v2(Bucket=self.name).get("Contents", ())
        return [each["Key"] for each in listed]

    def uploads(self) -> list[str]:
        return [
            each["Key"]
            for each in self.server.list_multipart_uploads(Bucket=self.name).get("Uploads", ())
        ]

    def sent_parts(self) -> int:
        """Parts that were sent since the last fault was set."""
        return sum("partNumber" in path for _, path, _ in self.proxy.requests)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two attempts; the number of attempts stays as it is."""
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0.01)


@pytest.fixture(scope="module")
def proxy(s3_url: str) -> Iterator[FaultyProxy]:
    with FaultyProxy(s3_url) as faulty:
        yield faulty


@pytest.fixture
def bucket(s3_url: str, proxy: FaultyProxy) -> Bucket:
    proxy.inject("", method="")
    return Bucket(s3_url, proxy)


def read(store: S3Artifacts, digest: str) -> bytes:
    with store.open(digest) as stream:
        return stream.read()


#: Name → fault, method and part of the path of the request that fails, content.
PASSING: dict[str, tuple[str, str, str, bytes]] = {
    "an error while a small blob is stored": ("500", "PUT", "sha256", SMALL),
    "a time-out while a small blob is stored": ("hang", "PUT", "sha256", SMALL),
    "a small blob arrives changed": ("corrupt-request", "PUT", "sha256", SMALL),
    "a lost response of a small blob": ("lost-response", "PUT", "sha256", SMALL),
    "an error of one part": ("503", "PUT", "partNumber=2", LARGE),
    "a connection cut inside a part": ("cut-request", "PUT", "partNumber=2", LARGE),
    "a part arrives changed": ("corrupt-request", "PUT", "partNumber=1", LARGE),
    "a lost response of a part": ("lost-response", "PUT", "partNumber=3", LARGE),
    "an error of the completion": ("500", "POST", "uploadId", LARGE),
    "a lost response of the completion": ("lost-response", "POST", "uploadId", LARGE),
    "a response cut while reading": ("cut-response", "GET", "sha256", LARGE),
    "an error while reading": ("503", "GET", "sha256", LARGE),
}


def test_a_fault_that_passes_costs_a_repetition_and_nothing_else(bucket: Bucket) -> None:
    failures = []
    for number, (name, (kind, method, part, start)) in enumerate(PASSING.items()):
        content = start + bytes([number])
        for expected in (None, digest_of(content)):
            bucket.proxy.inject(kind, method=method, part=part)
            bucket.store.put(in_chunks(content), expected=expected)
            if read(bucket.store, digest_of(content)) != content:
                failures.append(f"{name}: other bytes are stored")
            if not any(fault for _, _, fault in bucket.proxy.requests):
                failures.append(f"{name}: the fault was not injected")
            bucket.proxy.inject("", method="")
            bucket.store.delete(digest_of(content))
            if left := bucket.keys() + bucket.uploads():
                failures.append(f"{name}: {left} stays behind")
    assert not failures, "\n".join(failures)


#: Name → fault, method, part of the path, error.
LASTING: dict[str, tuple[str, str, str, type[ArtifactError]]] = {
    "the server answers 500": ("500", "PUT", "partNumber=2", StorageUnavailable),
    "the server hangs": ("hang", "PUT", "partNumber=3", StorageUnavailable),
    "connections are cut": ("cut-request", "PUT", "partNumber=1", StorageUnavailable),
    "parts arrive changed": ("corrupt-request", "PUT", "partNumber=2", StorageUnavailable),
    "it cannot be completed": ("503", "POST", "uploadId", StorageUnavailable),
    "no room is left": ("507", "PUT", "partNumber=2", StorageFull),
    "access is denied": ("403", "PUT", "partNumber=1", StorageUnavailable),
}


def test_an_upload_that_fails_is_not_visible_and_is_continued(bucket: Bucket) -> None:
    failures = []
    for number, (name, (kind, method, part, error)) in enumerate(LASTING.items()):
        content = LARGE + bytes([number])
        digest = digest_of(content)
        bucket.proxy.inject(kind, method=method, part=part, times=-1)
        with pytest.raises(error):
            bucket.store.put(in_chunks(content), expected=digest)
        bucket.proxy.inject("", method="")
        if bucket.keys():
            failures.append(f"{name}: {bucket.keys()} is visible")
        unfinished = len(bucket.uploads())
        bucket.store.put(in_chunks(content), expected=digest)
        if error is StorageFull and unfinished:
            failures.append(f"{name}: the upload was not aborted")
        if error is not StorageFull and unfinished != 1:
            failures.append(f"{name}: {unfinished} uploads wait to be continued")
        if "completed" in name and bucket.sent_parts():
            failures.append(f"{name}: {bucket.sent_parts()} parts were sent twice")
        if read(bucket.store, digest) != content:
            failures.append(f"{name}: other bytes are stored")
        bucket.store.delete(digest)
        if bucket.uploads():
            failures.append(f"{name}: an upload stays behind")
    assert not failures, "\n".join(failures)


def test_an_upload_of_unknown_digest_that_fails_leaves_nothing(bucket: Bucket) -> None:
    for method, part in (("PUT", "partNumber=2"), ("POST", "uploadId"), ("PUT", "sha256")):
        bucket.proxy.inject("500", method=method, part=part, times=-1)
        with pytest.raises(StorageUnavailable):
            bucket.store.put(in_chunks(LARGE))
        assert (bucket.keys(), bucket.uploads()) == ([], [])


def test_only_the_missing_parts_of_a_broken_upload_are_sent(bucket: Bucket) -> None:
    def broken() -> Iterator[bytes]:
        yield LARGE[:PART]
        yield LARGE[PART : 2 * PART]
        raise ConnectionResetError("the client left")

    with pytest.raises(ConnectionResetError):
        bucket.store.put(broken(), expected=digest_of(LARGE))
    with pytest.raises(BlobMissing):
        bucket.store.size(digest_of(LARGE))
    bucket.proxy.inject("", method="")
    bucket.store.put(in_chunks(LARGE), expected=digest_of(LARGE))
    assert bucket.sent_parts() == 1
    assert read(bucket.store, digest_of(LARGE)) == LARGE


def test_parts_of_other_bytes_are_not_continued(bucket: Bucket) -> None:
    changed = b"other" + LARGE[5:]
    with pytest.raises(ConnectionResetError):
        bucket.store.put(left_after(changed[:PART]), expected=digest_of(LARGE))
    bucket.store.put(in_chunks(LARGE), expected=digest_of(LARGE))
    assert read(bucket.store, digest_of(LARGE)) == LARGE
    with pytest.raises(ArtifactError, match="digest mismatch"):
        bucket.opened().put(in_chunks(changed), expected=digest_of(LARGE + b"?"))
    assert bucket.uploads() == []


def left_after(content: bytes) -> Iterator[bytes]:
    yield content
    raise ConnectionResetError("the client left")


def test_damaged_bytes_are_reported_when_they_are_read(bucket: Bucket, tmp_path: Path) -> None:
    bucket.store.put([SMALL])
    bucket.proxy.inject("corrupt-response", method="GET", part="sha256", times=-1)
    with pytest.raises(ArtifactError, match="have another digest"):
        read(bucket.store, digest_of(SMALL))
    with pytest.raises(ArtifactError, match="have another digest"):
        bucket.store.materialise(digest_of(SMALL), tmp_path / "input")
    assert s3_servers.files_below(tmp_path) == []


def test_an_unreachable_store_is_reported_in_bounded_time(bucket: Bucket) -> None:
    bucket.store.put([SMALL])
    calls: dict[str, Callable[[], object]] = {
        "put": lambda: bucket.store.put([SMALL]),
        "size": lambda: bucket.store.size(digest_of(SMALL)),
        "open": lambda: bucket.store.open(digest_of(SMALL)),
        "download": lambda: bucket.store.download(digest_of(SMALL)),
        "blobs": lambda: list(bucket.store.blobs()),
        "set_aside": lambda: bucket.store.set_aside(digest_of(SMALL)),
    }
    bucket.proxy.fault = lambda method, path, number: "503"
    for name, call in calls.items():
        started = datetime.now(UTC)
        with pytest.raises(StorageUnavailable):
            call()
        assert datetime.now(UTC) - started < timedelta(seconds=20), name
    closed = S3Artifacts(**s3_servers.store_options("http://127.0.0.1:9", bucket.name))
    with pytest.raises(StorageUnavailable, match=f"{bucket.name} cannot be reached"):
        closed.size(digest_of(SMALL))
    absent = S3Artifacts(**s3_servers.store_options(bucket.server.meta.endpoint_url, "not-there"))
    with pytest.raises(StorageUnavailable, match="not-there does not exist"):
        absent.put([SMALL])


def test_setting_aside_that_is_interrupted_loses_nothing(bucket: Bucket) -> None:
    for method in ("PUT", "DELETE"):
        bucket.store.put([SMALL])
        bucket.proxy.inject("500", method=method, part="/artifacts/", times=-1)
        with pytest.raises(StorageUnavailable):
            bucket.store.set_aside(digest_of(SMALL))
        bucket.proxy.inject("", method="")
        assert read(bucket.store, digest_of(SMALL)) == SMALL
        bucket.store.set_aside(digest_of(SMALL))
        assert [blob.set_aside for blob in bucket.store.blobs()] == [True]
        # What garbage collection discards is never what somebody has just read back.
        assert read(bucket.store, digest_of(SMALL)) == SMALL
        bucket.store.discard(digest_of(SMALL))
        assert read(bucket.store, digest_of(SMALL)) == SMALL
        bucket.store.delete(digest_of(SMALL))


def test_a_large_object_is_copied_in_parts(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controlplane.adapters.artifacts.s3.store.LARGEST_COPY", PART)
    digest = bucket.store.put(in_chunks(LARGE)).digest
    bucket.store.set_aside(digest)
    names = bucket.keys()
    assert all("sha256/" not in name for name in names)
    with bucket.store.open(digest) as content:
        assert content.read() == LARGE
    assert bucket.uploads() == []


def test_unfinished_uploads_are_aborted_when_they_are_old(bucket: Bucket) -> None:
    with pytest.raises(ConnectionResetError):
        bucket.store.put(left_after(LARGE[: 2 * PART]), expected=digest_of(LARGE))
    bucket.server.put_object(Bucket=bucket.name, Key="artifacts/incoming/0f", Body=b"left")
    bucket.server.put_object(Bucket=bucket.name, Key="not-ours", Body=b"of others")
    foreign = bucket.server.create_multipart_upload(Bucket=bucket.name, Key="artifacts/not-ours")
    now = datetime.now(UTC)
    assert bucket.store.delete_unfinished_writes(before=now - timedelta(hours=24)) == 0
    assert len(bucket.uploads()) == 2
    cleared = bucket.store.delete_unfinished_writes(before=now + timedelta(minutes=1))
    assert cleared >= PART + len(b"left")
    assert bucket.keys() == ["not-ours"]
    assert bucket.uploads() == [foreign["Key"]]


def test_objects_are_encrypted_as_configured(bucket: Bucket) -> None:
    for options, wanted in (
        ({"encryption": "AES256"}, "AES256"),
        ({"encryption": "aws:kms", "kms_key_id": "alias/weights"}, "aws:kms"),
    ):
        store = bucket.opened(**options)
        for content in (SMALL, LARGE):
            digest = store.put(in_chunks(content)).digest
            store.put(in_chunks(content), expected=digest)
            store.set_aside(digest)
            assert read(store, digest) == content
            keys = [f"artifacts/{area}/{digest[7:9]}/{digest[9:]}" for area in ("sha256", "aside")]
            found = [bucket.server.head_object(Bucket=bucket.name, Key=key) for key in keys]
            assert [each["ServerSideEncryption"] for each in found] == [wanted] * 2
            store.delete(digest)
