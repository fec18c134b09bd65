from typing import Any

from ...client import AuthenticatedClient
from ...models.evaluate_launch_comparison_request_request import (
    EvaluateLaunchComparisonRequestRequest,
)
from ...models.finetune_launch_comparison_request_request import (
    FinetuneLaunchComparisonRequestRequest,
)
from ...models.launch_comparison import LaunchComparison
from ...models.quantize_launch_comparison_request_request import (
    QuantizeLaunchComparisonRequestRequest,
)
from ...models.script_launch_comparison_request_request import (
    ScriptLaunchComparisonRequestRequest,
)


def jobs_render_create(
    *,
    client: AuthenticatedClient,
    body: EvaluateLaunchComparisonRequestRequest
    | FinetuneLaunchComparisonRequestRequest
    | QuantizeLaunchComparisonRequestRequest
    | ScriptLaunchComparisonRequestRequest,
) -> LaunchComparison:
    """Compare the launches of a spec on two chips.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/jobs/render",
    }

    if isinstance(body, FinetuneLaunchComparisonRequestRequest):
        _kwargs["json"] = body.to_dict()
    elif isinstance(body, EvaluateLaunchComparisonRequestRequest):
        _kwargs["json"] = body.to_dict()
    elif isinstance(body, QuantizeLaunchComparisonRequestRequest):
        _kwargs["json"] = body.to_dict()
    else:
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = LaunchComparison.from_dict(response.json())

    return response_200
