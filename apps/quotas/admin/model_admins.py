"""Admins of every table except queues.

Claims and the rows that controllers write are read-only; priority classes and card rates can be edited.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.accounts.admin import (
    AuditedAdmin,
    ScopedAdmin,
    ScopedReadOnlyAdmin,
    ScopedTransitionAdmin,
)
from apps.quotas import models
from apps.quotas.admin.queue_changes import signed_in_user
from apps.quotas.services.priority_classes import priority_class_delete, priority_class_save
from controlplane.domain.common.permissions import Permission
from controlplane.ports import adapter_registry
from controlplane.web.admin import RowForm


@admin.register(models.Claim)
class ClaimAdmin(ScopedReadOnlyAdmin[models.Claim]):
    team_path = "team"
    view_permission = Permission.MANAGE_QUEUES
    list_display = (
        "uid",
        "state",
        "team",
        "queue",
        "work_name",
        "owner_kind",
        "card_count",
        "chip",
        "explanation",
    )
    list_filter = ("state", "release_reason", "owner_kind", "queue", "team")
    search_fields = ("uid", "owner_uid", "work_uid", "work_name", "explanation")
    list_select_related = ("team", "queue")


@admin.register(models.Allocation)
class AllocationAdmin(ScopedReadOnlyAdmin[models.Allocation]):
    team_path = "claim__team"
    list_display = ("card", "claim", "role", "replica", "allocated_at", "released_at")
    list_filter = (("released_at", admin.EmptyFieldListFilter), "card__chip")
    search_fields = ("claim__uid", "card__uid", "node__name")
    list_select_related = ("card__node", "claim")


@admin.register(models.Entitlement)
class EntitlementAdmin(ScopedReadOnlyAdmin[models.Entitlement]):
    """Read-only: entitlements are edited in the queue console, which validates the whole tree."""

    team_path = "queue__team"
    view_permission = Permission.MANAGE_QUEUES
    list_display = ("queue", "chip", "reserved", "guaranteed", "cap")
    list_filter = ("chip", "queue")
    search_fields = ("queue__name", "chip")
    list_select_related = ("queue",)


@admin.register(models.PriorityClass)
class PriorityClassAdmin(ScopedAdmin[models.PriorityClass]):
    """For company administrators. Workloads keep their priority value when a class is renamed or deleted."""

    list_display = ("name", "value", "description")
    search_fields = ("name", "description")
    readonly_fields = ("uid", "created_at")
    fields = ("name", "value", "description", "uid", "created_at")
    deletable = True

    def has_delete_permission(
        self, request: HttpRequest, obj: models.PriorityClass | None = None
    ) -> bool:
        """The default class (value 0) cannot be deleted."""
        is_default = obj is not None and obj.value == 0
        return not is_default and super().has_delete_permission(request, obj)

    def save_model(
        self, request: HttpRequest, obj: models.PriorityClass, *_args: Any, **_kwargs: Any
    ) -> None:
        saved = priority_class_save(
            name=obj.name,
            value=obj.value,
            description=obj.description,
            actor=signed_in_user(request),
            existing=models.PriorityClass.objects.filter(pk=obj.pk).first(),
        )
        obj.pk, obj.uid = saved.pk, saved.uid

    def delete_model(self, request: HttpRequest, obj: models.PriorityClass) -> None:
        # The admin's confirmation page was shown before.
        priority_class_delete(row=obj, actor=signed_in_user(request), force=True)

    def delete_queryset(
        self, request: HttpRequest, queryset: QuerySet[models.PriorityClass]
    ) -> None:
        for row in queryset:
            self.delete_model(request, row)


@admin.register(models.QueueChange)
class QueueChangeAdmin(ScopedReadOnlyAdmin[models.QueueChange]):
    """Raw rows; the queue console shows the differences and reverts them."""

    list_display = ("created_at", "action", "actor_name", "note", "reverts")
    list_filter = ("action",)
    search_fields = ("actor_name", "note", "uid")
    list_select_related = ("reverts",)
    date_hierarchy = "created_at"


@admin.register(models.Nomination)
class NominationAdmin(ScopedReadOnlyAdmin[models.Nomination]):
    list_display = ("card", "claim", "work_uid", "until")
    search_fields = ("card__uid", "claim__uid", "work_uid")
    list_select_related = ("card__node", "claim")


@admin.register(models.ClaimForecast)
class ClaimForecastAdmin(ScopedReadOnlyAdmin[models.ClaimForecast]):
    team_path = "claim__team"
    view_permission = Permission.MANAGE_QUEUES
    list_display = ("claim", "starts_at", "earliest", "latest", "chip", "created_at")
    list_filter = ("chip",)
    search_fields = ("claim__uid", "reason")
    list_select_related = ("claim",)


@admin.register(models.ForecastRun)
class ForecastRunAdmin(ScopedReadOnlyAdmin[models.ForecastRun]):
    list_display = ("at", "ended_at", "waiting", "looked_at", "horizon")
    date_hierarchy = "at"


@admin.register(models.WhatIf)
class WhatIfAdmin(ScopedReadOnlyAdmin[models.WhatIf]):
    team_path = "team"
    list_display = ("created_at", "state", "user", "queue", "claim", "answered_at")
    list_filter = ("state", "queue")
    search_fields = ("uid", "user__username", "refusal")
    list_select_related = ("user", "queue", "claim")


@admin.register(models.CyclePhase)
class CyclePhaseAdmin(ScopedReadOnlyAdmin[models.CyclePhase]):
    list_display = ("name", "cycles", "seconds")
    search_fields = ("name",)


admin.site.register(models.ClaimTransition, ScopedTransitionAdmin, team_path="entity__team")


@admin.register(models.Defragmentation)
class DefragmentationPlanAdmin(ScopedReadOnlyAdmin[models.Defragmentation]):
    list_display = ("created_at", "purpose", "state", "reason", "proposed_by_name")
    list_filter = ("state", "purpose")
    search_fields = ("uid", "reason", "proposed_by_name", "approved_by_name")
    date_hierarchy = "created_at"


@admin.register(models.DefragmentationMove)
class RelocationAdmin(ScopedReadOnlyAdmin[models.DefragmentationMove]):
    team_path = "claim__team"
    list_display = ("defragmentation", "number", "state", "claim", "chip", "until")
    list_filter = ("state",)
    search_fields = ("defragmentation__uid", "claim__uid", "claim__work_name")
    list_select_related = ("defragmentation", "claim")


admin.site.register(models.DefragmentationTransition, ScopedTransitionAdmin)
admin.site.register(
    models.MoveTransition,
    ScopedTransitionAdmin,
    team_path="entity__claim__team",
    # A move has no uid of its own.
    search_fields=("entity__defragmentation__uid", "reason", "actor"),
)


class CardRateForm(RowForm[models.CardRate]):
    class Meta:
        model = models.CardRate
        fields = ("chip", "per_hour")

    def clean_chip(self) -> str:
        chip: str = self.cleaned_data["chip"]
        known = adapter_registry.all_chips()
        if chip not in known:
            raise forms.ValidationError(f"unknown chip {chip!r}; known chips: {', '.join(known)}")
        return chip

    def clean_per_hour(self) -> Decimal:
        per_hour: Decimal = self.cleaned_data["per_hour"]
        if per_hour < 0:
            raise forms.ValidationError(
                f"an hour of a card cannot cost {per_hour}; 0 is free, no row at all is no rate"
            )
        return per_hour


@admin.register(models.CardRate)
class CardRateAdmin(AuditedAdmin[models.CardRate]):
    team_path = ""
    view_permission = Permission.MANAGE_QUEUES
    form = CardRateForm
    list_display = ("chip", "per_hour")
    search_fields = ("chip",)
    # A price, not a record: the audit trail keeps who set it.
    deletable = True


@admin.register(models.UsageRecord)
class CardUsageRecordAdmin(ScopedReadOnlyAdmin[models.UsageRecord]):
    team_path = "team"
    view_permission = Permission.MANAGE_QUEUES
    list_display = ("team", "queue", "user", "work_name", "chip", "cards", "since", "until")
    list_filter = ("chip", "work_kind", "queue", "team")
    search_fields = ("claim__uid", "work_uid", "work_name")
    list_select_related = ("team", "queue", "user")
    date_hierarchy = "since"
    ordering = ("-id",)


@admin.register(models.UsageDay)
class UsageDayAdmin(ScopedReadOnlyAdmin[models.UsageDay]):
    team_path = "team"
    view_permission = Permission.MANAGE_QUEUES
    list_display = ("day", "team", "queue", "user", "chip", "work_kind", "card_microseconds")
    list_filter = ("chip", "work_kind", "queue", "team")
    list_select_related = ("team", "queue", "user")
    date_hierarchy = "day"
    ordering = ("-day", "-id")
