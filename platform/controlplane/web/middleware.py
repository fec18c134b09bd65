"""The admin's own content security policy.

django-unfold runs Alpine, which evaluates expressions and sets styles; nowhere else may a page do that.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

ADMIN = "/admin/"
ADMIN_POLICY = {
    "script-src": ["'self'", "'unsafe-eval'"],
    "style-src": ["'self'", "'unsafe-inline'"],
}


class AdminPolicyMiddleware:
    """Relaxes the policy below ``/admin/`` only."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith(ADMIN):
            response._csp_replace = ADMIN_POLICY  # type: ignore[attr-defined]
        return response
