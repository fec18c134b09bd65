"""Adapters for the Hugging Face and ModelScope hubs: JSON requests, file lists and download URLs.

Hugging Face (its API documentation; mirrors serve the same interface):
``/api/models/{repo}/revision/{revision}`` names the commit, ``/api/models/{repo}/tree/{commit}`` lists files a
page at a time (``Link: <…>; rel="next"``), ``lfs.oid`` is the SHA-256 of a large file and ``oid`` git's SHA-1
of a small one, ``/{repo}/resolve/{commit}/{path}`` is the content.

ModelScope: ``/api/v1/models/{repo}/repo/files?Revision=…&Recursive=true`` lists files with ``Sha256`` and
``Size``; ``/api/v1/models/{repo}/repo?Revision=…&FilePath=…`` is the content. It names no commit for a whole
repository, so the revision itself is downloaded, and the digests of the listing detect a change in between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urljoin

from controlplane.domain.common.reasons import Reason
from controlplane.domain.outbound.egress import is_same_origin
from controlplane.domain.registry.model_hubs import (
    MAX_FILES,
    HubFile,
    HubImportRefused,
    RepositoryListing,
)
from controlplane.ports.model_hubs import HubUnreachable
from controlplane.ports.outbound_http import OutboundFailed, OutboundHttpClient, OutboundResponse


def _no_files(about: str) -> Reason:
    return Reason(
        "model_import.response.files_missing",
        "the response of the model hub has no files of {repository}",
        repository=about,
    )


def fetch_json(
    outbound: OutboundHttpClient, url: str, *, headers: Mapping[str, str], about: str
) -> tuple[Any, OutboundResponse]:
    """The JSON at the URL, with its answer.

    :raises HubImportRefused: if there is nothing there, or it may not be read.
    :raises HubUnreachable: if no JSON came.
    """
    try:
        answer = outbound.fetch(url, headers=headers)
    except OutboundFailed as failure:
        raise HubUnreachable(
            "model_import.hub.unreachable",
            "the model hub cannot be reached: {error}",
            error=str(failure),
        ) from failure
    if answer.status == 404:
        raise HubImportRefused(
            "model_import.repository.not_found",
            "the model hub has no {repository}",
            repository=about,
        )
    if answer.status in (401, 403):
        raise HubImportRefused(
            "model_import.repository.not_readable",
            "the model hub refuses access to {repository}; it may not exist, or its owner requires "
            "consent: accept the terms on the hub and set a token of that account",
            repository=about,
        )
    if answer.status != 200:
        raise HubUnreachable(
            "model_import.response.unexpected_status",
            "the model hub responded to {repository} with status {status}",
            repository=about,
            status=answer.status,
        )
    try:
        return json.loads(answer.body), answer
    except (ValueError, RecursionError):
        raise HubUnreachable(
            "model_import.response.not_json",
            "the response of the model hub to {repository} is not JSON",
            repository=about,
        ) from None


def text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def size_or_invalid(value: Any) -> int:
    """A size; -1, which no check lets pass, where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="next"')
_MOST_PAGES = 20


