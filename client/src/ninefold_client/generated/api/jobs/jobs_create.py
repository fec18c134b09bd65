from typing import Any

from ...client import AuthenticatedClient
from ...models.job_detail import JobDetail
from ...models.job_submit_request import JobSubmitRequest
from ...types import UNSET, Unset


def jobs_create(
    *,
    client: AuthenticatedClient,
    body: JobSubmitRequest,
    idempotency_key: str | Unset = UNSET,
) -> JobDetail:
    """Submit a job.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/jobs",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_201 = JobDetail.from_dict(response.json())

    return response_201
