from typing import Any

from ...client import AuthenticatedClient
from ...models.paginated_evaluation_list import PaginatedEvaluationList
from ...types import UNSET, Unset


def evaluations_list(
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    dataset_version: str | Unset = UNSET,
    job: str | Unset = UNSET,
    model_version: str | Unset = UNSET,
    page_size: int | Unset = 50,
) -> PaginatedEvaluationList:
    """Evaluations.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["dataset_version"] = dataset_version

    params["job"] = job

    params["model_version"] = model_version

    params["page_size"] = page_size

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/evaluations",
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = PaginatedEvaluationList.from_dict(response.json())

    return response_200
