from typing import Any

from ...client import AuthenticatedClient
from ...models.job_check import JobCheck
from ...models.job_submit_request import JobSubmitRequest


def jobs_check_create(
    *,
    client: AuthenticatedClient,
    body: JobSubmitRequest,
) -> JobCheck:
    """Check a job without submitting it.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/jobs/check",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = JobCheck.from_dict(response.json())

    return response_200
