"""What the browser is told about pages, beside their content.

The admin has a content security policy of its own: django-unfold runs Alpine, which evaluates expressions and
sets styles; nowhere else may a page do that. No page asks for the devices of whoever looks at it.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

ADMIN = "/admin/"
ADMIN_POLICY = {
    "script-src": ["'self'", "'unsafe-eval'"],
    "style-src": ["'self'", "'unsafe-inline'"],
}
#: Features of the browser that nothing here uses, so that nothing that gets in can use them either.
UNUSED_FEATURES = ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")
PERMISSIONS = ", ".join(f"{feature}=()" for feature in UNUSED_FEATURES)


class AdminPolicyMiddleware:
    """Relaxes the policy below ``/admin/`` only."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith(ADMIN):
            response._csp_replace = ADMIN_POLICY  # type: ignore[attr-defined]  # django-csp's
        return response


class IsolationMiddleware:
    """Says that pages use no devices, and that other sites may not embed what is answered."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response
