"""The console of queues: a tree that is changed in the open, with everybody who gains or loses by it named."""

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
from apps.quotas.admin import acts, bulk, editing, files, history, tree
from apps.quotas.models import Queue
from apps.quotas.selectors import trees
from apps.quotas.selectors.queues import queue_tree
from controlplane.domain.permissions import Permission
from controlplane.domain.queue_rules import judged

View = Callable[..., HttpResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A page of the console that does not belong to one queue."""

    name: str
    label: str | Promise


WAYS = (
    Way(name="changelist", label=gettext_lazy("Tree")),
    Way(name="bulk", label=gettext_lazy("Bulk edit")),
    Way(name="import", label=gettext_lazy("Import")),
    Way(name="changes", label=gettext_lazy("History")),
    Way(name="list", label=gettext_lazy("Plain list")),
)


@admin.register(Queue)
class QueueAdmin(ScopedAdmin[Queue]):
    """Its pages are the console's; the list of the admin stays for searching."""

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
            ("changes/<str:uid>/", self.past_view, "past"),
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
        """Queue admins add queues below their own."""
        return self.has_change_permission(request)

    # -- The tree and its branches --

    def changelist_view(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        self._require_view(request)
        seen, documents = queue_tree(request.user), trees.tree_documents()
        reach = tree.Reach(documents=documents, rights=trees.tree_rights(request.user))
        told: dict[str, list[str]] = {}
        for warning in judged(documents, documents, trees.surroundings()).warnings:
            told.setdefault(warning.field, []).append(warning.message)
        q = request.GET.get("q", "")
        rows = tree.rows_of(seen, reach, q=q, warnings=told)
        return self._page(
            request,
            "admin/quotas/tree.html",
            way="changelist",
            title=_("Queues"),
            rows=rows,
            columns=tree.columns_of(seen),
            notes=told.get("", []) if reach.rights.everything else [],
            q=q,
            # The top of the tree, and all of it as a file, are for administrators of the company.
            may_add=reach.rights.everything,
            add_href=reverse("admin:quotas_queue_add"),
            export_href=reverse("admin:quotas_queue_export"),
        )

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """All queues, retired ones too, to search and to sort."""
        return super().changelist_view(request, {"title": _("Queues"), "subtitle": None})

    # -- One queue --

    def add_view(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        self._require_view(request)
        return editing.queue_added(request, self._context(request, title=_("New queue")))

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_kwargs: Any
    ) -> HttpResponse:
        queue = self._of(request, object_id)
        if queue.retired_at is not None:
            # What is left of it is what was done with it.
            return redirect("admin:quotas_queue_history", queue.pk)
        context = self._context(request, title=queue.name)
        return editing.queue_edited(request, context, queue)

    def history_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_kwargs: Any
    ) -> HttpResponse:
        queue = self._of(request, object_id)
        title = _("History of %(queue)s") % {"queue": queue.name}
        return history.changes_listed(
            request, self._context(request, way="changes", title=title), queue=queue
        )

    def move_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        queue = self._queue(request, pk)
        title = _("Move %(queue)s") % {"queue": queue.name}
        return acts.queue_moved(request, self._context(request, title=title), queue)

    def state_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        queue = self._queue(request, pk)
        return acts.queue_stated(request, self._context(request, title=queue.name), queue)

    def retire_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        queue = self._queue(request, pk)
        title = _("Retire %(queue)s") % {"queue": queue.name}
        return acts.queue_retired(request, self._context(request, title=title), queue)

    # -- Many queues --

    def bulk_view(self, request: HttpRequest) -> HttpResponse:
        self._require_view(request)
        return bulk.queues_edited(request, self._context(request, way="bulk", title=_("Bulk edit")))

    def export_view(self, request: HttpRequest) -> HttpResponse:
        self._require_view(request)
        return files.tree_exported(request)

    def import_view(self, request: HttpRequest) -> HttpResponse:
        self._require_view(request)
        title = _("Import queues")
        return files.tree_imported(request, self._context(request, way="import", title=title))

    def changes_view(self, request: HttpRequest) -> HttpResponse:
        self._require_view(request)
        title = _("History of the queues")
        return history.changes_listed(request, self._context(request, way="changes", title=title))

    def past_view(self, request: HttpRequest, uid: str) -> HttpResponse:
        self._require_view(request)
        title = _("A change of the queues")
        return history.change_shown(
            request, self._context(request, way="changes", title=title), uid=uid
        )

    # -- What all pages have --

    def _require_view(self, request: HttpRequest) -> None:
        """:raises PermissionDenied: if they manage no queues."""
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _of(self, request: HttpRequest, key: str) -> Queue:
        """:raises Http404: if there is none that they may change."""
        self._require_view(request)
        queue = self.get_object(request, key)
        if queue is None:
            raise Http404
        return queue

    def _queue(self, request: HttpRequest, key: int) -> Queue:
        """:raises Http404: if there is none that they may change; retired ones are gone."""
        queue = self._of(request, str(key))
        if queue.retired_at is not None:
            raise Http404
        return queue

    def _context(self, request: HttpRequest, *, way: str = "", **context: Any) -> dict[str, Any]:
        ways = [
            {
                "label": each.label,
                "href": reverse(f"admin:quotas_queue_{each.name}"),
                "current": each.name == way,
            }
            for each in WAYS
        ]
        return {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "ways": ways,
            "has_change_permission": self.has_change_permission(request),
            "has_delete_permission": False,
            **context,
        }

    def _page(
        self, request: HttpRequest, template: str, *, way: str, **context: Any
    ) -> HttpResponse:
        request.current_app = self.admin_site.name
        return TemplateResponse(request, template, self._context(request, way=way, **context))
