"""Clusters, nodes and cards."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.accounts.admin import AuditedAdmin, ScopedReadOnlyAdmin
from apps.accounts.models import User
from apps.fleet import selectors, services
from apps.fleet.models import Card, Cluster, Node
from controlplane.domain.common.permissions import Permission
from controlplane.ports import adapter_registry
from controlplane.web.admin import RowForm


class ClusterAdminForm(RowForm[Cluster]):
    class Meta:
        model = Cluster
        fields = ("name", "kind", "options", "binding")

    def clean_kind(self) -> str:
        kind = str(self.cleaned_data["kind"])
        known = adapter_registry.cluster_kinds()
        if kind not in known:
            raise forms.ValidationError(
                f"no cluster adapter is called {kind!r}; installed: {', '.join(known)}"
            )
        return kind

    def clean_options(self) -> dict[str, Any]:
        options = self.cleaned_data["options"] or {}
        if not isinstance(options, dict):
            raise forms.ValidationError('options must be a JSON object, for example {"cards": 2}')
        return options


@admin.register(Cluster)
class ClusterAdmin(AuditedAdmin[Cluster]):
    team_path = ""
    view_permission = Permission.OPERATE_FLEET
    form = ClusterAdminForm
    list_display = ("name", "kind", "binding", "last_seen_at", "error")
    list_filter = ("kind", "binding")
    search_fields = ("name", "uid")
    readonly_fields = (
        "uid",
        "created_at",
        "created_by_name",
        "version",
        "last_seen_at",
        "reachable_at",
        "checked_at",
        "error",
        "isolation",
    )

    def get_readonly_fields(
        self, request: HttpRequest, obj: Cluster | None = None
    ) -> tuple[str, ...]:
        """Remote clusters are changed on their page, which checks the connection and usage first."""
        fields = tuple(super().get_readonly_fields(request, obj))
        if obj is not None and obj.kind in selectors.REMOTE_KINDS:
            return (*fields, "kind", "options")
        return fields

    def save_model(
        self, request: HttpRequest, obj: Cluster, form: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Only what was changed here: it may have been given another kubeconfig, or none, meanwhile."""
        if obj.pk is None:
            super().save_model(request, obj, form, *args, **kwargs)
        else:
            obj.save(update_fields=form.changed_data)


@admin.register(Node)
class NodeAdmin(ScopedReadOnlyAdmin[Node]):
    team_path = ""
    view_permission = Permission.OPERATE_FLEET
    list_display = ("name", "cluster", "ready", "cordoned", "cpu", "memory", "last_seen_at")
    list_filter = ("cluster", "ready", "cordoned")
    search_fields = ("name", "uid")
    list_select_related = ("cluster",)
    actions = ("cordon", "uncordon")

    @admin.action(description="Cordon: no new work on the selected nodes", permissions=["operate"])
    def cordon(self, request: HttpRequest, nodes: QuerySet[Node]) -> None:
        self._set_cordoned(request, nodes, cordoned=True)

    @admin.action(description="Uncordon the selected nodes", permissions=["operate"])
    def uncordon(self, request: HttpRequest, nodes: QuerySet[Node]) -> None:
        self._set_cordoned(request, nodes, cordoned=False)

    def _set_cordoned(self, request: HttpRequest, nodes: QuerySet[Node], *, cordoned: bool) -> None:
        if isinstance(request.user, User):
            changed, refusals = 0, []
            for node in nodes.select_related("cluster"):
                try:
                    changed += services.node_set_cordoned(
                        node=node, cordoned=cordoned, actor=request.user
                    )
                except services.NodeIsolated as refusal:
                    refusals.append(str(refusal))
            for message in refusals:
                messages.error(request, message)
            label = "cordoned" if cordoned else "uncordoned"
            which = "all others" if refusals else "all"
            messages.success(
                request, f"{changed} of {len(nodes)} nodes changed; {which} are {label}."
            )


@admin.register(Card)
class CardAdmin(ScopedReadOnlyAdmin[Card]):
    team_path = ""
    view_permission = Permission.OPERATE_FLEET
    list_display = ("__str__", "chip", "state", "state_reason", "memory", "serial")
    list_filter = ("state", "chip", "node__cluster")
    search_fields = ("node__name", "serial", "uid")
    list_select_related = ("node",)
