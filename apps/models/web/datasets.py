"""Pages of datasets: the list, one dataset with its versions, one version with its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.accounts.web.forms import TeamFilterForm
from apps.accounts.web.requests import AuthenticatedRequest
from apps.models.models import DatasetVersion
from apps.models.selectors import (
    NoSuchFile,
    dataset_versions_visible,
    datasets_visible,
    datasets_with_newest,
)
from apps.models.selectors import datasets as selectors
from apps.models.selectors.contents import dataset_rows
from apps.models.selectors.storage import obstacles
from apps.models.web.files import file_answer
from apps.models.web.tabs import dataset_tabs
from controlplane.domain.common.permissions import Permission, allows
from controlplane.domain.datasets import HISTOGRAM_EDGES, Split
from controlplane.domain.datasets.warnings import LONG_ROW, WarningKind
from controlplane.ports.artifacts import BlobMissing
from controlplane.web.tables import Column, Table

#: Models made from a version that its page names; the lineage has all.
_MODELS_NAMED = 5


class DatasetFilter(TeamFilterForm):
    field_order = ("text", "team")

    text = forms.CharField(label=lazy("Name contains"), max_length=80)

    lookups: ClassVar[Mapping[str, str]] = {"text": "name__icontains", "team": "team"}


_DATASETS = (
    Column(key="name", label=lazy("Name"), sort="name"),
    Column(key="newest_number", label=lazy("Newest version"), sort="newest_number", numeric=True),
    Column(key="rows", label=lazy("Rows"), sort="rows", numeric=True),
    Column(key="size", label=lazy("Size"), sort="size", numeric=True),
    Column(key="description", label=lazy("Description")),
    Column(key="team", label=lazy("Team"), sort="team__name"),
    Column(key="newest_at", label=lazy("Uploaded"), sort="newest_at"),
)
_VERSIONS = (
    Column(key="number", label=lazy("Version"), sort="number"),
    Column(key="row_count", label=lazy("Rows"), sort="row_count", numeric=True),
    Column(
        key="grown",
        label=lazy("Rows more or fewer"),
        sort="grown",
        numeric=True,
    ),
    Column(
        key="size",
        label=lazy("Size"),
        sort="artifact__size",
        numeric=True,
        csv=lambda row: row.artifact.size,
    ),
    Column(key="tuned", label=lazy("Models made"), sort="tuned", numeric=True),
    Column(key="measured", label=lazy("Evaluations"), sort="measured", numeric=True),
    Column(key="created_by", label=lazy("By"), sort="created_by__username"),
    Column(key="created_at", label=lazy("Uploaded"), sort="pk"),
)


@login_required
def datasets(request: AuthenticatedRequest) -> HttpResponseBase:
    table = Table(
        request,
        datasets_with_newest(request.user),
        columns=_DATASETS,
        filters=DatasetFilter(request.GET, user=request.user),
        default_sort="-newest_at",
    )
    if table.wants_csv:
        return table.csv(filename="datasets.csv")
    return render(request, "registry/datasets.html", {"table": table})


@login_required
def dataset(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """Its versions, and how the number of rows went from one to the next."""
    found = get_object_or_404(datasets_visible(request.user), uid=uid)
    table = Table(
        request,
        selectors.versions_listed(found),
        columns=_VERSIONS,
        default_sort="-number",
    )
    if table.wants_csv:
        return table.csv(filename=f"{found.name}-versions.csv")
    context = {
        "dataset": found,
        "table": table,
        "may_change": _may_contribute(request, found.team),
    }
    return render(request, "registry/dataset.html", context)


@login_required
def dataset_version(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """What is in it, what is odd in it, and how it differs from the version before."""
    version = get_object_or_404(dataset_versions_visible(request.user), uid=uid)
    before = selectors.version_before(version)
    made = list(selectors.models_made_from(version, user=request.user)[: _MODELS_NAMED + 1])
    context = {
        "version": version,
        "tabs": dataset_tabs(version, "overview"),
        **_steps(request, version),
        "splits": _shares(version),
        "findings": _findings(version),
        "before": before,
        "changes": selectors.rows_changed(before, version) if before else None,
        "made": made[:_MODELS_NAMED],
        "made_more": len(made) > _MODELS_NAMED,
    }
    return render(request, "registry/dataset_version.html", context)


def _steps(request: AuthenticatedRequest, version: DatasetVersion) -> dict[str, Any]:
    """Whether they ``may_change`` it, and what ``holds`` it, so that it cannot be deleted."""
    may = _may_contribute(request, version.dataset.team)
    usable = version.artifact.usable
    holds = obstacles(version.artifact, at=timezone.now()) if may and usable else []
    return {"may_change": may, "holds": holds}


def _may_contribute(request: AuthenticatedRequest, team: Team) -> bool:
    return allows(accounts.roles_of(request.user, team), Permission.CONTRIBUTE)


def _shares(version: DatasetVersion) -> list[dict[str, Any]]:
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


def _findings(version: DatasetVersion) -> list[dict[str, Any]]:
    """What was odd in the file and was kept, in words, with the first rows where it is.

    Versions of before that was noted know only how many rows are repeated.
    """
    statistics = version.statistics
    noted = statistics.get("warnings")
    if noted is None:
        repeated = statistics.get("duplicates", 0)
        noted = [{"kind": WarningKind.REPEATED, "total": repeated, "rows": []}] if repeated else []
    found = [
        {
            "text": warning_text(WarningKind(one["kind"]), one["total"]),
            "rows": one["rows"],
            "more": one["total"] - len(one["rows"]) if one["rows"] else 0,
        }
        for one in noted
    ]
    if ignored := statistics.get("ignored_columns"):
        text = _("Columns that were not used: %(names)s.") % {"names": ", ".join(ignored)}
        found.append({"text": text, "rows": [], "more": 0})
    return found


def warning_text(kind: WarningKind, total: int) -> str:
    """A finding in the reader's language."""
    words = {
        WarningKind.REPEATED: ngettext(
            "%(count)s row is equal to an earlier one: it is learned twice.",
            "%(count)s rows are equal to an earlier one: they are learned twice.",
            total,
        ),
        WarningKind.LEAKED: ngettext(
            "%(count)s row is in two splits: what is measured on it was learned before.",
            "%(count)s rows are in two splits: what is measured on them was learned before.",
            total,
        ),
        WarningKind.LONG: ngettext(
            "%(count)s row has more than %(most)s characters: training may cut it.",
            "%(count)s rows have more than %(most)s characters: training may cut them.",
            total,
        ),
        WarningKind.MEDIA: ngettext(
            "%(count)s row has images, audio or video: only its text is kept.",
            "%(count)s rows have images, audio or video: only their text is kept.",
            total,
        ),
    }
    return words[kind] % {"count": f"{total:,}", "most": f"{LONG_ROW:,}"}


