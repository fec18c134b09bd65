"""How refusals of monitoring look to a client."""

from __future__ import annotations

from apps.monitoring.services.webhooks import WebhookRefused
from controlplane.web.problems import Problem, translates


@translates(WebhookRefused)
def _refused(error: WebhookRefused) -> Problem:
    errors = [{"field": error.field, "message": str(error)}]
    return Problem(status=422, code="webhook-refused", detail=str(error), errors=errors)
