"""Pages of notifications: the list, the bell of every page, and preferences."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from apps.accounts.models import User
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.notifications.models import Notification
from apps.notifications.selectors import notifications as selectors
from apps.notifications.selectors.notifications import (
    NOTIFICATION_LABELS,
    NotificationListItem,
    event_subject_url,
    render_notification,
    render_notification_list,
)
from apps.notifications.services import notifications as services
from controlplane.domain.alerts.notifications import (
    NOTIFICATION_TYPES,
    NotificationAudience,
    NotificationKind,
    NotificationSeverity,
)
from controlplane.web.pages import STOP_POLLING, ToastLevel, add_toast
from controlplane.web.tables import BulkAction, FilterForm, ListTable, TableColumn

_LEVELS = {
    NotificationSeverity.GOOD: ToastLevel.SUCCESS,
    NotificationSeverity.INFO: ToastLevel.INFO,
    NotificationSeverity.BAD: ToastLevel.ERROR,
}


class NotificationFilter(FilterForm):
    unread = forms.BooleanField(label=gettext_lazy("Only unread"), required=False)
    kind = forms.ChoiceField(
        label=gettext_lazy("Kind"),
        choices=[
            ("", gettext_lazy("Any")),
            *((kind.value, NOTIFICATION_LABELS[kind].label) for kind in NOTIFICATION_TYPES),
        ],
        required=False,
    )
    severity = forms.ChoiceField(
        label=gettext_lazy("Severity"),
        choices=[
            ("", gettext_lazy("Any")),
            (NotificationSeverity.BAD.value, gettext_lazy("action required")),
            (NotificationSeverity.GOOD.value, gettext_lazy("success")),
            (NotificationSeverity.INFO.value, gettext_lazy("info")),
        ],
        required=False,
    )
    lookups: ClassVar = {"kind": "kind", "severity": "severity"}

    def apply(self, rows: Any) -> Any:
        rows = super().apply(rows)
        return rows.filter(read_at=None) if self.chosen("unread") else rows


def _preference_columns() -> tuple[TableColumn, ...]:
    return (
        TableColumn(
            key="title",
            label=gettext_lazy("Event"),
            csv=lambda row: render_notification(row.event).title,
        ),
        TableColumn(
            key="reason",
            label=gettext_lazy("Reason"),
            csv=lambda row: render_notification(row.event).detail,
        ),
        TableColumn(key="count", label=gettext_lazy("Count"), numeric=True),
        TableColumn(key="at", label=gettext_lazy("Time"), sort="at"),
        TableColumn(key="read_at", label=""),
    )


@login_required
def notifications(request: AuthenticatedRequest) -> HttpResponseBase:
    """Newest first; ``?read=`` is the instant at which some were marked as read, for undo."""
    table = ListTable(
        request,
        selectors.notifications_of_user(request.user),
        columns=_preference_columns(),
        filters=NotificationFilter,
        default_sort="-at",
        bulk=(
            BulkAction(
                name="read",
                label=gettext_lazy("Mark as read"),
                href=reverse("notifications-read"),
                warning=gettext_lazy(
                    "The notifications stay in this list and are no longer counted as unread."
                ),
                style="btn-primary",
            ),
        ),
    )
    if table.is_csv_request:
        return table.csv(filename="notifications.csv")
    context = {
        "table": table,
        "lines": render_notification_list(table.rows),
        "unread": selectors.unread_count(request.user),
        "undo": request.GET.get("read", "") if _parse_instant(request.GET.get("read", "")) else "",
    }
    return render(request, "notifications/notifications.html", context)


def _parse_instant(text: str) -> datetime | None:
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


@login_required
def notification_open(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Redirect to the subject and mark the notification as read."""
    rows = Notification.objects.filter(recipient=request.user).select_related("event__team")
    row = get_object_or_404(rows, uid=uid)
    services.notifications_mark_read(user=request.user, uids=[uid], at=timezone.now())
    return redirect(event_subject_url(row.event))


