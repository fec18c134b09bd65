"""Pages of datasets: list, versions, rows, and upload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext, pgettext
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.accounts.web.forms import TeamFilterForm
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.models.models import DatasetVersion
from apps.models.selectors import (
    ArtifactFileMissing,
    dataset_versions_visible,
    datasets_visible,
    datasets_with_newest_version,
)
from apps.models.selectors import datasets as selectors
from apps.models.selectors.datasets import dataset_rows, next_version_number
from apps.models.selectors.storage import deletion_blockers
from apps.models.services import datasets as services
from apps.models.web.forms import DatasetForm
from apps.models.web.model_version_actions import artifact_file_response
from controlplane.domain.common.permissions import Permission, roles_grant
from controlplane.domain.datasets import HISTOGRAM_EDGES, DatasetRefused, Split
from controlplane.domain.datasets.inspection import LONG_ROW, WarningKind
from controlplane.domain.storage.team_storage import StorageQuotaExceeded
from controlplane.ports.artifacts import BlobMissing, StorageFull, StorageUnavailable
from controlplane.web.pages import PageTab
from controlplane.web.tables import ListTable, TableColumn

#: Models trained on a version that its page shows; the lineage has all.
_MODELS_SHOWN = 5


class DatasetFilter(TeamFilterForm):
    field_order = ("text", "team")

    text = forms.CharField(label=lazy("Name contains"), max_length=80)

    lookups: ClassVar[Mapping[str, str]] = {"text": "name__icontains", "team": "team"}


_DATASETS = (
    TableColumn(key="name", label=lazy("Name"), sort="name"),
    TableColumn(
        key="newest_number", label=lazy("Newest version"), sort="newest_number", numeric=True
    ),
    TableColumn(key="rows", label=lazy("Rows"), sort="rows", numeric=True),
    TableColumn(key="size", label=lazy("Size"), sort="size", numeric=True),
    TableColumn(key="description", label=lazy("Description")),
    TableColumn(key="team", label=lazy("Team"), sort="team__name"),
    TableColumn(key="newest_at", label=lazy("Uploaded"), sort="newest_at"),
)
_VERSIONS = (
    TableColumn(key="number", label=lazy("Version"), sort="number"),
    TableColumn(key="row_count", label=lazy("Rows"), sort="row_count", numeric=True),
    TableColumn(
        key="grown",
        label=lazy("Row change"),
        sort="grown",
        numeric=True,
    ),
    TableColumn(
        key="size",
        label=lazy("Size"),
        sort="artifact__size",
        numeric=True,
        csv=lambda row: row.artifact.size,
    ),
    TableColumn(key="tuned", label=lazy("Trained models"), sort="tuned", numeric=True),
    TableColumn(key="measured", label=lazy("Evaluations"), sort="measured", numeric=True),
    TableColumn(key="created_by", label=lazy("Created by"), sort="created_by__username"),
    TableColumn(key="created_at", label=lazy("Uploaded"), sort="pk"),
)


@login_required
def dataset_list(request: AuthenticatedRequest) -> HttpResponseBase:
    table = ListTable(
        request,
        datasets_with_newest_version(request.user),
        columns=_DATASETS,
        filters=DatasetFilter(request.GET, user=request.user),
        default_sort="-newest_at",
    )
    if table.is_csv_request:
        return table.csv(filename="datasets.csv")
    return render(request, "registry/datasets.html", {"table": table})


@login_required
def dataset_detail(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """The versions of a dataset, with the growth in rows."""
    found = get_object_or_404(datasets_visible(request.user), uid=uid)
    table = ListTable(
        request,
        selectors.dataset_versions_with_counts(found),
        columns=_VERSIONS,
        default_sort="-number",
    )
    if table.is_csv_request:
        return table.csv(filename=f"{found.name}-versions.csv")
    context = {
        "dataset": found,
        "table": table,
        "may_change": _can_contribute(request, found.team),
    }
    return render(request, "registry/dataset.html", context)


@login_required
def dataset_version_detail(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Content, warnings, and changes from the previous version."""
    version = get_object_or_404(dataset_versions_visible(request.user), uid=uid)
    before = selectors.previous_dataset_version(version)
    trained = list(selectors.models_trained_on(version, user=request.user)[: _MODELS_SHOWN + 1])
    context = {
        "version": version,
        "tabs": dataset_tabs(version, "overview"),
        **_deletion_context(request, version),
        "splits": _split_table_rows(version),
        "findings": _upload_warnings(version),
        "before": before,
        "changes": selectors.dataset_row_changes(before, version) if before else None,
        "trained_models": trained[:_MODELS_SHOWN],
        "more_trained_models": len(trained) > _MODELS_SHOWN,
    }
    return render(request, "registry/dataset_version.html", context)


