from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.evaluate_job_detail import EvaluateJobDetail
from ...models.finetune_job_detail import FinetuneJobDetail
from ...models.quantize_job_detail import QuantizeJobDetail
from ...models.script_job_detail import ScriptJobDetail
from ...types import UNSET, Unset


def jobs_cancel_create(
    uid: str,
    *,
    client: AuthenticatedClient,
    idempotency_key: str | Unset = UNSET,
) -> EvaluateJobDetail | FinetuneJobDetail | QuantizeJobDetail | ScriptJobDetail:
    """Cancel a job.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/jobs/{uid}/cancel".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)

    def _parse_response_200(
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

    response_200 = _parse_response_200(response.json())

    return response_200
