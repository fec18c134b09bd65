from typing import Any

from ...client import AuthenticatedClient
from ...models.evaluate_job_detail import EvaluateJobDetail
from ...models.evaluate_job_submit_request import EvaluateJobSubmitRequest
from ...models.finetune_job_detail import FinetuneJobDetail
from ...models.finetune_job_submit_request import FinetuneJobSubmitRequest
from ...models.quantize_job_detail import QuantizeJobDetail
from ...models.quantize_job_submit_request import QuantizeJobSubmitRequest
from ...models.script_job_detail import ScriptJobDetail
from ...models.script_job_submit_request import ScriptJobSubmitRequest
from ...types import UNSET, Unset


def jobs_create(
    *,
    client: AuthenticatedClient,
    body: EvaluateJobSubmitRequest
    | FinetuneJobSubmitRequest
    | QuantizeJobSubmitRequest
    | ScriptJobSubmitRequest,
    dry_run: bool | Unset = False,
    idempotency_key: str | Unset = UNSET,
) -> EvaluateJobDetail | FinetuneJobDetail | QuantizeJobDetail | ScriptJobDetail:
    """Submit a job.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/jobs",
        "params": params,
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

    def _parse_response_201(
        data: object,
    ) -> EvaluateJobDetail | FinetuneJobDetail | QuantizeJobDetail | ScriptJobDetail:
        try:
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_job_detail_type_0 = FinetuneJobDetail.from_dict(data)

            return componentsschemas_job_detail_type_0
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        try:
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_job_detail_type_1 = EvaluateJobDetail.from_dict(data)

            return componentsschemas_job_detail_type_1
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        try:
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_job_detail_type_2 = QuantizeJobDetail.from_dict(data)

            return componentsschemas_job_detail_type_2
        except (TypeError, ValueError, AttributeError, KeyError):
            pass
        if not isinstance(data, dict):
            raise TypeError()
        componentsschemas_job_detail_type_3 = ScriptJobDetail.from_dict(data)

        return componentsschemas_job_detail_type_3

    response_201 = _parse_response_201(response.json())

    return response_201
