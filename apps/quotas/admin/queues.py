"""The queue console: the admin of the queue tree, with a preview of the effects of each change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.accounts.admin import ScopedAdmin
from apps.quotas.admin import queue_changes, queue_editing, queue_import_export, queue_table
from apps.quotas.models import Queue
from apps.quotas.selectors import queue_trees
from apps.quotas.selectors.queues import queue_tree
from controlplane.domain.common.permissions import Permission
from controlplane.domain.quotas.validation import validate_tree_change

View = Callable[..., HttpResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleTab:
    """A tab of the console."""

    name: str
    label: str | Promise


CONSOLE_TABS = (
    ConsoleTab(name="changelist", label=gettext_lazy("Queue tree")),
    ConsoleTab(name="bulk", label=gettext_lazy("Bulk edit")),
    ConsoleTab(name="import", label=gettext_lazy("Import")),
    ConsoleTab(name="changes", label=gettext_lazy("History")),
    ConsoleTab(name="list", label=gettext_lazy("Plain list")),
)


@admin.register(Queue)
class QueueAdmin(ScopedAdmin[Queue]):
    """Pages of the queue console; the standard change list stays available for searching."""

    team_path = "team"
    view_permission = change_permission = Permission.MANAGE_QUEUES
    list_display = ("name", "parent", "team", "state", "retired_at")
    list_filter = ("state", "team", ("retired_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "uid", "description")
    list_select_related = ("parent", "team")

    def get_urls(self) -> list[URLPattern]:
        pages: tuple[tuple[str, View, str], ...] = (
            ("list/", self.list_view, "list"),
            ("bulk/", self.bulk_view, "bulk"),
            ("export/", self.export_view, "export"),
            ("import/", self.import_view, "import"),
            ("changes/", self.changes_view, "changes"),
            ("changes/<str:uid>/", self.change_detail_view, "change_detail"),
            ("<int:pk>/move/", self.move_view, "move"),
            ("<int:pk>/state/", self.state_view, "state"),
            ("<int:pk>/retire/", self.retire_view, "retire"),
        )
        ours = [
            path(route, self.admin_site.admin_view(view), name=f"quotas_queue_{name}")
            for route, view, name in pages
        ]
        return [*ours, *super().get_urls()]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Queue admins may add queues below their own."""
        return self.has_change_permission(request)

    # -- The tree --

    def changelist_view(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        self._require_view_permission(request)
        seen, documents = queue_tree(request.user), queue_trees.queue_tree_documents()
        scope = queue_table.QueueEditScope(
            documents=documents, rights=queue_trees.queue_tree_permissions(request.user)
        )
        warnings: dict[str, list[str]] = {}
        for warning in validate_tree_change(
            documents, documents, queue_trees.queue_tree_context()
        ).warnings:
            warnings.setdefault(warning.field, []).append(warning.message)
        q = request.GET.get("q", "")
        rows = queue_table.queue_rows(seen, scope, q=q, warnings=warnings)
        return self._render_page(
            request,
            "admin/quotas/tree.html",
            tab="changelist",
            title=_("Queues"),
            rows=rows,
            columns=queue_table.chip_columns(seen),
            notes=warnings.get("", []) if scope.rights.everything else [],
            q=q,
            # Only company administrators add top-level queues and export the whole tree.
            may_add=scope.rights.everything,
            add_href=reverse("admin:quotas_queue_add"),
            export_href=reverse("admin:quotas_queue_export"),
        )

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """All queues including retired ones, to search and sort."""
        return super().changelist_view(request, {"title": _("Queues"), "subtitle": None})

    # -- One queue --

    def add_view(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        self._require_view_permission(request)
        context = self._page_context(request, title=_("New queue"))
        return queue_editing.edit_queue(request, context, None)

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_kwargs: Any
    ) -> HttpResponse:
        queue = self._editable_queue_by_object_id(request, object_id)
        if queue.retired_at is not None:
            # A retired queue has only its history.
            return redirect("admin:quotas_queue_history", queue.pk)
        context = self._page_context(request, title=queue.name)
        return queue_editing.edit_queue(request, context, queue)

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_kwargs: Any
    ) -> HttpResponse:
        queue = self._editable_queue_by_object_id(request, object_id)
        title = _("History of %(queue)s") % {"queue": queue.name}
        return queue_changes.list_queue_changes(
            request, self._page_context(request, tab="changes", title=title), queue=queue
        )

    def move_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        queue = self._editable_queue_by_pk(request, pk)
        title = _("Move %(queue)s") % {"queue": queue.name}
        return queue_editing.move_queue(request, self._page_context(request, title=title), queue)

    def state_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        queue = self._editable_queue_by_pk(request, pk)
        return queue_editing.set_queue_state(
            request, self._page_context(request, title=queue.name), queue
        )

    def retire_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        queue = self._editable_queue_by_pk(request, pk)
        title = _("Retire %(queue)s") % {"queue": queue.name}
        return queue_editing.retire_queue(request, self._page_context(request, title=title), queue)

    # -- Many queues --

    def bulk_view(self, request: HttpRequest) -> HttpResponse:
        self._require_view_permission(request)
        return queue_editing.bulk_edit_queues(
            request, self._page_context(request, tab="bulk", title=_("Bulk edit"))
        )

    def export_view(self, request: HttpRequest) -> HttpResponse:
        self._require_view_permission(request)
        return queue_import_export.export_queue_tree(request)

    def import_view(self, request: HttpRequest) -> HttpResponse:
        self._require_view_permission(request)
        title = _("Import queues")
        return queue_import_export.import_queue_tree(
            request, self._page_context(request, tab="import", title=title)
        )

    def changes_view(self, request: HttpRequest) -> HttpResponse:
        self._require_view_permission(request)
        title = _("History of the queues")
        return queue_changes.list_queue_changes(
            request, self._page_context(request, tab="changes", title=title)
        )

    def change_detail_view(self, request: HttpRequest, uid: str) -> HttpResponse:
        self._require_view_permission(request)
        title = _("A change of the queues")
        return queue_changes.show_queue_change(
            request, self._page_context(request, tab="changes", title=title), uid=uid
        )

    # -- Shared by all pages --

    def _require_view_permission(self, request: HttpRequest) -> None:
        """:raises PermissionDenied: if the user manages no queues."""
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _editable_queue_by_object_id(self, request: HttpRequest, key: str) -> Queue:
        """:raises Http404: if the queue does not exist or cannot be changed by the user."""
        self._require_view_permission(request)
        queue = self.get_object(request, key)
        if queue is None:
            raise Http404
        return queue

    def _editable_queue_by_pk(self, request: HttpRequest, key: int) -> Queue:
        """:raises Http404: if the queue does not exist, is retired, or cannot be changed by the user."""
        queue = self._editable_queue_by_object_id(request, str(key))
        if queue.retired_at is not None:
            raise Http404
        return queue

    def _page_context(
        self, request: HttpRequest, *, tab: str = "", **context: Any
    ) -> dict[str, Any]:
        tabs = [
            {
                "label": each.label,
                "href": reverse(f"admin:quotas_queue_{each.name}"),
                "current": each.name == tab,
            }
            for each in CONSOLE_TABS
        ]
        return {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "tabs": tabs,
            "has_change_permission": self.has_change_permission(request),
            "has_delete_permission": False,
            **context,
        }

    def _render_page(
        self, request: HttpRequest, template: str, *, tab: str, **context: Any
    ) -> HttpResponse:
        request.current_app = self.admin_site.name
        return TemplateResponse(request, template, self._page_context(request, tab=tab, **context))
