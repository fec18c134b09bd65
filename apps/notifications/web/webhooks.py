"""Pages of a team's webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.notifications.models import Webhook, WebhookDelivery
from apps.notifications.selectors import webhooks as selectors
from apps.notifications.selectors.notifications import (
    NOTIFICATION_LABELS,
    render_notification,
)
from apps.notifications.services import webhooks as services
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.notifications import NOTIFICATION_TYPES, NotificationSeverity
from controlplane.domain.common.permissions import Permission
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.web.forms import StyledForm, submitted_data
from controlplane.web.pages import (
    keyset_page,
    render_form,
    render_page,
    row_action_view,
    save_form,
)

#: The rail's entry, although an address begins otherwise.
_SECTION = {"section": "teams"}


class WebhookForm(StyledForm):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=80,
        help_text=gettext_lazy("Purpose of the webhook, such as “team chat”."),
    )
    url = forms.CharField(
        label=gettext_lazy("URL"),
        max_length=2000,
        widget=forms.URLInput(attrs={"placeholder": "https://hooks.example.com/ninefold"}),
        help_text=gettext_lazy(
            "URL that receives a POST request with JSON for each event. Redirects are not followed."
        ),
    )
    kinds = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        choices=[(kind.value, NOTIFICATION_LABELS[kind].label) for kind in selectors.SENDABLE],
        widget=forms.CheckboxSelectMultiple,
        initial=[
            kind.value
            for kind in selectors.SENDABLE
            if NOTIFICATION_TYPES[kind].severity is NotificationSeverity.BAD
        ],
    )


def _find_team(request: AuthenticatedRequest, slug: str) -> Team:
    team = get_object_or_404(accounts.teams_visible(request.user), slug=slug)
    accounts.require_permission(request.user, Permission.MANAGE_TEAM, team=team)
    return team


def _find_webhook(request: AuthenticatedRequest, uid: str) -> Webhook:
    return get_object_or_404(selectors.webhooks_visible(request.user), uid=uid)


@login_required
def webhooks(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    team = _find_team(request, slug)
    rows = selectors.webhooks_visible(request.user).filter(team=team)
    context = {
        **_SECTION,
        "team": team,
        "webhooks": [{"webhook": row, "state": row.badge} for row in rows],
    }
    return render(request, "notifications/webhooks.html", context)


@login_required
def webhook_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The form; the response shows the secret once."""
    team = _find_team(request, slug)
    form = WebhookForm(submitted_data(request))

    def save() -> tuple[Webhook, str]:
        return services.webhook_create(actor=request.user, team=team, **form.cleaned_data)

    if saved := save_form(form, save):
        webhook, secret = saved
        return _secret_page(request, webhook, secret, new=True)
    return render_form(request, "notifications/webhook_new.html", form, **_SECTION, team=team)


def _secret_page(
    request: AuthenticatedRequest, webhook: Webhook, secret: str, *, new: bool
) -> HttpResponse:
    context = {**_SECTION, "webhook": webhook, "text": secret, "new": new}
    return render(request, "notifications/webhook_secret.html", context)


@login_required
def webhook(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """A webhook and its deliveries; refreshes itself while one is pending."""
    row = _find_webhook(request, uid)
    deliveries = selectors.webhook_deliveries_visible(request.user).filter(webhook=row)
    page = keyset_page(deliveries, before=request.GET.get("before", ""))
    now = timezone.now()
    context = {
        **_SECTION,
        "webhook": row,
        "state": row.badge,
        "kinds": [
            NOTIFICATION_LABELS[kind].label for kind in selectors.SENDABLE if kind in row.kinds
        ],
        "page": page,
        "deliveries": [_delivery_row(one) for one in page.rows],
    }
    soon = any(one.state == DeliveryState.WAITING and one.next_try_at <= now for one in page.rows)
    template = "notifications/webhook.html"
    changing = row.active and soon
    return render_page(request, template, context, fragment="now", changing=changing)


def _delivery_row(delivery: WebhookDelivery) -> Mapping[str, Any]:
    tries = list(delivery.history.all())
    return {
        "delivery": delivery,
        "rendered": render_notification(delivery.event),
        "tries": tries,
        "last": tries[0] if tries else None,
        "waits": delivery.state == DeliveryState.WAITING,
    }


@login_required
def webhook_change(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    row = _find_webhook(request, uid)
    form = WebhookForm(submitted_data(request), initial={"url": row.url, "kinds": row.kinds})
    del form.fields["name"]

    def save() -> str:
        return services.webhook_change(webhook=row, actor=request.user, **form.cleaned_data)

    secret = save_form(form, save)
    if secret:
        return _secret_page(request, row, secret, new=False)
    if secret is not None:
        messages.success(request, _("Webhook saved."))
        return redirect("webhook", row.uid)
    return render_form(
        request, "notifications/webhook_new.html", form, **_SECTION, team=row.team, webhook=row
    )


_webhook_action = row_action_view(
    load=_find_webhook, page="webhook", refusals=(IllegalTransition, services.WebhookRefused)
)


@_webhook_action
def webhook_test(request: AuthenticatedRequest, found: Webhook) -> str:
    services.webhook_test(webhook=found, actor=request.user, at=timezone.now())
    return _("Test delivery queued. The result appears below.")


@_webhook_action
def webhook_pause(request: AuthenticatedRequest, found: Webhook) -> str:
    services.webhook_switch(webhook=found, actor=request.user, active=False)
    return _("Webhook paused. Pending deliveries are kept; no new deliveries are created.")


@_webhook_action
def webhook_resume(request: AuthenticatedRequest, found: Webhook) -> str:
    services.webhook_switch(webhook=found, actor=request.user, active=True)
    return _("Webhook resumed.")


@_webhook_action
def webhook_delivery_retry_view(
    request: AuthenticatedRequest, found: Webhook, delivery: str
) -> str:
    deliveries = selectors.webhook_deliveries_visible(request.user).filter(webhook=found)
    row = get_object_or_404(deliveries, uid=delivery)
    services.webhook_delivery_retry(delivery=row, actor=request.user, at=timezone.now())
    return _("Delivery is queued again.")


@login_required
@require_POST
def webhook_secret_rotate_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    row = _find_webhook(request, uid)
    secret = services.webhook_secret_rotate(webhook=row, actor=request.user)
    return _secret_page(request, row, secret, new=False)


@login_required
@require_POST
def webhook_delete(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    row = _find_webhook(request, uid)
    slug, name = row.team.slug, row.name
    services.webhook_delete(webhook=row, actor=request.user)
    messages.success(request, _("Webhook %(name)s deleted.") % {"name": name})
    return redirect("webhooks", slug)
