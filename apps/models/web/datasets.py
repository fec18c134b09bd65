"""Pages of datasets."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from apps.accounts import selectors as accounts
from apps.accounts.web.requests import SignedIn
from apps.models import selectors
from apps.models.models import DatasetVersion
from apps.models.services import datasets as services
from apps.models.web.forms import DatasetForm
from controlplane.domain.datasets import HISTOGRAM_EDGES, DatasetRefused
from controlplane.domain.permissions import Permission
from controlplane.domain.storage import StorageQuotaExceeded
from controlplane.ports.artifacts import StorageFull
from controlplane.web.pages import keyset


@login_required
def datasets(request: SignedIn) -> HttpResponse:
    rows = selectors.datasets_with_versions(request.user)
    page = keyset(rows, before=request.GET.get("before", ""))
    return render(request, "registry/datasets.html", {"page": page})


@login_required
def dataset_new(request: SignedIn) -> HttpResponse:
    """The upload form; a file that is refused comes back as a table of its wrong rows."""
    typed = {"name": request.GET.get("name", "")}
    if request.method != "POST":
        form = DatasetForm(user=request.user, initial=typed)
        return render(request, "registry/dataset_new.html", {"form": form})
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
            return redirect("dataset-version", uid=duplicate.existing.uid)
        else:
            messages.success(request, _("%(version)s is ready to train on.") % {"version": version})
            return redirect("dataset-version", uid=version.uid)
    context = {"form": form, "refused": refused}
    return render(request, "registry/dataset_new.html", context, status=422)


def _upload(request: SignedIn, form: DatasetForm) -> DatasetVersion:
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
def dataset_version(request: SignedIn, uid: str) -> HttpResponse:
    version = get_object_or_404(selectors.dataset_versions_visible(request.user), uid=uid)
    others = version.dataset.versions.defer("statistics", "preview").order_by("-number")
    context = {
        "version": version,
        "versions": list(others),
        "splits": _shares(version),
        "buckets": _buckets(version.statistics.get("histogram", [])),
    }
    return render(request, "registry/dataset_version.html", context)


def _shares(version: DatasetVersion) -> list[dict[str, Any]]:
    rows = version.statistics.get("rows_by_split", {})
    total = max(1, sum(rows.values()))
    return [
        {"name": name, "rows": count, "percent": 100 * count / total}
        for name, count in rows.items()
        if count
    ]


def _buckets(histogram: list[int]) -> list[dict[str, Any]]:
    """Non-empty range of the histogram: what lies beyond its ends says nothing."""
    filled = [index for index, count in enumerate(histogram) if count]
    if not filled:
        return []
    edges = [*HISTOGRAM_EDGES, None]
    return [
        {"low": edges[index], "high": edges[index + 1], "rows": histogram[index]}
        for index in range(filled[0], filled[-1] + 1)
    ]
