from io import BytesIO
from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...types import File


def evaluations_report_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> File:
    """Evaluation report as JSON.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/evaluations/{uid}/report".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = File(payload=BytesIO(response.content))

    return response_200
