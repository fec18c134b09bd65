"""What a page hears that asks by script after its session has ended: never a log-in form as a fragment."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseRedirectBase
from django.shortcuts import resolve_url
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from controlplane.web.pages import HtmxRequest, ToastLevel, toast


class LoggedOutMiddleware:
    """Turns the redirect to the log-in page into what the script that asked can act upon.

    A live part takes its page to the log-in and back. A form that is being filled in stays, with a toast, for
    its words would be lost. Other scripts get 401 and a message as JSON.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HtmxRequest) -> HttpResponse:
        response = self.get_response(request)
        if not _leads_to_login(response) or _by_hand(request):
            return response
        if not request.htmx:
            message = _("You are logged out. Log in again, then send it once more.")
            return JsonResponse({"error": {"message": message}}, status=HTTPStatus.UNAUTHORIZED)
        if request.method != "GET":
            message = _(
                "You are logged out. Log in again in another tab; what you typed stays here."
            )
            refused = HttpResponse(status=HTTPStatus.UNAUTHORIZED)
            return toast(refused, level=ToastLevel.ERROR, text=message)
        page = urlsplit(request.headers.get("HX-Current-URL", ""))
        back = f"{page.path or '/'}?{page.query}" if page.query else page.path or "/"
        login = resolve_url(settings.LOGIN_URL)
        return HttpResponseClientRedirect(f"{login}?{urlencode({'next': back})}")


def _leads_to_login(response: HttpResponse) -> bool:
    if not isinstance(response, HttpResponseRedirectBase):
        return False
    return urlsplit(response.url).path == resolve_url(settings.LOGIN_URL)


def _by_hand(request: HtmxRequest) -> bool:
    """Whether the browser itself asked, and will show the log-in page as a page."""
    if request.htmx:
        return bool(request.htmx.boosted)
    # Without the header it is no browser that we know of: it gets the redirect as ever.
    return request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
