from typing import Any

from ...client import AuthenticatedClient
from ...models.metric_source import MetricSource
from ...models.metric_source_create_request import MetricSourceCreateRequest
from ...types import UNSET, Unset


def telemetry_sources_create(
    *,
    client: AuthenticatedClient,
    body: MetricSourceCreateRequest,
    idempotency_key: str | Unset = UNSET,
) -> MetricSource:
    """Create a metric source.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/telemetry-sources",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = MetricSource.from_dict(response.json())

    return response_201
