"""The audit trail: who did what, when, from where."""

from __future__ import annotations

import json
from datetime import datetime, time
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.accounts import selectors
from apps.accounts.models import Team
from apps.accounts.selectors import PermissionRefused
from apps.accounts.web.deeds import SENTENCES, deed
from apps.accounts.web.requests import SignedIn
from controlplane.web.tables import Column, FilterForm, Table


class DateInput(forms.DateInput):
    input_type = "date"


class AuditFilter(FilterForm):
    who = forms.CharField(label=gettext_lazy("Who"), required=False, max_length=150)
    # All that can happen: what has happened would have to be looked for in the whole trail.
    action = forms.ChoiceField(
        label=gettext_lazy("Action"),
        choices=[("", gettext_lazy("all")), *((code, code) for code in sorted(SENTENCES))],
        required=False,
    )
    team = forms.ModelChoiceField(
        label=gettext_lazy("Team"),
        queryset=Team.objects.none(),
        to_field_name="slug",
        required=False,
        empty_label=gettext_lazy("every team"),
    )
    object = forms.CharField(label=gettext_lazy("What"), required=False, max_length=200)
    since = forms.DateField(label=gettext_lazy("From"), required=False, widget=DateInput)
    until = forms.DateField(label=gettext_lazy("To"), required=False, widget=DateInput)

    def __init__(self, data: Any, *, teams: QuerySet[Team]) -> None:
        super().__init__(data)
        self.row_choice("team").queryset = teams

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Days are whole days in the viewer's zone."""
        simple = {"who": "actor_name__iexact", "action": "action", "team": "team"}
        for name, lookup in simple.items():
            if (value := self.chosen(name)) is not None:
                rows = rows.filter(**{lookup: value})
        if text := self.chosen("object"):
            rows = rows.filter(Q(object_name__icontains=text) | Q(object_uid=text))
        if since := self.chosen("since"):
            rows = rows.filter(at__gte=timezone.make_aware(datetime.combine(since, time.min)))
        if until := self.chosen("until"):
            rows = rows.filter(at__lte=timezone.make_aware(datetime.combine(until, time.max)))
        return rows


COLUMNS = (
    Column(key="at", label=gettext_lazy("When"), sort="pk", csv=lambda row: row.at.isoformat()),
    Column(key="deed", label=gettext_lazy("What happened"), csv=deed),
    Column(key="action", label=gettext_lazy("Action")),
    Column(
        key="team", label=gettext_lazy("Team"), csv=lambda row: row.team.slug if row.team else ""
    ),
    Column(key="object_uid", label=gettext_lazy("What")),
    Column(key="remote_address", label=gettext_lazy("From where")),
)
#: What the sentence and the folded part of the page say is apart in a spreadsheet.
CSV_COLUMNS = (
    *COLUMNS,
    Column(key="actor_name", label=gettext_lazy("Who")),
    Column(key="object_name", label=gettext_lazy("Name")),
    Column(key="detail", label=gettext_lazy("Details"), csv=lambda row: _pretty(row.detail)),
    Column(key="request_id", label=gettext_lazy("Request")),
)


@login_required
def audit(request: SignedIn) -> HttpResponseBase:
    """For administrators: of a team its entries, of the company all."""
    if not selectors.sees_audit(request.user):
        raise PermissionRefused(
            _("the audit trail is for administrators of a team or of the company; you are neither")
        )
    entries = selectors.audit_visible(request.user)
    filters = AuditFilter(request.GET, teams=selectors.audit_teams(request.user))
    table = Table(request, entries, columns=COLUMNS, filters=filters, default_sort="-at", size=50)
    if table.wants_csv:
        whole = Table(request, entries, columns=CSV_COLUMNS, filters=filters, default_sort="-at")
        return whole.csv(filename="audit.csv")
    rows = [{"row": row, "deed": deed(row), "detail": _pretty(row.detail)} for row in table.rows]
    return render(request, "accounts/audit.html", {"table": table, "rows": rows})


def _pretty(detail: dict[str, Any]) -> str:
    return json.dumps(detail, ensure_ascii=False, indent=2, sort_keys=True) if detail else ""
