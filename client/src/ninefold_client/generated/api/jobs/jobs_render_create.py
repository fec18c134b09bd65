from typing import Any

from ...client import AuthenticatedClient
from ...models.launch_comparison import LaunchComparison
from ...models.launch_comparison_request_request import LaunchComparisonRequestRequest


def jobs_render_create(
    *,
    client: AuthenticatedClient,
    body: LaunchComparisonRequestRequest,
) -> LaunchComparison:
    """Compare the launches of a spec on two chips.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/jobs/render",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = LaunchComparison.from_dict(response.json())

    return response_200
