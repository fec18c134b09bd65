"""The interface of the Hugging Face hub and of mirrors that speak it.

Read in its API documentation: ``/api/models/{repo}/revision/{revision}`` names the commit,
``/api/models/{repo}/tree/{commit}`` lists files a page at a time (``Link: <…>; rel="next"``), ``lfs.oid`` is the
SHA-256 of a large file and ``oid`` git's SHA-1 of a small one, ``/{repo}/resolve/{commit}/{path}`` is the
content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urljoin

from controlplane.adapters.hubs.answers import ask, count, text
from controlplane.domain.outbound.egress import is_same_origin
from controlplane.domain.registry.hubs import MAX_FILES, HubFile, RepositoryListing
from controlplane.ports.hubs import HubUnreachable
from controlplane.ports.outbound import Outbound

_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="next"')
_MOST_PAGES = 20


class HuggingFaceHub:
    """Implements ``controlplane.ports.hubs.Hub``."""

    name = "huggingface"
    title = "Hugging Face"
    address = "https://huggingface.co"
    default_revision = "main"

    def listing(
        self, outbound: Outbound, *, address: str, repository: str, revision: str, token: str
    ) -> RepositoryListing:
        headers = self.headers(token=token)
        about = f"{repository} at {revision}"
        base = f"{address}/api/models/{repository}"
        found, _ = ask(
            outbound, f"{base}/revision/{quote(revision, safe='')}", headers=headers, about=about
        )
        commit = text(found.get("sha")) if isinstance(found, Mapping) else ""
        if not re.fullmatch(r"[0-9a-f]{40}", commit):
            raise HubUnreachable(f"the hub names no commit of {about}")
        files = self._files(outbound, f"{base}/tree/{commit}?recursive=true", headers, about)
        return RepositoryListing(commit=commit, files=tuple(files))

    def _files(
        self, outbound: Outbound, url: str, headers: Mapping[str, str], about: str
    ) -> Iterator[HubFile]:
        for _ in range(_MOST_PAGES):
            entries, answer = ask(outbound, url, headers=headers, about=about)
            if not isinstance(entries, list):
                raise HubUnreachable(f"the hub lists no files of {about}")
            yield from (_file(entry) for entry in entries if _is_file(entry))
            following = _NEXT.search(answer.headers.get("link", ""))
            if following is None:
                return
            page = urljoin(url, following[1])
            if headers and not is_same_origin(before=url, after=page):
                raise HubUnreachable(
                    f"the hub names a page of files of {about} on another host; the token is not sent there"
                )
            url = page
        raise HubUnreachable(f"{about} has more pages of files than {MAX_FILES} files need")

    def file_url(self, *, address: str, repository: str, commit: str, path: str) -> str:
        return f"{address}/{repository}/resolve/{commit}/{quote(path)}"

    def headers(self, *, token: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {token}"} if token else {}


def _is_file(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("type") == "file"


def _file(entry: Mapping[str, Any]) -> HubFile:
    lfs = entry.get("lfs")
    return HubFile(
        path=text(entry.get("path")),
        size=count(entry.get("size")),
        sha256=text(lfs.get("oid")) if isinstance(lfs, Mapping) else "",
        git_sha1="" if lfs else text(entry.get("oid")),
    )
