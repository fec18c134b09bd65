from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.metric_source import MetricSource
from ...models.patched_metric_source_change_request import (
    PatchedMetricSourceChangeRequest,
)
from ...types import UNSET, Unset


def telemetry_sources_partial_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: PatchedMetricSourceChangeRequest | Unset = UNSET,
) -> MetricSource:
    """Change, pause or resume a metric source.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/telemetry-sources/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = MetricSource.from_dict(response.json())

    return response_200
