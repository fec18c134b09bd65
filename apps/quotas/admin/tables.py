"""Tables beside the tree: claims, and what the cycle and the loops write, can only be looked at."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.accounts.admin import ScopedAdmin, ScopedReadOnlyAdmin, ScopedTransitionAdmin
from apps.accounts.models import User
from apps.accounts.selectors import PermissionRefused
from apps.quotas.models import (
    Allocation,
    Claim,
    ClaimForecast,
    ClaimTransition,
    CyclePhase,
    Entitlement,
    ForecastRun,
    Nomination,
    PriorityClass,
    QueueChange,
    WhatIf,
)
from apps.quotas.services.priorities import priority_class_delete, priority_class_save
from controlplane.domain.permissions import Permission


@admin.register(Claim)
class ClaimAdmin(ScopedReadOnlyAdmin[Claim]):
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


@admin.register(Allocation)
class AllocationAdmin(ScopedReadOnlyAdmin[Allocation]):
    team_path = "claim__team"
    list_display = ("card", "claim", "role", "replica", "allocated_at", "released_at")
    list_filter = (("released_at", admin.EmptyFieldListFilter), "card__chip")
    search_fields = ("claim__uid", "card__uid", "node__name")
    list_select_related = ("card__node", "claim")


@admin.register(Entitlement)
class EntitlementAdmin(ScopedReadOnlyAdmin[Entitlement]):
    """They are changed in the console of queues, where the whole tree is checked."""

    team_path = "queue__team"
    view_permission = Permission.MANAGE_QUEUES
    list_display = ("queue", "chip", "reserved", "guaranteed", "cap")
    list_filter = ("chip", "queue")
    search_fields = ("queue__name", "chip")
    list_select_related = ("queue",)


@admin.register(PriorityClass)
class PriorityClassAdmin(ScopedAdmin[PriorityClass]):
    """For administrators of the company. Work keeps the number that it was given, whatever becomes of its name."""

    list_display = ("name", "value", "description")
    search_fields = ("name", "description")
    readonly_fields = ("uid", "created_at")
    fields = ("name", "value", "description", "uid", "created_at")
    deletable = True

    def has_delete_permission(self, request: HttpRequest, obj: PriorityClass | None = None) -> bool:
        """What work has unless somebody says otherwise stays."""
        usual = obj is not None and obj.value == 0
        return not usual and super().has_delete_permission(request, obj)

    def save_model(
        self, request: HttpRequest, obj: PriorityClass, *_args: Any, **_kwargs: Any
    ) -> None:
        saved = priority_class_save(
            name=obj.name,
            value=obj.value,
            description=obj.description,
            actor=_person(request),
            existing=PriorityClass.objects.filter(pk=obj.pk).first(),
        )
        obj.pk, obj.uid = saved.pk, saved.uid

    def delete_model(self, request: HttpRequest, obj: PriorityClass) -> None:
        # They were asked before, with what would go.
        priority_class_delete(row=obj, actor=_person(request), force=True)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[PriorityClass]) -> None:
        for row in queryset:
            self.delete_model(request, row)


def _person(request: HttpRequest) -> User:
    """:raises PermissionRefused: if nobody is logged in, which the admin has seen to before."""
    if isinstance(request.user, User):
        return request.user
    raise PermissionRefused("log in to change priority classes")


@admin.register(QueueChange)
class QueueChangeAdmin(ScopedReadOnlyAdmin[QueueChange]):
    """The rows as they are; the console of queues shows them in words and takes them back."""

    list_display = ("created_at", "act", "actor_name", "note", "reverts")
    list_filter = ("act",)
    search_fields = ("actor_name", "note", "uid")
    list_select_related = ("reverts",)
    date_hierarchy = "created_at"


@admin.register(Nomination)
class NominationAdmin(ScopedReadOnlyAdmin[Nomination]):
    list_display = ("card", "claim", "work_uid", "until")
    search_fields = ("card__uid", "claim__uid", "work_uid")
    list_select_related = ("card__node", "claim")


@admin.register(ClaimForecast)
class ClaimForecastAdmin(ScopedReadOnlyAdmin[ClaimForecast]):
    team_path = "claim__team"
    view_permission = Permission.MANAGE_QUEUES
    list_display = ("claim", "starts_at", "earliest", "latest", "chip", "made_at")
    list_filter = ("chip",)
    search_fields = ("claim__uid", "reason")
    list_select_related = ("claim",)


@admin.register(ForecastRun)
class ForecastRunAdmin(ScopedReadOnlyAdmin[ForecastRun]):
    list_display = ("at", "ended_at", "waiting", "looked_at", "horizon")
    date_hierarchy = "at"


@admin.register(WhatIf)
class WhatIfAdmin(ScopedReadOnlyAdmin[WhatIf]):
    team_path = "team"
    list_display = ("created_at", "state", "person", "queue", "claim", "answered_at")
    list_filter = ("state", "queue")
    search_fields = ("uid", "person__username", "refusal")
    list_select_related = ("person", "queue", "claim")


@admin.register(CyclePhase)
class CyclePhaseAdmin(ScopedReadOnlyAdmin[CyclePhase]):
    list_display = ("name", "cycles", "seconds")
    search_fields = ("name",)


admin.site.register(ClaimTransition, ScopedTransitionAdmin, team_path="entity__team")
