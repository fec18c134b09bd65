"""The interface of the ModelScope hub.

``/api/v1/models/{repo}/repo/files?Revision=…&Recursive=true`` lists files with ``Sha256`` and ``Size``;
``/api/v1/models/{repo}/repo?Revision=…&FilePath=…`` is the content. It names no commit for a whole repository,
so the revision itself is what is downloaded, and the digests of the listing hold it to what was listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from controlplane.adapters.hubs.answers import ask, count, text
from controlplane.domain.registry.hubs import HubFile, HubRefused, RepositoryListing
from controlplane.ports.hubs import HubUnreachable
from controlplane.ports.outbound import Outbound


class ModelScopeHub:
    """Implements ``controlplane.ports.hubs.Hub``."""

    name = "modelscope"
    title = "ModelScope"
    address = "https://modelscope.cn"
    default_revision = "master"

    def listing(
        self, outbound: Outbound, *, address: str, repository: str, revision: str, token: str
    ) -> RepositoryListing:
        about = f"{repository} at {revision}"
        query = urlencode({"Revision": revision, "Recursive": "true"})
        found, _ = ask(
            outbound,
            f"{address}/api/v1/models/{repository}/repo/files?{query}",
            headers=self.headers(token=token),
            about=about,
        )
        if not isinstance(found, Mapping):
            raise HubUnreachable(f"the hub lists no files of {about}")
        if found.get("Code") != 200:
            raise HubRefused(f"the hub refuses {about}: {text(found.get('Message'))[:200]}")
        data = found.get("Data")
        entries = data.get("Files") if isinstance(data, Mapping) else None
        if not isinstance(entries, list):
            raise HubUnreachable(f"the hub lists no files of {about}")
        return RepositoryListing(
            commit=revision, files=tuple(_file(entry) for entry in entries if _is_file(entry))
        )

    def file_url(self, *, address: str, repository: str, commit: str, path: str) -> str:
        query = urlencode({"Revision": commit, "FilePath": path})
        return f"{address}/api/v1/models/{repository}/repo?{query}"

    def headers(self, *, token: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {token}"} if token else {}


def _is_file(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("Type") != "tree"


def _file(entry: Mapping[str, Any]) -> HubFile:
    return HubFile(
        path=text(entry.get("Path")),
        size=count(entry.get("Size")),
        sha256=text(entry.get("Sha256")),
    )
