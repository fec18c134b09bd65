"""The ledger, which can be looked at, and what a card costs, which administrators of the company set."""

from __future__ import annotations

from decimal import Decimal

from django import forms
from django.contrib import admin

from apps.accounts.admin import AuditedAdmin, ScopedReadOnlyAdmin
from apps.quotas.models import CardRate, UsageDay, UsageRecord
from controlplane.domain.permissions import Permission
from controlplane.ports import registry
from controlplane.web.admin import RowForm


class CardRateForm(RowForm[CardRate]):
    class Meta:
        model = CardRate
        fields = ("chip", "per_hour")

    def clean_chip(self) -> str:
        chip: str = self.cleaned_data["chip"]
        known = registry.chips()
        if chip not in known:
            raise forms.ValidationError(f"no chip is called {chip!r}; known: {', '.join(known)}")
        return chip

    def clean_per_hour(self) -> Decimal:
        per_hour: Decimal = self.cleaned_data["per_hour"]
        if per_hour < 0:
            raise forms.ValidationError(
                f"an hour of a card cannot cost {per_hour}; 0 is free, no row at all is no rate"
            )
        return per_hour


@admin.register(CardRate)
class CardRateAdmin(AuditedAdmin[CardRate]):
    team_path = ""
    view_permission = Permission.MANAGE_QUEUES
    form = CardRateForm
    list_display = ("chip", "per_hour")
    search_fields = ("chip",)
    # A price, not a record: the audit trail keeps who set it.
    deletable = True


@admin.register(UsageRecord)
class UsageRecordAdmin(ScopedReadOnlyAdmin[UsageRecord]):
    team_path = "team"
    view_permission = Permission.MANAGE_QUEUES
    list_display = ("team", "queue", "person", "work_name", "chip", "cards", "since", "until")
    list_filter = ("chip", "work_kind", "queue", "team")
    search_fields = ("claim__uid", "work_uid", "work_name")
    list_select_related = ("team", "queue", "person")
    date_hierarchy = "since"
    ordering = ("-id",)


@admin.register(UsageDay)
class UsageDayAdmin(ScopedReadOnlyAdmin[UsageDay]):
    team_path = "team"
    view_permission = Permission.MANAGE_QUEUES
    list_display = ("day", "team", "queue", "person", "chip", "work_kind", "card_microseconds")
    list_filter = ("chip", "work_kind", "queue", "team")
    list_select_related = ("team", "queue", "person")
    date_hierarchy = "day"
    ordering = ("-day", "-id")
