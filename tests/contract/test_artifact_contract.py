"""What every artifact store does, in memory, on disk or on an S3 server."""

from __future__ import annotations

import hashlib
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.adapters.artifacts.filesystem import FilesystemArtifacts
from controlplane.adapters.artifacts.s3 import S3Artifacts
from controlplane.adapters.fakes.in_memory import MemoryArtifacts
from controlplane.ports.artifacts import ArtifactError, ArtifactStore, BlobMissing
from tests import s3_servers

CONTENT = b"weights" * 1000
DIGEST = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
ABSENT = f"sha256:{'0' * 64}"


@pytest.fixture(params=["memory", "filesystem", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    if request.param == "memory":
        return MemoryArtifacts()
    if request.param == "s3":
        url: str = request.getfixturevalue("s3_url")
        return S3Artifacts(**s3_servers.store_options(url, s3_servers.new_bucket(url)))
    return FilesystemArtifacts(root=str(tmp_path / "artifacts"))


def test_it_is_an_artifact_store(store: ArtifactStore) -> None:
    assert isinstance(store, ArtifactStore)


def test_what_was_put_comes_back_under_its_digest(store: ArtifactStore) -> None:
    blob = store.put(iter([CONTENT[:10], CONTENT[10:]]))
    assert (blob.digest, blob.size) == (DIGEST, len(CONTENT))
    assert store.size(DIGEST) == len(CONTENT)
    with store.open(DIGEST) as stream:
        assert stream.read() == CONTENT


def test_an_empty_blob_is_a_blob(store: ArtifactStore) -> None:
    blob = store.put([])
    assert blob.size == 0
    with store.open(blob.digest) as stream:
        assert stream.read() == b""


def test_storing_twice_is_storing_once(store: ArtifactStore) -> None:
    assert store.put([CONTENT]) == store.put([CONTENT], expected=DIGEST)


def test_content_that_differs_from_the_expected_digest_is_refused(store: ArtifactStore) -> None:
    with pytest.raises(ArtifactError, match=r"expected sha256:"):
        store.put([b"something else"], expected=DIGEST)
    with pytest.raises(BlobMissing):
        store.size(DIGEST)


def test_a_source_that_fails_midway_leaves_nothing(store: ArtifactStore) -> None:
    def broken() -> Iterator[bytes]:
        yield CONTENT
        raise ConnectionResetError("the client left")

    with pytest.raises(ConnectionResetError):
        store.put(broken())
    with pytest.raises(BlobMissing):
        store.open(DIGEST)


@pytest.mark.parametrize("call", ["size", "open"])
def test_an_absent_blob_is_missing(store: ArtifactStore, call: str) -> None:
    with pytest.raises(BlobMissing, match=ABSENT):
        getattr(store, call)(ABSENT)


def test_an_absent_blob_cannot_be_materialised(store: ArtifactStore, tmp_path: Path) -> None:
    with pytest.raises(BlobMissing):
        store.materialise(ABSENT, tmp_path / "copy")
    assert list(tmp_path.glob("*copy*")) == []


def test_a_materialised_blob_is_readable_and_nobody_may_write_it(
    store: ArtifactStore, tmp_path: Path
) -> None:
    store.put([CONTENT])
    copy = tmp_path / "model.safetensors"
    store.materialise(DIGEST, copy)
    assert copy.read_bytes() == CONTENT
    assert stat.S_IMODE(copy.stat().st_mode) == 0o444


def test_materialising_again_replaces_what_is_there(store: ArtifactStore, tmp_path: Path) -> None:
    store.put([CONTENT])
    other = store.put([b"other"]).digest
    copy = tmp_path / "file"
    for digest in (DIGEST, DIGEST, other):
        store.materialise(digest, copy)
    assert copy.read_bytes() == b"other"
    assert {path.name for path in tmp_path.iterdir()} - {"artifacts"} == {"file"}


def test_replacing_a_materialised_file_does_not_touch_the_blob(
    store: ArtifactStore, tmp_path: Path
) -> None:
    store.put([CONTENT])
    copy = tmp_path / "file"
    store.materialise(DIGEST, copy)
    copy.unlink()
    copy.write_bytes(b"changed")
    with store.open(DIGEST) as stream:
        assert stream.read() == CONTENT


def test_deleting_tolerates_gone_and_leaves_materialised_files(
    store: ArtifactStore, tmp_path: Path
) -> None:
    store.put([CONTENT])
    store.materialise(DIGEST, tmp_path / "file")
    store.delete(DIGEST)
    store.delete(DIGEST)
    with pytest.raises(BlobMissing):
        store.size(DIGEST)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_many_that_store_the_same_at_once_all_succeed(store: ArtifactStore) -> None:
    digests: list[str] = []
    start = threading.Barrier(8)

    def put() -> None:
        start.wait()
        digests.append(store.put([CONTENT]).digest)

    threads = [threading.Thread(target=put) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert digests == [DIGEST] * 8
    with store.open(DIGEST) as stream:
        assert stream.read() == CONTENT


def test_every_blob_is_listed_once_in_the_order_of_digests(store: ArtifactStore) -> None:
    digests = sorted(store.put([f"blob {n}".encode()]).digest for n in range(20))
    assert [blob.digest for blob in store.blobs()] == digests
    assert [blob.digest for blob in store.blobs(after=digests[7])] == digests[8:]
    assert not any(blob.set_aside for blob in store.blobs())


def test_what_is_set_aside_is_marked_and_can_be_discarded(store: ArtifactStore) -> None:
    store.put([CONTENT])
    store.discard(DIGEST)
    assert store.size(DIGEST) == len(CONTENT)
    store.set_aside(DIGEST)
    assert [(blob.digest, blob.set_aside) for blob in store.blobs()] == [(DIGEST, True)]
    store.discard(DIGEST)
    assert list(store.blobs()) == []
    store.set_aside(DIGEST)
    store.bring_back(DIGEST)
    with pytest.raises(BlobMissing):
        store.size(DIGEST)


@pytest.mark.parametrize("call", ["open", "materialise", "put", "bring_back"])
def test_whoever_needs_it_brings_it_back(store: ArtifactStore, tmp_path: Path, call: str) -> None:
    store.put([CONTENT])
    store.set_aside(DIGEST)
    match call:
        case "open":
            store.open(DIGEST).close()
        case "materialise":
            store.materialise(DIGEST, tmp_path / "copy")
        case "put":
            store.put([CONTENT])
        case _:
            store.bring_back(DIGEST)
    store.discard(DIGEST)
    with store.open(DIGEST) as stream:
        assert stream.read() == CONTENT


def test_asking_for_its_size_brings_nothing_back(store: ArtifactStore) -> None:
    store.put([CONTENT])
    store.set_aside(DIGEST)
    assert store.size(DIGEST) == len(CONTENT)
    assert [blob.set_aside for blob in store.blobs()] == [True]


def test_storing_again_makes_it_new(store: ArtifactStore) -> None:
    store.put([CONTENT])
    (first,) = store.blobs()
    store.put([CONTENT])
    (second,) = store.blobs()
    assert second.since >= first.since
