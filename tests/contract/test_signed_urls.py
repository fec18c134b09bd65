"""What presigned URLs allow, by the algorithm that AWS documents for services.

The S3 server of the other tests accepts any signature. Here the signature is computed again, as a service does it
(Signature Version 4, query parameters), over the request that somebody makes with the URL.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from controlplane.adapters.artifacts.s3 import S3Artifacts
from tests import s3_servers
from tests.s3_servers import KEYS, PART


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
