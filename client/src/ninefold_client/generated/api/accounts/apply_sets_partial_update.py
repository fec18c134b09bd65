from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.apply_set import ApplySet
from ...models.patched_apply_set_change_request import PatchedApplySetChangeRequest
from ...types import UNSET, Unset


def apply_sets_partial_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: PatchedApplySetChangeRequest | Unset = UNSET,
) -> ApplySet:
    """Replace the objects of an apply set.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/api/v1/apply-sets/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = ApplySet.from_dict(response.json())

    return response_200
