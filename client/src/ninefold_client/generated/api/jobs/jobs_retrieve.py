from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.job_detail import JobDetail


def jobs_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> JobDetail:
    """A job with its latest attempt, pending reasons and outputs.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/jobs/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = JobDetail.from_dict(response.json())

    return response_200
