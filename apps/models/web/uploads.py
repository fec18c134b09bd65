"""Uploading a dataset: the form, a look at the file's beginning before it is sent, the upload itself."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.web.requests import AuthenticatedRequest
from apps.models.models import DatasetVersion
from apps.models.selectors.datasets import next_number
from apps.models.services import datasets as services
from apps.models.web.datasets import warning_text
from apps.models.web.forms import DatasetForm
from controlplane.domain.common.permissions import Permission
from controlplane.domain.datasets import DatasetRefused
from controlplane.domain.storage.usage import StorageQuotaExceeded
from controlplane.ports.artifacts import StorageFull

#: Rows of the look that are shown.
_ROWS_SHOWN = 3


@login_required
def dataset_new(request: AuthenticatedRequest) -> HttpResponse:
    """The upload form; a file that is refused comes back as a table of its wrong rows.

    A script that shows how far the upload is gets ``{"to": address}`` where a browser is sent on.
    """
    context = {"limit": settings.NINEFOLD_UPLOAD_LIMIT, "adds_to": request.GET.get("name", "")}
    if request.method != "POST":
        typed = {name: request.GET[name] for name in ("name", "team") if name in request.GET}
        form = DatasetForm(user=request.user, initial=typed)
        return render(request, "registry/dataset_new.html", {**context, "form": form})
    form = DatasetForm(request.POST, request.FILES, user=request.user)
    refused: DatasetRefused | None = None
    if form.is_valid():
        try:
            version = _upload(request, form)
        except DatasetRefused as refusal:
            refused = refusal
        except (StorageFull, StorageQuotaExceeded) as full:
            form.add_error(None, str(full))
        except services.DuplicateUpload as duplicate:
            messages.info(request, str(duplicate))
            return _sent_on(request, duplicate.existing)
        else:
            messages.success(request, _("%(version)s is ready to train on.") % {"version": version})
            return _sent_on(request, version)
    context |= {"form": form, "refused": refused}
    return render(request, "registry/dataset_new.html", context, status=422)


def _sent_on(request: AuthenticatedRequest, version: DatasetVersion) -> HttpResponse:
    address = reverse("dataset-version", args=[version.uid])
    if request.headers.get("X-Requested-With") == "XMLHttpRequest":
        return JsonResponse({"to": address})
    return redirect(address)


def _upload(request: AuthenticatedRequest, form: DatasetForm) -> DatasetVersion:
    values = form.cleaned_data
    accounts.require(request.user, Permission.CONTRIBUTE, team=values["team"])
    return services.dataset_upload(
        actor=request.user,
        team=values["team"],
        name=values["name"],
        stream=values["file"].file,
        filename=values["file"].name,
        columns=form.columns(),
        description=values["description"],
    )


@login_required
@require_POST
def dataset_check(request: AuthenticatedRequest) -> HttpResponse:
    """What the file, or the beginning of it with ``part=1``, would become; nothing is kept."""
    form = DatasetForm(request.POST, request.FILES, user=request.user)
    form.is_valid()
    values = form.cleaned_data
    context = {"form": form, "part": request.POST.get("part") == "1"}
    if "file" in values:
        try:
            found = services.dataset_inspect(
                stream=values["file"].file, filename=values["file"].name, columns=form.columns()
            )
        except DatasetRefused as refusal:
            context["refused"] = refusal
        else:
            columns = found.columns
            # Input and system are taken where a row has them; these are in every row.
            parts = (
                columns.messages,
                columns.instruction,
                columns.output,
                columns.rejected,
                columns.text,
                columns.split,
            )
            context |= {
                "found": found,
                "used": [name for name in parts if name],
                "rows": found.preview[:_ROWS_SHOWN],
                "warnings": [warning_text(one.kind, one.total) for one in found.warnings],
            }
    if values.get("name") and values.get("team"):
        context["name"] = values["name"]
        context["number"] = next_number(team=values["team"], name=values["name"])
    return render(request, "registry/dataset_check.html", context)
