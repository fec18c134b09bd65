"""``/readyz``: every part that a request may need."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.models.selectors import artifact_store
from controlplane.web import health

READINESS = health.Readiness(
    {
        "database": health.check_database,
        "migrations": health.check_migrations,
        "broker": health.check_broker,
        "artifacts": lambda: health.check_artifact_store(artifact_store()),
        "encryption_key": health.check_encryption_key,
    }
)


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 while the product can work, else 503; each part with its word, and no secret among them."""
    return READINESS.answer()
