from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.log import Log
from ...models.replicas_log_retrieve_format import (
    ReplicasLogRetrieveFormat,
)
from ...types import UNSET, Unset


def replicas_log_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
    format_: ReplicasLogRetrieveFormat | Unset = UNSET,
    limit: int | Unset = 65536,
    offset: int | Unset = 0,
    process: int | Unset = 0,
) -> Log:
    """Log of the current run of a replica.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    params: dict[str, Any] = {}

    json_format_: str | Unset = UNSET
    if not isinstance(format_, Unset):
        json_format_ = format_

    params["format"] = json_format_

    params["limit"] = limit

    params["offset"] = offset

    params["process"] = process

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/replicas/{uid}/log".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Log.from_dict(response.json())

    return response_200
