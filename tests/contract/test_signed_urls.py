"""What presigned URLs allow, by the algorithm that AWS documents for services.

The S3 server of the other tests accepts any signature. Here the signature is computed again, as a service does it
(Signature Version 4, query parameters), over the request that somebody makes with the URL.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from controlplane.adapters.artifacts.s3 import S3Artifacts
from controlplane.ports.artifacts import StorageUnavailable
from ninefold_runtime.direct_uploads import DirectUploads
from ninefold_runtime.weight_cache import (
    InputUnavailable,
    RemoteBlob,
    WeightCache,
    store_certificates,
)
from tests import s3_servers
from tests.contract.web_servers import make_authority
from tests.s3_servers import KEYS, PART, HttpsBucket


@pytest.fixture
def store(s3_url: str) -> S3Artifacts:
    options: dict[str, Any] = s3_servers.store_options(s3_url, s3_servers.new_bucket(s3_url))
    return S3Artifacts(**options)


def signature_of(url: str, *, method: str, headers: dict[str, str]) -> str:
    """The signature that a service expects of this request.

    :raises KeyError: if the URL signs a header that the request lacks.
    """
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    (credential,), (at,), (names,) = (
        query[f"X-Amz-{name}"] for name in ("Credential", "Date", "SignedHeaders")
    )
    _key, scope = credential.split("/", 1)
    pairs = sorted(pair for pair in parts.query.split("&") if "X-Amz-Signature=" not in pair)
    signed = "".join(f"{name}:{headers[name]}\n" for name in names.split(";"))
    request = "\n".join((method, parts.path, "&".join(pairs), signed, names, "UNSIGNED-PAYLOAD"))
    text = "\n".join(("AWS4-HMAC-SHA256", at, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = b"AWS4" + KEYS["AWS_SECRET_ACCESS_KEY"].encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


def test_a_part_is_stored_only_with_the_announced_length_method_and_place(
    store: S3Artifacts,
) -> None:
    started = store.start_upload(size=PART + 10)
    assert [part.size for part in started.parts] == [PART, 10]
    for part in started.parts:
        parts = urlsplit(part.url)
        query = parse_qs(parts.query)
        assert query["X-Amz-Expires"] == ["1800"]
        given = query["X-Amz-Signature"][0]
        headers = {"host": parts.netloc, "content-length": str(part.size)}
        assert set(query["X-Amz-SignedHeaders"][0].split(";")) == set(headers)
        assert signature_of(part.url, method="PUT", headers=headers) == given
        longer = {**headers, "content-length": str(part.size + 1)}
        assert signature_of(part.url, method="PUT", headers=longer) != given
        assert signature_of(part.url, method="GET", headers=headers) != given
        elsewhere = part.url.replace("/incoming/", "/sha256/")
        assert signature_of(elsewhere, method="PUT", headers=headers) != given


def test_a_download_is_of_one_object_and_expires(store: S3Artifacts) -> None:
    store.url_validity = timedelta(minutes=7)
    blob = store.put([b"weights"])
    url = store.download(blob.digest).url
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    assert query["X-Amz-Expires"] == ["420"]
    headers = {"host": parts.netloc}
    given = query["X-Amz-Signature"][0]
    assert signature_of(url, method="GET", headers=headers) == given
    assert signature_of(url, method="DELETE", headers=headers) != given
    later = url.replace("X-Amz-Expires=420", "X-Amz-Expires=42000")
    assert signature_of(later, method="GET", headers=headers) != given


def test_a_service_with_an_authority_of_the_company_is_trusted_by_setting_its_file(
    https_bucket: HttpsBucket, tmp_path: Path
) -> None:
    options = s3_servers.store_options(https_bucket.url, https_bucket.name)
    with pytest.raises(StorageUnavailable, match="certificate verify failed"):
        S3Artifacts(**options).put([b"weights"])

    # What else is in the file, such as a key, is not handed to workloads.
    ca_file, authority = tmp_path / "ca.pem", Path(https_bucket.ca_file).read_text()
    another = make_authority(tmp_path, names=("s3.company",)).server.read_text()
    ca_file.write_text(f"# ours\n{another}{authority}")
    store = S3Artifacts(**options, ca_file=str(ca_file))
    assert "PRIVATE KEY" in another
    assert store.authorities == another[another.index("-----BEGIN CERT") :] + authority
    blob = store.put([os.urandom(3 * PART)])
    with store.open(blob.digest) as stream:
        content = stream.read()
    assert hashlib.sha256(content).hexdigest() == blob.digest.removeprefix("sha256:")

    # The runtime of a workload, first without its copy of the file.
    download = store.download(blob.digest)
    remote = RemoteBlob(digest=blob.digest, size=blob.size, url=download.url)
    with pytest.raises(InputUnavailable, match="NINEFOLD_S3_CA_FILE"):
        WeightCache(tmp_path / "cache", limit=blob.size).fetch([remote], report=print)
    cache = WeightCache(tmp_path / "cache", limit=blob.size, authorities=str(ca_file))
    cache.fetch([remote], report=print)
    assert cache.path(blob.digest).read_bytes() == content

    started = store.start_upload(size=blob.size)

    def post(path: str, _body: Mapping[str, Any], _timeout: float) -> Mapping[str, Any]:
        if path == "/uploads/complete":
            store.complete_upload(started.reference, digest=blob.digest, size=blob.size)
            return {}
        return {"upload": "1", "parts": [asdict(part) for part in started.parts]}

    def upload(file: Path, authorities: str) -> DirectUploads:
        uploads = DirectUploads(
            post, log=print, smallest=1, certificates=store_certificates(authorities)
        )
        sent = uploads.upload(
            file, path="model", size=blob.size, sha256=blob.digest.removeprefix("sha256:")
        )
        assert sent == bool(authorities)
        return uploads

    (tmp_path / "model").write_bytes(content)
    store.delete(blob.digest)
    assert "NINEFOLD_S3_CA_FILE" in upload(tmp_path / "model", "").failure
    upload(tmp_path / "model", str(ca_file))
    assert store.size(blob.digest) == blob.size
