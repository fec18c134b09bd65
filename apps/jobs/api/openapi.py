"""How attempts' authentication is described to readers of the schema."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema


class AttemptTokenScheme(OpenApiAuthenticationExtension):
    target_class = "apps.jobs.api.attempts.AttemptTokenAuthentication"
    name = "attemptToken"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "The attempt's own token, in its environment as NINEFOLD_ATTEMPT_TOKEN.",
        }
