from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.metric_source import MetricSource


def telemetry_sources_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> MetricSource:
    """Get a metric source.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/telemetry-sources/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = MetricSource.from_dict(response.json())

    return response_200
