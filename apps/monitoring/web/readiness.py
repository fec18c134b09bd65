"""``/readyz``: every part that a request may need."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.models.selectors import artifact_store
from controlplane.web import health

READINESS = health.Readiness(
    {
        "database": health.database_answers,
        "migrations": health.migrations_applied,
        "broker": health.broker_answers,
        "artifacts": lambda: health.writes_into(artifact_store()),
        "encryption_key": health.key_is_loaded,
    }
)


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 while the product can work, else 503; each part with its word, and no secret among them."""
    return READINESS.answer()
