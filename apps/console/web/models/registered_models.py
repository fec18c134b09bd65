"""Pages of registered models and their versions, with the deployments that serve them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.console.selectors import registered_models as selectors
from apps.console.web.models.lineage import versions_lineage
from apps.models import selectors as registry
from apps.models.models import ModelLine, ModelVersion
from apps.models.web.model_version_actions import models_tabs
from controlplane.domain.common.resources import format_bytes
from controlplane.web.pages import PageTab
from controlplane.web.tables import FilterForm, ListTable, TableColumn


class LineFilter(FilterForm):
    text = forms.CharField(label=lazy("Name"), max_length=80)
    architecture = forms.ChoiceField(label=lazy("Architecture"))
    team = forms.ModelChoiceField(
        label=lazy("Team"),
        queryset=Team.objects.none(),
        to_field_name="uid",
        empty_label=lazy("all"),
    )
    serving = forms.BooleanField(label=lazy("serving now"))
    lookups: ClassVar[Mapping[str, str]] = {
        "text": "name__icontains",
        "architecture": "architecture",
        "team": "team",
    }

    def __init__(self, *args: Any, user: accounts.RequestUser, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = selectors.architectures_visible(user)
        self.choice("architecture").choices = [("", _("all")), *((name, name) for name in names)]
        self.model_choice_field("team").queryset = accounts.teams_visible(user)

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        narrowed = super().apply(rows)
        return narrowed.filter(serving__gt=0) if self.chosen("serving") else narrowed


def _format_size(row: Any) -> str:
    return format_bytes(row.size) if row.size else ""


LINES = (
    TableColumn(key="name", label=lazy("Name"), sort="name"),
    TableColumn(
        key="newest_number", label=lazy("Newest version"), sort="newest_number", numeric=True
    ),
    TableColumn(key="newest_state", label=lazy("State")),
    TableColumn(key="architecture", label=lazy("Architecture"), sort="architecture"),
    TableColumn(key="parameters", label=lazy("Parameters"), sort="parameters", numeric=True),
    TableColumn(key="size", label=lazy("Size"), sort="size", numeric=True, csv=_format_size),
    TableColumn(key="serving", label=lazy("Deployments"), sort="serving", numeric=True),
    TableColumn(key="team", label=lazy("Team"), csv=lambda row: row.team or _("all teams")),
    TableColumn(key="newest_at", label=lazy("Made"), sort="newest_at"),
)

VERSIONS = (
    TableColumn(key="number", label=lazy("Version"), sort="number", numeric=True),
    TableColumn(key="state", label=lazy("State")),
    TableColumn(
        key="base", label=lazy("Created from"), csv=lambda row: row.base if row.base_visible else ""
    ),
    TableColumn(
        key="dataset",
        label=lazy("Dataset"),
        csv=lambda row: row.dataset_version if row.dataset_visible else "",
    ),
    TableColumn(key="measured", label=lazy("Measured")),
    TableColumn(
        key="size",
        label=lazy("Size"),
        sort="artifact__size",
        numeric=True,
        csv=lambda row: format_bytes(row.artifact.size) if row.artifact else "",
    ),
    TableColumn(key="deployments", label=lazy("Serves in")),
    TableColumn(key="created_at", label=lazy("Made"), sort="pk"),
)


@login_required
def model_line_list(request: AuthenticatedRequest) -> HttpResponseBase:
    table = ListTable(
        request,
        selectors.model_lines_with_newest(request.user),
        columns=LINES,
        filters=LineFilter(request.GET, user=request.user),
    )
    if table.is_csv_request:
        return table.csv(filename="models.csv")
    return render(
        request, "console/models/models.html", {"table": table, "tabs": models_tabs("ours")}
    )


@login_required
def model_line_detail(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """``?tab=`` is ``versions``, ``compare`` or ``lineage``."""
    line = get_object_or_404(registry.model_lines_visible(request.user), uid=uid)
    versions = selectors.versions_with_origin(request.user).filter(line=line)
    requested = request.GET.get("tab", "")
    tab = requested if requested in ("compare", "lineage") else "versions"
    context: dict[str, Any] = {"line": line, "tabs": _model_tabs(line, tab)}
    if tab == "compare":
        return render(
            request,
            "console/models/model_compare.html",
            {**context, **_version_comparison_context(request, versions)},
        )
    if tab == "lineage":
        newest = versions.order_by("-number").values_list("pk", flat=True)
        drawing = versions_lineage(request, list(newest[: selectors.MAX_COMPARED_VERSIONS * 2]))
        return render(request, "console/models/model_lineage.html", {**context, "drawing": drawing})
    table = ListTable(request, versions, columns=VERSIONS, default_sort="-number")
    if table.is_csv_request:
        return table.csv(filename=f"{line.name}-versions.csv")
    keys = [version.pk for version in table.rows]
    measured = selectors.evaluation_summaries(keys, user=request.user)
    serving = selectors.deployments_by_version(keys, user=request.user)
    rows = [
        (version, measured.get(version.pk), serving.get(version.pk, [])) for version in table.rows
    ]
    return render(request, "console/models/model.html", {**context, "table": table, "rows": rows})


def _model_tabs(line: ModelLine, current: str) -> list[PageTab]:
    page = reverse("model", args=[line.uid])
    return [
        PageTab(label=_("Versions"), href=page, current=current == "versions"),
        PageTab(label=_("Compare"), href=f"{page}?tab=compare", current=current == "compare"),
        PageTab(label=_("Lineage"), href=f"{page}?tab=lineage", current=current == "lineage"),
    ]


def _version_comparison_context(
    request: AuthenticatedRequest, versions: QuerySet[ModelVersion]
) -> dict[str, Any]:
    """Context of the comparison: the versions in ``?version=``, or else the newest."""
    all_versions = list(versions.order_by("-number")[:100])
    wanted = set(request.GET.getlist("version"))
    chosen = [one for one in all_versions if one.uid in wanted] or all_versions
    chosen = sorted(chosen[: selectors.MAX_COMPARED_VERSIONS], key=lambda one: one.number)
    return {
        "every": all_versions,
        "chosen": chosen,
        "measured": selectors.metric_comparisons(chosen, user=request.user),
        "most": selectors.MAX_COMPARED_VERSIONS,
    }
