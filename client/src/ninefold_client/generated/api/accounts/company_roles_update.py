from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.company_roles import CompanyRoles
from ...models.company_roles_set_request import CompanyRolesSetRequest
from ...types import UNSET, Unset


def company_roles_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: CompanyRolesSetRequest,
    dry_run: bool | Unset = False,
) -> CompanyRoles:
    """Set the company roles of a user.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/company-roles/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
        "params": params,
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = CompanyRoles.from_dict(response.json())

    return response_200
