"""What every page does the same way: a page or its fragment, keyset paging, actions that may be refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any, Generic, TypeVar

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import Promise
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event
from django_htmx.middleware import HtmxDetails

from controlplane.domain.machines import IllegalTransition
from controlplane.web.sentences import said

Row = TypeVar("Row", bound=Model)

#: htmx ends a poller that gets this status, and still swaps what came with it.
STOP_POLLING = 286
PAGE_SIZE = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Row]):
    """Rows, newest first, and where the next page begins."""

    rows: list[Row]
    #: Uid of the last row where older ones follow, else empty; goes into ``?before=``.
    next_before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """One part of a page with an address of its own."""

    label: str | Promise
    href: str
    current: bool = False
    #: How many things are on it, where that helps to choose.
    count: int | str | None = None


class HtmxRequest(HttpRequest):
    """What every view gets; for type checkers only."""

    #: What htmx says of its request; false where the browser itself asks.
    htmx: HtmxDetails


class ToastLevel(StrEnum):
    SUCCESS = "success"
    ERROR = "error"
    INFO = "info"


def keyset(rows: QuerySet[Row], *, before: str, size: int = PAGE_SIZE) -> Page[Row]:
    """The page that follows the row with that uid; the first one if it is empty or none of ``rows``."""
    if before and (edge := rows.filter(uid=before).first()) is not None:
        rows = rows.filter(pk__lt=edge.pk)
    found = list(rows.order_by("-pk")[: size + 1])
    shown = found[:size]
    more = len(found) > size
    return Page(rows=shown, next_before=getattr(shown[-1], "uid", "") if more else "")


def is_fragment(request: HtmxRequest) -> bool:
    """Whether htmx asks for a part of the page."""
    return bool(request.htmx) and not request.htmx.boosted


def show(
    request: HtmxRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    fragment: str,
    changing: bool = False,
) -> HttpResponse:
    """The page, or for htmx the named partial of it.

    ``changing`` says whether a later look would show something else; pollers stop where it would not.
    """
    if not is_fragment(request):
        return render(request, template, {**context, "changing": changing})
    status = 200 if changing else STOP_POLLING
    return render(
        request, f"{template}#{fragment}", {**context, "changing": changing}, status=status
    )


def acted(
    request: HttpRequest,
    action: Callable[[], object],
    *,
    back: str,
    done: str = "",
    refusals: tuple[type[Exception], ...] = (IllegalTransition,),
) -> HttpResponse:
    """Do it and go back, with a message; a refusal is a message too, for somebody may have been first.

    Without ``done``, what the action gives back is the message.
    """
    try:
        outcome = action()
    except refusals as refusal:
        messages.error(request, said(str(refusal)))
    else:
        messages.success(request, done or str(outcome))
    return redirect(back)


def acting(
    *,
    found: Callable[[Any, str], Row],
    page: str,
    refusals: tuple[type[Exception], ...] = (IllegalTransition,),
    query: str = "",
) -> Callable[[Callable[..., str]], Callable[..., HttpResponse]]:
    """Turn functions that do something to the row of a page into POST views that lead back to the page.

    Such a function gets the request, the row that ``found`` gives for the request and the uid, and what else
    the address names; it gives back what to say once it is done. ``page`` names the page's address, which
    takes the uid.
    """

    def decorated(act: Callable[..., str]) -> Callable[..., HttpResponse]:
        @login_required
        @require_POST
        @wraps(act)
        def view(request: HttpRequest, uid: str, **named: Any) -> HttpResponse:
            row = found(request, uid)
            back = reverse(page, args=[uid])
            return acted(
                request,
                lambda: act(request, row, **named),
                back=f"{back}?{query}" if query else back,
                refusals=refusals,
            )

        return view

    return decorated


def toast(response: HttpResponse, *, level: str, text: str | Promise) -> HttpResponse:
    """The answer to htmx with a toast on top of what it swaps; ``level`` is one of ``ToastLevel``."""
    content = {"level": ToastLevel(level).value, "text": str(text)}
    trigger_client_event(response, "toast", content)
    return response
