from typing import Any
from urllib.parse import quote

from ...client import AuthenticatedClient
from ...models.company_roles import CompanyRoles
from ...models.company_roles_set_request import CompanyRolesSetRequest


def company_roles_update(
    uid: str,
    *,
    client: AuthenticatedClient,
    body: CompanyRolesSetRequest,
) -> CompanyRoles:
    """Set the company roles of a user.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/api/v1/company-roles/{uid}".format(
            uid=quote(str(uid), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = CompanyRoles.from_dict(response.json())

    return response_200
