from typing import Any

from ...client import AuthenticatedClient
from ...models.pipeline_check import PipelineCheck
from ...models.pipeline_submit_request import PipelineSubmitRequest


def pipelines_check_create(
    *,
    client: AuthenticatedClient,
    body: PipelineSubmitRequest,
) -> PipelineCheck:
    """Check a pipeline without submitting it.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/pipelines/check",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PipelineCheck.from_dict(response.json())

    return response_200
