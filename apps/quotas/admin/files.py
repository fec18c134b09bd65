"""The tree as a file: taken out, and brought in after everybody has seen what it would change."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.quotas.admin.reviews import Proposal, answer, saving_form
from apps.quotas.models import Queue
from apps.quotas.selectors import trees
from apps.quotas.services.tree_files import LARGEST_FILE, file_edit, tree_export
from apps.quotas.services.trees import TreeEdit
from controlplane.domain.queue_files import FileRefused
from controlplane.domain.queue_rights import may_change
from controlplane.web.forms import PlainForm
from controlplane.web.sentences import said


class FileForm(PlainForm):
    text = forms.CharField(
        label=gettext_lazy("YAML"),
        required=False,
        strip=False,
        max_length=LARGEST_FILE,
        widget=forms.Textarea(
            attrs={"rows": 16, "spellcheck": "false", "class": "form-control qc-code"}
        ),
    )
    file = forms.FileField(
        label=gettext_lazy("File"),
        required=False,
        help_text=gettext_lazy(
            "Its text is put in the field below, where it can still be changed."
        ),
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml", "data-file-into": "id_text"}),
    )
    prune = forms.BooleanField(
        label=gettext_lazy("Retire what the file does not name"),
        required=False,
        help_text=gettext_lazy(
            "Otherwise such queues stay as they are. Queues in which work waits or runs are never retired."
        ),
    )

    def clean(self) -> dict[str, Any]:
        told: dict[str, Any] = super().clean() or {}
        upload = told.get("file")
        if upload is not None:
            if upload.size > LARGEST_FILE:
                self.add_error(
                    "file",
                    _("The file has %(size)d bytes; %(most)d are the most.")
                    % {"size": upload.size, "most": LARGEST_FILE},
                )
            else:
                told["text"] = upload.read().decode("utf-8", errors="replace")
        if not self.errors and not told.get("text", "").strip():
            self.add_error("text", _("Choose a file, or paste what it says."))
        return told


def tree_exported(request: HttpRequest) -> HttpResponse:
    """``?of=`` is the uid of a queue; without it the whole tree, for administrators of the company.

    :raises PermissionDenied: if they manage only a part and did not say which.
    :raises Http404: if that queue is none that they may change.
    """
    documents, rights = trees.tree_documents(), trees.tree_rights(request.user)
    uid = request.GET.get("of", "")
    if not uid and not rights.everything:
        raise PermissionDenied
    if uid and (uid not in documents or not may_change(uid, documents, rights)):
        raise Http404
    queue = Queue.objects.get(uid=uid) if uid else None
    name = queue.name if queue else "queues"
    return HttpResponse(
        tree_export(of=queue),
        content_type="application/yaml; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.yaml"'},
    )


def tree_imported(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    form = FileForm(request.POST or None, request.FILES or None)
    edit = _edit(form)
    if form.is_bound and (text := form.cleaned_data.get("text")) and "file" in request.FILES:
        # What was uploaded is shown as text, so that it is sent again when it is saved.
        form = FileForm({**request.POST.dict(), "text": text})
    proposal = Proposal(
        edit=edit,
        saving=saving_form(request.POST or None),
        forms=(form,),
        word="stop",
        done=_("The queues are as the file says."),
        back=reverse("admin:quotas_queue_changelist"),
        verb=_("Import"),
    )
    return answer(
        request, proposal, template="admin/quotas/import.html", context={**context, "form": form}
    )


def _edit(form: FileForm) -> TreeEdit | None:
    if not form.is_bound or not form.is_valid():
        return None
    try:
        return file_edit(form.cleaned_data["text"], prune=form.cleaned_data["prune"])
    except FileRefused as refusal:
        for finding in refusal.findings:
            form.add_error("text", said(finding.message))
        return None