def _deletion_context(request: AuthenticatedRequest, version: DatasetVersion) -> dict[str, Any]:
    """``may_change``: whether the user may delete it; ``holds``: reasons why it cannot be deleted."""
    may = _can_contribute(request, version.dataset.team)
    usable = version.artifact.usable
    holds = deletion_blockers(version.artifact, at=timezone.now()) if may and usable else []
    return {"may_change": may, "holds": holds}


def _can_contribute(request: AuthenticatedRequest, team: Team) -> bool:
    return roles_grant(accounts.roles_of(request.user, team), Permission.CONTRIBUTE)


def _split_table_rows(version: DatasetVersion) -> list[dict[str, Any]]:
    rows = version.statistics.get("rows_by_split", {})
    total = max(1, sum(rows.values()))
    sizes = {file["path"]: file["size"] for file in version.artifact.files}
    return [
        {
            "name": name.value,
            "rows": count,
            "percent": 100 * count / total,
            "size": sizes.get(f"{name}.jsonl", 0),
        }
        for name in Split
        if (count := rows.get(name, 0))
    ]


def _upload_warnings(version: DatasetVersion) -> list[dict[str, Any]]:
    """Warnings of the upload as messages, with the first row numbers.

    Older versions recorded only the number of duplicate rows.
    """
    statistics = version.statistics
    noted = statistics.get("warnings")
    if noted is None:
        repeated = statistics.get("duplicates", 0)
        noted = [{"kind": WarningKind.REPEATED, "total": repeated, "rows": []}] if repeated else []
    found = [
        {
            "text": format_upload_warning(WarningKind(one["kind"]), one["total"]),
            "rows": one["rows"],
            "more": one["total"] - len(one["rows"]) if one["rows"] else 0,
        }
        for one in noted
    ]
    if ignored := statistics.get("ignored_columns"):
        text = _("Ignored columns: %(names)s.") % {"names": ", ".join(ignored)}
        found.append({"text": text, "rows": [], "more": 0})
    return found


def format_upload_warning(kind: WarningKind, total: int) -> str:
    """The warning in the user's language."""
    labels = {
        WarningKind.REPEATED: ngettext(
            "%(count)s duplicate row.",
            "%(count)s duplicate rows.",
            total,
        ),
        WarningKind.LEAKED: ngettext(
            "%(count)s row is in more than one split, so evaluations include training data.",
            "%(count)s rows are in more than one split, so evaluations include training data.",
            total,
        ),
        WarningKind.LONG: ngettext(
            "%(count)s row has more than %(most)s characters and may be truncated in training.",
            "%(count)s rows have more than %(most)s characters and may be truncated in training.",
            total,
        ),
        WarningKind.MEDIA: ngettext(
            "%(count)s row has images, audio or video; only its text is stored.",
            "%(count)s rows have images, audio or video; only their text is stored.",
            total,
        ),
    }
    return labels[kind] % {"count": f"{total:,}", "most": f"{LONG_ROW:,}"}


