"""Whether the product answers."""

from __future__ import annotations

from http import HTTPStatus

from django.db import Error, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while this process runs and its database answers, 503 while the database does not."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        # Why stays in the log: whoever asks here need not be logged in.
        return JsonResponse(
            {"status": "unavailable", "database": "does not answer"},
            status=HTTPStatus.SERVICE_UNAVAILABLE,
        )
    return JsonResponse({"status": "ok", "database": "answers"})
