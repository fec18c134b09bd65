"""Pages of who is told of alerts: receivers, and the routes to them."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from apps.accounts.web.requests import AuthenticatedRequest
from apps.fleet.selectors import require_operator
from apps.monitoring.models import AlertReceiver, AlertRoute
from apps.monitoring.selectors import alerts as selectors
from apps.monitoring.services import alerts_receivers as services
from apps.monitoring.services.alerts import AlertRefused
from apps.monitoring.web.alerts import tabs_of
from apps.monitoring.web.alerts_forms import RECEIVER_WORDS, ReceiverForm, RouteForm
from controlplane.domain.alerts.messages import ReceiverKind
from controlplane.web.message_translation import translate_message


@login_required
def routes(request: AuthenticatedRequest) -> HttpResponse:
    require_operator(request.user)
    receivers = selectors.receivers_visible(request.user)
    context = {
        "tabs": tabs_of("alert-routes"),
        "routes": selectors.routes_visible(request.user),
        "receivers": [
            {
                "receiver": row,
                "kind": RECEIVER_WORDS[ReceiverKind(row.kind)],
                "state": _state(row),
            }
            for row in receivers
        ],
    }
    return render(request, "monitoring/alerts_routes.html", context)


def _state(receiver: AlertReceiver) -> str:
    """A state of the common table of looks."""
    if not receiver.active:
        return "paused"
    if receiver.tried_at is None:
        return "untried"
    return "failing" if receiver.last_error else "working"


@sensitive_post_parameters("url", "secret")
@login_required
def receiver_new(request: AuthenticatedRequest) -> HttpResponse:
    require_operator(request.user)
    bound = request.method == "POST"
    form = ReceiverForm(request.POST if bound else None)
    if bound and form.is_valid():
        try:
            services.receiver_create(ask=form.ask(), actor=request.user)
        except AlertRefused as refusal:
            form.add_error(refusal.field, translate_message(str(refusal)))
        else:
            messages.success(request, _("The receiver was made; send a test to see that it works."))
            return redirect("alert-routes")
    context = {"form": form}
    status = 422 if bound else 200
    return render(request, "monitoring/alerts_receiver_new.html", context, status=status)


def _receiver(request: AuthenticatedRequest, uid: str) -> AlertReceiver:
    require_operator(request.user)
    return get_object_or_404(selectors.receivers_visible(request.user), uid=uid)


@login_required
@require_POST
def receiver_test(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = _receiver(request, uid)
    try:
        services.receiver_test(receiver=found, actor=request.user, at=timezone.now())
    except AlertRefused as refusal:
        messages.error(request, translate_message(str(refusal)))
    else:
        messages.success(request, _("The test is on its way; its result appears here in a moment."))
    return redirect("alert-routes")


@login_required
@require_POST
def receiver_switch(request: AuthenticatedRequest, uid: str, *, active: bool) -> HttpResponse:
    services.receiver_switch(receiver=_receiver(request, uid), actor=request.user, active=active)
    text = _("The receiver is told again.") if active else _("The receiver is paused.")
    messages.success(request, text)
    return redirect("alert-routes")


@login_required
@require_POST
def receiver_delete(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = _receiver(request, uid)
    services.receiver_delete(receiver=found, actor=request.user)
    messages.success(request, _("The receiver %(name)s was deleted.") % {"name": found.name})
    return redirect("alert-routes")


def _route(request: AuthenticatedRequest, uid: str) -> AlertRoute:
    require_operator(request.user)
    return get_object_or_404(selectors.routes_visible(request.user), uid=uid)


@login_required
def route_new(request: AuthenticatedRequest) -> HttpResponse:
    require_operator(request.user)
    return _edit(request, None)


@login_required
def route(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    return _edit(request, _route(request, uid))


def _edit(request: AuthenticatedRequest, row: AlertRoute | None) -> HttpResponse:
    bound = request.method == "POST"
    initial = None if row is None else RouteForm.initial_of(row)
    form = RouteForm(request.POST if bound else None, initial=initial)
    form.offer(selectors.receivers_visible(request.user))
    if bound and form.is_valid():
        try:
            if row is None:
                services.route_create(ask=form.ask(), actor=request.user)
            else:
                services.route_change(route=row, ask=form.ask(), actor=request.user)
        except AlertRefused as refusal:
            form.add_error(refusal.field, translate_message(str(refusal)))
        else:
            messages.success(request, _("The route is kept."))
            return redirect("alert-routes")
    context = {"form": form, "route": row}
    status = 422 if bound else 200
    return render(request, "monitoring/alerts_route.html", context, status=status)


@login_required
@require_POST
def route_delete(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = _route(request, uid)
    services.route_delete(route=found, actor=request.user)
    messages.success(request, _("The route %(name)s was deleted.") % {"name": found.name})
    return redirect("alert-routes")
