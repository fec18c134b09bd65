from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.training_curve import TrainingCurve
from ...types import UNSET, Unset


def jobs_curve_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
    after: int | Unset = -1,
) -> TrainingCurve:
    """Reported metrics by step.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    params["after"] = after

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/jobs/{uid}/curve".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = TrainingCurve.from_dict(response.json())

    return response_200