@login_required
def dataset_rows_page(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Rows of ``?split=`` with the text of ``?q=``, from byte ``?at=``, where row ``?row=`` begins."""
    version = get_object_or_404(dataset_versions_visible(request.user), uid=uid)
    splits = [one["name"] for one in _shares(version)]
    split = request.GET.get("split") or splits[0]
    if split not in splits:
        raise Http404(f"{version} has no split {split!r}")
    text = request.GET.get("q", "")[:200]
    offset = _whole(request, "at", default=0)
    context: dict[str, Any] = {
        "version": version,
        "tabs": dataset_tabs(version, "rows"),
        **_steps(request, version),
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
            number=_whole(request, "row", default=1),
        )
    except (NoSuchFile, BlobMissing) as missing:
        context["missing"] = str(missing)
    return render(request, "registry/dataset_rows.html", context)


def _whole(request: AuthenticatedRequest, name: str, *, default: int) -> int:
    """That parameter of the address, if it is a number that a file can have."""
    text = request.GET.get(name, "")
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 16 else default


@login_required
def dataset_lengths(request: AuthenticatedRequest, uid: str) -> JsonResponse:
    """How many rows are how long, for a chart; see ``static/js/charts.js``."""
    version = get_object_or_404(dataset_versions_visible(request.user), uid=uid)
    buckets = _buckets(version.statistics.get("histogram", []))
    series = {"name": _("rows"), "kind": "bar", "x": list(buckets), "y": list(buckets.values())}
    return JsonResponse(
        {
            "x": {"label": _("characters"), "type": "category"},
            "y": {"label": _("rows")},
            "series": [series] if buckets else [],
            "ended": True,
        }
    )


def _buckets(histogram: list[int]) -> dict[str, int]:
    """Rows by range of characters, from the first that has some to the last: beyond lies nothing."""
    filled = [index for index, count in enumerate(histogram) if count]
    if not filled:
        return {}
    edges = [*HISTOGRAM_EDGES, None]
    return {
        _range(edges[index], edges[index + 1]): histogram[index]
        for index in range(filled[0], filled[-1] + 1)
    }


def _range(low: int | None, high: int | None) -> str:
    return f"{low:,}+" if high is None else f"{low:,}–{high - 1:,}"


@login_required
def dataset_file(request: AuthenticatedRequest, uid: str, split: str) -> HttpResponseBase:
    """All rows of a split as JSON Lines, to save."""
    version = get_object_or_404(dataset_versions_visible(request.user), uid=uid)
    prefix = f"{version.dataset.name}-v{version.number}"
    return file_answer(version.artifact, f"{split}.jsonl", prefix=prefix)
