from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.what_if_outcome import WhatIfOutcome


def what_ifs_retrieve(
    uid: str,
    *,
    client: AuthenticatedClient,
) -> WhatIfOutcome:
    """A what-if request and its result.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/v1/what-ifs/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    response = client.get_httpx_client().request(**_kwargs)
    response_200 = WhatIfOutcome.from_dict(response.json())

    return response_200