@login_required
@require_POST
def notifications_mark_read_view(request: AuthenticatedRequest) -> HttpResponse:
    """Mark those in ``uid``, or all of them with ``all``; can be undone."""
    now = timezone.now()
    uids = None if request.POST.get("all") else request.POST.getlist("uid")
    count = services.notifications_mark_read(user=request.user, uids=uids, at=now)
    if not count:
        messages.info(request, _("No unread notifications."))
        return redirect("notifications")
    marked = ngettext(
        "%(count)d notification marked as read.", "%(count)d notifications marked as read.", count
    )
    messages.success(request, marked % {"count": count})
    return redirect(reverse("notifications", query={"read": now.isoformat()}))


@login_required
@require_POST
def notifications_mark_unread_view(request: AuthenticatedRequest) -> HttpResponse:
    read_at = _parse_instant(request.POST.get("read_at", ""))
    count = services.notifications_mark_unread(user=request.user, read_at=read_at) if read_at else 0
    unread = ngettext(
        "%(count)d notification marked as unread.",
        "%(count)d notifications marked as unread.",
        count,
    )
    messages.success(request, unread % {"count": count})
    return redirect("notifications")


def notification_bell_fragment(request: HttpRequest) -> HttpResponse:
    """The contents of the bell; 204 if unchanged. Signed-out browsers stop polling."""
    if not isinstance(request.user, User):
        return HttpResponse(status=STOP_POLLING)
    shown = selectors.notification_bell(request.user)
    newest = shown.latest_unread
    at = newest.notification.at.isoformat() if newest else ""
    mark = f"{shown.unread} {at}"
    seen = request.GET.get("seen", "")
    if seen == mark:
        return HttpResponse(status=204)
    context = {"bell": shown, "mark": mark}
    response = render(request, "notifications/bell.html", context)
    before = _parse_instant(seen.partition(" ")[2])
    is_new = newest is not None and seen and (before is None or newest.notification.at > before)
    if newest is not None and is_new and not _is_subject_page_open(request, newest):
        level = _LEVELS[NotificationSeverity(newest.notification.severity)]
        return add_toast(response, level=level, text=newest.rendered.title)
    return response


def _is_subject_page_open(request: HttpRequest, line: NotificationListItem) -> bool:
    """Whether the page shows the subject itself: then no toast is needed."""
    return request.headers.get("HX-Current-URL", "").partition("?")[0].endswith(line.rendered.href)


@login_required
def notification_settings_view(request: AuthenticatedRequest) -> HttpResponse:
    """Delivery preferences of all kinds; saved as a whole."""
    if request.method == "POST":
        services.delivery_preferences_set(
            user=request.user, preferences=_submitted_preferences(request)
        )
        messages.success(request, _("Preferences saved."))
        return redirect("notification-settings")
    context = {
        "rows": [
            {
                "preference": preference,
                "labels": NOTIFICATION_LABELS[preference.kind],
                "has_team": NOTIFICATION_TYPES[preference.kind].audience
                is NotificationAudience.CREATOR,
            }
            for preference in selectors.delivery_preferences_of(request.user)
        ],
        "is_mail_configured": selectors.is_mail_configured(),
        "email_error": selectors.email_error(request.user),
    }
    return render(request, "notifications/preferences.html", context)


def _submitted_preferences(request: AuthenticatedRequest) -> Iterator[selectors.DeliveryPreference]:
    ticked = set(request.POST.getlist("wish"))
    for kind, notification_type in NOTIFICATION_TYPES.items():
        if notification_type.optional:
            yield selectors.DeliveryPreference(
                kind=NotificationKind(kind),
                page=f"{kind}:page" in ticked,
                email=f"{kind}:email" in ticked,
                whole_team=f"{kind}:team" in ticked,
            )


@login_required
@require_POST
def send_test_notification(request: AuthenticatedRequest) -> HttpResponse:
    """Send a test notification by every channel."""
    services.notification_send_test(user=request.user, at=timezone.now())
    if selectors.is_mail_configured() and request.user.email:
        text = _("Test notification created. An e-mail to %(address)s is queued.")
        messages.success(request, text % {"address": request.user.email})
    else:
        messages.success(request, _("Test notification created."))
    return redirect("notification-settings")
