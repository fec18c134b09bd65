"""Moves of running work, which can only be looked at: they are proposed and approved on their pages."""

from __future__ import annotations

from django.contrib import admin

from apps.accounts.admin import ScopedReadOnlyAdmin, ScopedTransitionAdmin
from apps.quotas.models import (
    MoveTransition,
    Rearrangement,
    RearrangementMove,
    RearrangementTransition,
)


@admin.register(Rearrangement)
class RearrangementAdmin(ScopedReadOnlyAdmin[Rearrangement]):
    list_display = ("created_at", "purpose", "state", "reason", "proposed_by_name")
    list_filter = ("state", "purpose")
    search_fields = ("uid", "reason", "proposed_by_name", "approved_by_name")
    date_hierarchy = "created_at"


@admin.register(RearrangementMove)
class RearrangementMoveAdmin(ScopedReadOnlyAdmin[RearrangementMove]):
    team_path = "claim__team"
    list_display = ("rearrangement", "number", "state", "claim", "chip", "until")
    list_filter = ("state",)
    search_fields = ("rearrangement__uid", "claim__uid", "claim__work_name")
    list_select_related = ("rearrangement", "claim")


admin.site.register(RearrangementTransition, ScopedTransitionAdmin)
admin.site.register(
    MoveTransition,
    ScopedTransitionAdmin,
    team_path="entity__claim__team",
    # A move has no uid of its own.
    search_fields=("entity__rearrangement__uid", "reason", "actor"),
)
