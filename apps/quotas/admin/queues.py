"""The queue console: the admin of the queue tree, with a preview of the effects of each change.

The tree can be exported to YAML, and imported after a preview.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
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
from apps.quotas.admin import queue_changes, queue_editing, queue_table
from apps.quotas.admin.queue_changes import (
    ProposedQueueChange,
    queue_change_review_response,
)
from apps.quotas.models import Queue
from apps.quotas.selectors import queue_trees
from apps.quotas.selectors.queues import queue_tree
from apps.quotas.services.queue_tree_files import (
    MAX_FILE_BYTES,
    queue_tree_export,
    tree_edit_from_yaml,
)
from controlplane.domain.common.permissions import Permission
from controlplane.domain.quotas.permissions import may_change_queue
from controlplane.domain.quotas.queue_documents import TreeEdit
from controlplane.domain.quotas.queue_files import InvalidQueueFile
from controlplane.domain.quotas.validation import validate_tree_change
from controlplane.web.forms import StyledForm
from controlplane.web.reasons import render_reason

View = Callable[..., HttpResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleTab:
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
        return export_queue_tree(request)

    def import_view(self, request: HttpRequest) -> HttpResponse:
        self._require_view_permission(request)
        title = _("Import queues")
        return import_queue_tree(request, self._page_context(request, tab="import", title=title))

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


class QueueTreeFileForm(StyledForm):
    text = forms.CharField(
        label=gettext_lazy("YAML"),
        required=False,
        strip=False,
        max_length=MAX_FILE_BYTES,
        widget=forms.Textarea(
            attrs={"rows": 16, "spellcheck": "false", "class": "form-control qc-code"}
        ),
    )
    file = forms.FileField(
        label=gettext_lazy("File"),
        required=False,
        help_text=gettext_lazy(
            "The contents of the file are copied to the field below and can be edited there."
        ),
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml", "data-file-into": "id_text"}),
    )
    prune = forms.BooleanField(
        label=gettext_lazy("Retire queues that are not in the file"),
        required=False,
        help_text=gettext_lazy(
            "If this is not selected, such queues are not changed. Queues with pending "
            "or running claims are never retired."
        ),
    )

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        upload = values.get("file")
        if upload is not None:
            if upload.size > MAX_FILE_BYTES:
                self.add_error(
                    "file",
                    _("The file has %(size)d bytes; at most %(most)d bytes are allowed.")
                    % {"size": upload.size, "most": MAX_FILE_BYTES},
                )
            else:
                values["text"] = upload.read().decode("utf-8", errors="replace")
        if not self.errors and not values.get("text", "").strip():
            self.add_error("text", _("Choose a file, or paste its contents."))
        return values


def export_queue_tree(request: HttpRequest) -> HttpResponse:
    """Export a branch (``?of=`` is the uid of its queue), or the whole tree for company administrators.

    :raises PermissionDenied: if the user manages only a part and ``?of=`` is missing.
    :raises Http404: if the user cannot change that queue.
    """
    documents, rights = (
        queue_trees.queue_tree_documents(),
        queue_trees.queue_tree_permissions(request.user),
    )
    uid = request.GET.get("of", "")
    if not uid and not rights.everything:
        raise PermissionDenied
    if uid and (uid not in documents or not may_change_queue(uid, documents, rights)):
        raise Http404
    queue = Queue.objects.get(uid=uid) if uid else None
    name = queue.name if queue else "queues"
    return HttpResponse(
        queue_tree_export(of=queue),
        content_type="application/yaml; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.yaml"'},
    )


def import_queue_tree(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    form = QueueTreeFileForm(request.POST or None, request.FILES or None)
    edit = _tree_edit_of_file_form(form)
    if form.is_bound and (text := form.cleaned_data.get("text")) and "file" in request.FILES:
        # Show the uploaded file as text, so that saving submits it again.
        form = QueueTreeFileForm({**request.POST.dict(), "text": text})
    proposal = ProposedQueueChange(
        edit=edit,
        forms=(form,),
        done=_("Queues imported from the file."),
        verb=_("Import"),
    )
    return queue_change_review_response(
        request, proposal, template="admin/quotas/import.html", context={**context, "form": form}
    )


def _tree_edit_of_file_form(form: QueueTreeFileForm) -> TreeEdit | None:
    if not form.is_bound or not form.is_valid():
        return None
    try:
        return tree_edit_from_yaml(form.cleaned_data["text"], prune=form.cleaned_data["prune"])
    except InvalidQueueFile as refusal:
        for finding in refusal.findings:
            form.add_error("text", render_reason(finding.message))
        return None
