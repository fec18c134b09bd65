from typing import Any

from ...client import AuthenticatedClient
from ...models.alert_rule_create_request import AlertRuleCreateRequest
from ...models.alert_trial import AlertTrial


def alert_rules_trial_create(
    *,
    client: AuthenticatedClient,
    body: AlertRuleCreateRequest,
) -> AlertTrial:
    """Dry run of an alert rule.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/alert-rules/trial",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = AlertTrial.from_dict(response.json())

    return response_200
