from typing import Any

from ...client import AuthenticatedClient
from ...models.evaluate_job_submit_request import EvaluateJobSubmitRequest
from ...models.finetune_job_submit_request import FinetuneJobSubmitRequest
from ...models.job_check import JobCheck
from ...models.quantize_job_submit_request import QuantizeJobSubmitRequest
from ...models.script_job_submit_request import ScriptJobSubmitRequest


def jobs_check_create(
    *,
    client: AuthenticatedClient,
    body: EvaluateJobSubmitRequest
    | FinetuneJobSubmitRequest
    | QuantizeJobSubmitRequest
    | ScriptJobSubmitRequest,
) -> JobCheck:
    """Check a job without submitting it.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/jobs/check",
    }

    if isinstance(body, FinetuneJobSubmitRequest):
        _kwargs["json"] = body.to_dict()
    elif isinstance(body, EvaluateJobSubmitRequest):
        _kwargs["json"] = body.to_dict()
    elif isinstance(body, QuantizeJobSubmitRequest):
        _kwargs["json"] = body.to_dict()
    else:
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = JobCheck.from_dict(response.json())

    return response_200
