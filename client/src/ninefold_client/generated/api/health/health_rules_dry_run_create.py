from typing import Any

from ...client import AuthenticatedClient
from ...models.health_rule_dry_run_request import HealthRuleDryRunRequest
from ...models.health_rule_trials import HealthRuleTrials


def health_rules_dry_run_create(
    *,
    client: AuthenticatedClient,
    body: HealthRuleDryRunRequest,
) -> HealthRuleTrials:
    """Dry run of a health rule on stored metrics.

    :raises ninefold_client.errors.ApiError: if the server refuses the request.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/v1/health-rules/dry-run",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    _kwargs["headers"] = headers
    response = client.get_httpx_client().request(**_kwargs)
    response_200 = HealthRuleTrials.from_dict(response.json())

    return response_200