class HuggingFaceHub:
    """Implements ``controlplane.ports.model_hubs.Hub``."""

    name = "huggingface"
    title = "Hugging Face"
    address = "https://huggingface.co"
    default_revision = "main"

    def listing(
        self,
        outbound: OutboundHttpClient,
        *,
        address: str,
        repository: str,
        revision: str,
        token: str,
    ) -> RepositoryListing:
        headers = self.headers(token=token)
        about = f"{repository} at {revision}"
        base = f"{address}/api/models/{repository}"
        found, _ = fetch_json(
            outbound, f"{base}/revision/{quote(revision, safe='')}", headers=headers, about=about
        )
        commit = text_or_empty(found.get("sha")) if isinstance(found, Mapping) else ""
        if not re.fullmatch(r"[0-9a-f]{40}", commit):
            raise HubUnreachable(
                "model_import.response.commit_missing",
                "the response of the model hub has no commit of {repository}",
                repository=about,
            )
        files = self._list_files(outbound, f"{base}/tree/{commit}?recursive=true", headers, about)
        return RepositoryListing(commit=commit, files=tuple(files))

    def _list_files(
        self, outbound: OutboundHttpClient, url: str, headers: Mapping[str, str], about: str
    ) -> Iterator[HubFile]:
        for _ in range(_MOST_PAGES):
            entries, answer = fetch_json(outbound, url, headers=headers, about=about)
            if not isinstance(entries, list):
                raise HubUnreachable(_no_files(about))
            yield from (
                _hugging_face_file(entry) for entry in entries if _is_hugging_face_file(entry)
            )
            following = _NEXT.search(answer.headers.get("link", ""))
            if following is None:
                return
            page = urljoin(url, following[1])
            if headers and not is_same_origin(before=url, after=page):
                raise HubUnreachable(
                    "model_import.response.other_host",
                    "the next page of the files of {repository} is on another host; the token is not "
                    "sent there",
                    repository=about,
                )
            url = page
        raise HubUnreachable(
            "model_import.repository.too_many_files",
            "{repository} has more than {limit} files, the maximum",
            repository=about,
            limit=MAX_FILES,
        )

    def file_url(self, *, address: str, repository: str, commit: str, path: str) -> str:
        return f"{address}/{repository}/resolve/{commit}/{quote(path)}"

    def headers(self, *, token: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {token}"} if token else {}


def _is_hugging_face_file(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("type") == "file"


def _hugging_face_file(entry: Mapping[str, Any]) -> HubFile:
    lfs = entry.get("lfs")
    return HubFile(
        path=text_or_empty(entry.get("path")),
        size=size_or_invalid(entry.get("size")),
        sha256=text_or_empty(lfs.get("oid")) if isinstance(lfs, Mapping) else "",
        git_sha1="" if lfs else text_or_empty(entry.get("oid")),
    )


class ModelScopeHub:
    """Implements ``controlplane.ports.model_hubs.Hub``."""

    name = "modelscope"
    title = "ModelScope"
    address = "https://modelscope.cn"
    default_revision = "master"

    def listing(
        self,
        outbound: OutboundHttpClient,
        *,
        address: str,
        repository: str,
        revision: str,
        token: str,
    ) -> RepositoryListing:
        about = f"{repository} at {revision}"
        query = urlencode({"Revision": revision, "Recursive": "true"})
        found, _ = fetch_json(
            outbound,
            f"{address}/api/v1/models/{repository}/repo/files?{query}",
            headers=self.headers(token=token),
            about=about,
        )
        if not isinstance(found, Mapping):
            raise HubUnreachable(_no_files(about))
        if found.get("Code") != 200:
            raise HubImportRefused(
                "model_import.repository.refused",
                "the model hub refuses {repository}: {detail}",
                repository=about,
                detail=text_or_empty(found.get("Message"))[:200],
            )
        data = found.get("Data")
        entries = data.get("Files") if isinstance(data, Mapping) else None
        if not isinstance(entries, list):
            raise HubUnreachable(_no_files(about))
        return RepositoryListing(
            commit=revision,
            files=tuple(_modelscope_file(entry) for entry in entries if _is_modelscope_file(entry)),
        )

    def file_url(self, *, address: str, repository: str, commit: str, path: str) -> str:
        query = urlencode({"Revision": commit, "FilePath": path})
        return f"{address}/api/v1/models/{repository}/repo?{query}"

    def headers(self, *, token: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {token}"} if token else {}


def _is_modelscope_file(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("Type") != "tree"


def _modelscope_file(entry: Mapping[str, Any]) -> HubFile:
    return HubFile(
        path=text_or_empty(entry.get("Path")),
        size=size_or_invalid(entry.get("Size")),
        sha256=text_or_empty(entry.get("Sha256")),
    )
