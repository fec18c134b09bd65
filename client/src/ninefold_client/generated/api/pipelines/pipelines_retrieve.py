from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.pipeline import Pipeline


def pipelines_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> Pipeline:
    """A pipeline with its steps, outputs and metrics.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/pipelines/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = Pipeline.from_dict(response.json())

    return response_200
