"""An API server's answers without a server: what was asked is found in a table, or made by a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controlplane.adapters.clusters.kubernetes.api import ApiRefused, KubernetesApi
from controlplane.adapters.clusters.kubernetes.kubeconfig import ApiAccess

Answer = Mapping[str, Any] | Exception
Review = Callable[[Mapping[str, Any]], bool]


def listing(*items: Mapping[str, Any]) -> dict[str, Any]:
    return {"items": list(items), "metadata": {"resourceVersion": "1"}}


class AnsweringApi(KubernetesApi):
    """Answers by path; what is not in the table is missing. Reviews of permissions are judged by ``may``."""

    def __init__(
        self, answers: Mapping[str, Answer], *, may: Review = lambda _attributes: True
    ) -> None:
        super().__init__(ApiAccess(server="https://cluster.invalid"))
        self._answers, self._may = answers, may
        #: Paths and queries, in order.
        self.requested: list[tuple[str, Mapping[str, str]]] = []

    def _request_json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        **_options: object,
    ) -> dict[str, Any]:
        self.requested.append((path, query or {}))
        if method == "POST" and isinstance(body, Mapping):
            return {"status": {"allowed": self._may(body["spec"]["resourceAttributes"])}}
        answer = self._answers.get(path)
        if answer is None:
            raise ApiRefused(status=404, reason="NotFound", message=f"{path} is not there")
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)


class StoringApi(AnsweringApi):
    """Keeps what is created, and takes away what is deleted; merges and applies change nothing."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.stored: dict[str, Any] = dict(answers)
        super().__init__(self.stored)

    def _request_json(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        **_options: object,
    ) -> dict[str, Any]:
        if method == "POST" and isinstance(body, Mapping):
            created = {**body, "metadata": {**body["metadata"], "uid": "u-1"}}
            self.stored[f"{path}/{created['metadata']['name']}"] = created
        elif method == "DELETE":
            self.stored.pop(path, None)
        elif method == "GET":
            return super()._request_json(method, path, query=query)
        return {}
