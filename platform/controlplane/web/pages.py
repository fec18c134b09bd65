"""Shared page behaviour: page or fragment, keyset paging, forms and actions that can be refused, toasts."""

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

from controlplane.domain.common.reasons import FieldRefused
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.rules.conditions import RuleInvalid
from controlplane.web.forms import StyledForm
from controlplane.web.reasons import render_reason

Row = TypeVar("Row", bound=Model)
Saved = TypeVar("Saved")

#: htmx ends a poller that gets this status, and still swaps what came with it.
STOP_POLLING = 286
PAGE_SIZE = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysetPage(Generic[Row]):
    """Rows, newest first, and where the next page begins."""

    rows: list[Row]
    #: Uid of the last row where older ones follow, else empty; goes into ``?before=``.
    next_before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTab:
    """A tab of a page with a URL of its own."""

    label: str | Promise
    href: str
    current: bool = False
    #: How many things are on it, where that helps to choose.
    count: int | str | None = None


class HtmxRequest(HttpRequest):
    """What every view gets; for type checkers only."""

    #: htmx details; false for requests by the browser itself.
    htmx: HtmxDetails


class ToastLevel(StrEnum):
    SUCCESS = "success"
    ERROR = "error"
    INFO = "info"


def keyset_page(rows: QuerySet[Row], *, before: str, size: int = PAGE_SIZE) -> KeysetPage[Row]:
    """Return the page after the row with that uid; the first page if it is empty or unknown."""
    if before and (edge := rows.filter(uid=before).first()) is not None:
        rows = rows.filter(pk__lt=edge.pk)
    matching = list(rows.order_by("-pk")[: size + 1])
    shown = matching[:size]
    more = len(matching) > size
    return KeysetPage(rows=shown, next_before=getattr(shown[-1], "uid", "") if more else "")


def is_htmx_fragment_request(request: HtmxRequest) -> bool:
    """Return whether htmx requests a fragment."""
    return bool(request.htmx) and not request.htmx.boosted


def render_page(
    request: HtmxRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    fragment: str,
    changing: bool = False,
) -> HttpResponse:
    """Render the page, or for htmx the named partial of it.

    ``changing``: whether the content can still change; pollers stop otherwise.
    """
    if not is_htmx_fragment_request(request):
        return render(request, template, {**context, "changing": changing})
    status = 200 if changing else STOP_POLLING
    return render(
        request, f"{template}#{fragment}", {**context, "changing": changing}, status=status
    )


def save_form(
    form: StyledForm,
    save: Callable[[], Saved],
    *,
    refusals: Mapping[type[Exception], str] | None = None,
) -> Saved | None:
    """Save what a valid form contains; None if it is not valid, with the reasons at its fields.

    :param refusals: further exceptions that refuse it, each with the field to which it belongs, or "" for the
        whole form; one with ``findings`` belongs to their fields.
    """
    if not form.is_bound or not form.is_valid():
        return None
    refusals = refusals or {}
    expected: tuple[type[Exception], ...] = (RuleInvalid, FieldRefused, *refusals)
    try:
        return save()
    except expected as refusal:
        known = next((field for kind, field in refusals.items() if isinstance(refusal, kind)), "")
        whole = FieldFinding(field=getattr(refusal, "field", known), message=str(refusal))
        findings = getattr(refusal, "findings", (whole,))
    form.add_findings(
        FieldFinding(field=one.field, message=render_reason(one.message)) for one in findings
    )
    return None


def render_form(
    request: HttpRequest, template: str, form: StyledForm, **context: object
) -> HttpResponse:
    """The page of a form; with status 422 if it was submitted."""
    status = 422 if form.is_bound else 200
    return render(request, template, {"form": form, **context}, status=status)


def run_action(
    request: HttpRequest,
    action: Callable[[], object],
    *,
    back: str,
    done: str = "",
    refusals: tuple[type[Exception], ...] = (IllegalTransition,),
) -> HttpResponse:
    """Run the action and redirect back with a message; refusals are error messages.

    Without ``done``, the return value of the action is the message.
    """
    try:
        outcome = action()
    except refusals as refusal:
        messages.error(request, render_reason(str(refusal)))
    else:
        messages.success(request, done or str(outcome))
    return redirect(back)


def row_action_view(
    *,
    load: Callable[[Any, str], Row],
    page: str,
    refusals: tuple[type[Exception], ...] = (IllegalTransition,),
    query: str = "",
    listed: bool = False,
) -> Callable[[Callable[..., str]], Callable[..., HttpResponse]]:
    """Turn functions that act on the row of a page into POST views that redirect back to the page.

    Such a function gets the request, the row that ``load`` returns for the request and the uid, and further URL
    arguments; it returns the success message. ``page`` is the URL name of the page, which takes the uid unless
    the rows are ``listed`` on it.
    """

    def decorated(action: Callable[..., str]) -> Callable[..., HttpResponse]:
        @login_required
        @require_POST
        @wraps(action)
        def view(request: HttpRequest, uid: str, **named: Any) -> HttpResponse:
            row = load(request, uid)
            back = reverse(page, args=() if listed else [uid])
            return run_action(
                request,
                lambda: action(request, row, **named),
                back=f"{back}?{query}" if query else back,
                refusals=refusals,
            )

        return view

    return decorated


def add_toast(response: HttpResponse, *, level: str, text: str | Promise) -> HttpResponse:
    """Add a toast to an htmx response; ``level`` is one of ``ToastLevel``."""
    content = {"level": ToastLevel(level).value, "text": str(text)}
    trigger_client_event(response, "toast", content)
    return response
