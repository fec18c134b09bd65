"""Export of the queue tree to YAML, and import after a preview."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.quotas.admin.queue_changes import (
    ProposedQueueChange,
    queue_change_review_response,
    queue_change_save_form,
)
from apps.quotas.models import Queue
from apps.quotas.selectors import queue_trees
from apps.quotas.services.queue_tree_files import (
    MAX_FILE_BYTES,
    queue_tree_export,
    tree_edit_from_yaml,
)
from controlplane.domain.quotas.permissions import may_change_queue
from controlplane.domain.quotas.queue_documents import TreeEdit
from controlplane.domain.quotas.queue_files import InvalidQueueFile
from controlplane.web.forms import StyledForm
from controlplane.web.reasons import render_reason


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
        saving=queue_change_save_form(request.POST or None),
        forms=(form,),
        confirmation_text="stop",
        done=_("Queues imported from the file."),
        back=reverse("admin:quotas_queue_changelist"),
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
