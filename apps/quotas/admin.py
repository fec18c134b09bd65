"""Queues, which can be changed here, and claims, which cannot."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.accounts.admin import AuditedAdmin, ScopedReadOnlyAdmin, ScopedTransitionAdmin
from apps.accounts.models import User
from apps.accounts.selectors import is_company_administrator
from apps.quotas import selectors, services
from apps.quotas.models import Allocation, Claim, ClaimTransition, Queue
from controlplane.domain.permissions import Permission
from controlplane.ports import registry
from controlplane.web.admin import RowForm


class QueueForm(RowForm[Queue]):
    class Meta:
        model = Queue
        fields = ("name", "parent", "team", "caps", "open")

    def clean_caps(self) -> dict[str, int]:
        return check_caps(self.cleaned_data["caps"] or {})

    def clean_parent(self) -> Queue | None:
        parent: Queue | None = self.cleaned_data["parent"]
        above = parent
        while above is not None:
            if above.pk == self.instance.pk:
                raise forms.ValidationError(
                    f"{parent} lies below this queue; a queue cannot be its own ancestor"
                )
            above = above.parent
        return parent


def check_caps(caps: Any) -> dict[str, int]:
    """:raises ValidationError: unless every key is a chip and every value a number of cards."""
    if not isinstance(caps, dict):
        raise forms.ValidationError(
            f'caps must be a JSON object of chip to cards, for example {{"cpu": 8}}, got {caps!r}'
        )
    known = registry.chips()
    wrong = [
        f"no chip is called {chip!r}; known: {', '.join(known)}"
        for chip in caps
        if chip not in known
    ]
    wrong += [
        f"the cap of {chip!r} must be a whole number of cards from 0, got {cap!r}"
        for chip, cap in caps.items()
        if isinstance(cap, bool) or not isinstance(cap, int) or cap < 0
    ]
    if wrong:
        raise forms.ValidationError(wrong)
    return caps


@admin.register(Queue)
class QueueAdmin(AuditedAdmin[Queue]):
    team_path = "team"
    view_permission = change_permission = Permission.MANAGE_QUEUES
    form = QueueForm
    list_display = ("name", "parent", "team", "caps", "open")
    list_filter = ("open", "team")
    search_fields = ("name", "uid")
    autocomplete_fields = ("parent", "team")
    list_select_related = ("parent", "team")
    readonly_fields = ("uid", "created_at", "held_now")
    actions = ("open_queues", "close_queues")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Queue | None = None
    ) -> list[str] | tuple[str, ...]:
        """Where a queue stands and whose it is decide over others too: not for its queue admin."""
        fields = super().get_readonly_fields(request, obj)
        if is_company_administrator(request.user):
            return fields
        return (*fields, "name", "parent", "team")

    @admin.display(description="held now")
    def held_now(self, queue: Queue) -> str:
        """What a lower cap would be compared with."""
        held = selectors.cards_held(queue) if queue.pk else {}
        return ", ".join(f"{count} × {chip}" for chip, count in sorted(held.items())) or "no cards"

    @admin.action(description="Open the selected queues", permissions=["operate"])
    def open_queues(self, request: HttpRequest, queues: QuerySet[Queue]) -> None:
        self._open(request, queues, is_open=True)

    @admin.action(description="Close the selected queues", permissions=["operate"])
    def close_queues(self, request: HttpRequest, queues: QuerySet[Queue]) -> None:
        self._open(request, queues, is_open=False)

    def _open(self, request: HttpRequest, queues: QuerySet[Queue], *, is_open: bool) -> None:
        if isinstance(request.user, User):
            changed = sum(
                services.queue_open(queue=queue, is_open=is_open, actor=request.user)
                for queue in queues.select_related("team")
            )
            word = "open" if is_open else "closed; what runs goes on"
            messages.success(request, f"{changed} of {len(queues)} queues changed; all are {word}.")


@admin.register(Claim)
class ClaimAdmin(ScopedReadOnlyAdmin[Claim]):
    team_path = "team"
    view_permission = Permission.MANAGE_QUEUES
    list_display = (
        "uid",
        "state",
        "team",
        "queue",
        "owner_kind",
        "card_count",
        "chip",
        "explanation",
    )
    list_filter = ("state", "release_reason", "owner_kind", "queue", "team")
    search_fields = ("uid", "owner_uid", "explanation")
    list_select_related = ("team", "queue")


@admin.register(Allocation)
class AllocationAdmin(ScopedReadOnlyAdmin[Allocation]):
    team_path = "claim__team"
    list_display = ("card", "claim", "role", "replica", "allocated_at", "released_at")
    list_filter = (("released_at", admin.EmptyFieldListFilter), "card__chip")
    search_fields = ("claim__uid", "card__uid", "node__name")
    list_select_related = ("card__node", "claim")


admin.site.register(ClaimTransition, ScopedTransitionAdmin, team_path="entity__team")