@login_required
def dataset_rows_page(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Rows of ``?split=`` that contain ``?q=``, from byte ``?at=``, where row ``?row=`` begins."""
    version = get_object_or_404(dataset_versions_visible(request.user), uid=uid)
    splits = [one["name"] for one in _split_table_rows(version)]
    split = request.GET.get("split") or splits[0]
    if split not in splits:
        raise Http404(f"{version} has no split {split!r}")
    text = request.GET.get("q", "")[:200]
    offset = _integer_parameter_or_default(request, "at", default=0)
    context: dict[str, Any] = {
        "version": version,
        "tabs": dataset_tabs(version, "rows"),
        **_deletion_context(request, version),
        "splits": splits,
        "split": split,
        "text": text,
        "later": offset > 0,
    }
    try:
        context["page"] = dataset_rows(
            version,
            split=split,
            text=text,
            offset=offset,
            number=_integer_parameter_or_default(request, "row", default=1),
        )
    except (ArtifactFileMissing, BlobMissing) as missing:
        context["missing"] = str(missing)
    return render(request, "registry/dataset_rows.html", context)


def _integer_parameter_or_default(request: AuthenticatedRequest, name: str, *, default: int) -> int:
    """The query parameter as a number, or the default if it is not a plausible one."""
    text = request.GET.get(name, "")
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 16 else default


@login_required
def dataset_length_histogram(request: AuthenticatedRequest, uid: str) -> JsonResponse:
    """Histogram of row lengths for a chart; see ``static/js/charts.js``."""
    version = get_object_or_404(dataset_versions_visible(request.user), uid=uid)
    buckets = _histogram_buckets(version.statistics.get("histogram", []))
    series = {"name": _("rows"), "kind": "bar", "x": list(buckets), "y": list(buckets.values())}
    return JsonResponse(
        {
            "x": {"label": _("characters"), "type": "category"},
            "y": {"label": _("rows")},
            "series": [series] if buckets else [],
            "ended": True,
        }
    )


def _histogram_buckets(histogram: list[int]) -> dict[str, int]:
    """Rows per range of characters, without empty ranges at both ends."""
    filled = [index for index, count in enumerate(histogram) if count]
    if not filled:
        return {}
    edges = [*HISTOGRAM_EDGES, None]
    return {
        _range_label(edges[index], edges[index + 1]): histogram[index]
        for index in range(filled[0], filled[-1] + 1)
    }


def _range_label(low: int | None, high: int | None) -> str:
    return f"{low:,}+" if high is None else f"{low:,}–{high - 1:,}"


@login_required
def dataset_split_download(request: AuthenticatedRequest, uid: str, split: str) -> HttpResponseBase:
    """Download a split as JSON Lines."""
    version = get_object_or_404(dataset_versions_visible(request.user), uid=uid)
    prefix = f"{version.dataset.name}-v{version.number}"
    return artifact_file_response(version.artifact, f"{split}.jsonl", prefix=prefix)


#: Rows of the preview.
_ROWS_SHOWN = 3


@login_required
def dataset_new(request: AuthenticatedRequest) -> HttpResponse:
    """The upload form; a refused file is answered with a table of its invalid rows.

    The upload script gets ``{"to": URL}`` instead of a redirect.
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
            version = _upload_version(request, form)
        except DatasetRefused as refusal:
            refused = refusal
        except (StorageFull, StorageUnavailable, StorageQuotaExceeded) as full:
            form.add_error(None, str(full))
        except services.DuplicateUpload as duplicate:
            messages.info(request, str(duplicate))
            return _redirect_to_version(request, duplicate.existing)
        else:
            messages.success(
                request, _("%(version)s is ready for training.") % {"version": version}
            )
            return _redirect_to_version(request, version)
    context |= {"form": form, "refused": refused}
    return render(request, "registry/dataset_new.html", context, status=422)


def _redirect_to_version(request: AuthenticatedRequest, version: DatasetVersion) -> HttpResponse:
    address = reverse("dataset-version", args=[version.uid])
    if request.headers.get("X-Requested-With") == "XMLHttpRequest":
        return JsonResponse({"to": address})
    return redirect(address)


def _upload_version(request: AuthenticatedRequest, form: DatasetForm) -> DatasetVersion:
    values = form.cleaned_data
    accounts.require_permission(request.user, Permission.CONTRIBUTE, team=values["team"])
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
def dataset_file_inspect(request: AuthenticatedRequest) -> HttpResponse:
    """Inspect the file, or its beginning with ``part=1``, without storing anything."""
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
            # Input and system are optional in a row; these are in every row.
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
                "warnings": [format_upload_warning(one.kind, one.total) for one in found.warnings],
            }
    if values.get("name") and values.get("team"):
        context["name"] = values["name"]
        context["number"] = next_version_number(team=values["team"], name=values["name"])
    return render(request, "registry/dataset_check.html", context)


def dataset_tabs(version: DatasetVersion, current: str) -> list[PageTab]:
    """``current`` is ``overview``, ``rows`` or ``lineage``."""
    parts = (
        ("overview", _("Overview"), "dataset-version"),
        ("rows", pgettext("tab", "Rows"), "dataset-rows"),
        ("lineage", _("Usage"), "dataset-lineage"),
    )
    return [
        PageTab(label=label, href=reverse(name, args=[version.uid]), current=key == current)
        for key, label, name in parts
    ]
