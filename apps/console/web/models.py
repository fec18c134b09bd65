"""Pages of registered models with the deployments that serve them, and of one model version.

The page of a version: overview, files, lineage, quantization, pre-download of its weights, and the next steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.accounts.web.forms import TeamForm
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.console.selectors import registered_models as selectors
from apps.console.web.lineage import versions_lineage
from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.jobs import selectors as jobs
from apps.jobs.services import SpecRefused
from apps.models import selectors as registry
from apps.models.models import ModelLine, ModelVersion
from apps.models.selectors.model_versions import (
    QuantizationMetricChange,
    QuantizationReport,
    hub_import_of,
    import_progress,
    is_quantized,
    model_description,
    quantization_report,
)
from apps.models.web.catalog import catalog_context
from apps.models.web.model_version_actions import models_tabs
from apps.serving import selectors as serving
from apps.serving.models import WeightDownload
from apps.serving.selectors import first_available_route_name
from apps.serving.services import weight_downloads
from apps.serving.services.weight_downloads import NodeSelection
from controlplane.domain.common.permissions import Permission, roles_grant
from controlplane.domain.common.resources import format_bytes
from controlplane.domain.quantization.schemes import MetricComparison
from controlplane.domain.registry.versions import GateDecision, ModelState
from controlplane.domain.serving.lifecycle import ACTIVE_WEIGHT_DOWNLOAD_STATES
from controlplane.web.forms import row_choice_field, submitted_data
from controlplane.web.pages import PageTab, render_page, save_form
from controlplane.web.tables import FilterForm, ListTable, TableColumn
from controlplane.web.templatetags.ninefold import humanized, number


class LineFilter(FilterForm):
    text = forms.CharField(label=lazy("Name"), max_length=80)
    architecture = forms.ChoiceField(label=lazy("Architecture"))
    team = row_choice_field(Team, lazy("Team"), empty_label=lazy("all"))
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
    deployments = selectors.deployments_by_version(keys, user=request.user)
    rows = [
        (version, measured.get(version.pk), deployments.get(version.pk, []))
        for version in table.rows
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


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionActionBlockers:
    """For each action on the version, why it is not possible; empty where it is."""

    tune: str
    quantize: str
    evaluate: str
    deploy: str
    download: str
    #: The deployment name of the one-click action.
    name: str

    @property
    def reasons(self) -> list[str]:
        """The distinct reasons, in the order of the buttons."""
        reasons = (self.tune, self.quantize, self.evaluate, self.deploy, self.download)
        return list(dict.fromkeys(reason for reason in reasons if reason))


@login_required
def model_version_detail(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """``?tab=`` is ``overview``, ``files`` or ``lineage``."""
    version = get_object_or_404(selectors.versions_with_origin(request.user), uid=uid)
    requested = request.GET.get("tab", "")
    tab = requested if requested in ("files", "lineage") else "overview"
    context: dict[str, Any] = {
        "version": version,
        "steps": version_action_blockers(request, version),
        "tabs": version_tabs(version, tab),
    }
    if tab == "files":
        return render(request, "console/models/version_files.html", context)
    if tab == "lineage":
        drawing = versions_lineage(request, [version.pk])
        return render(
            request, "console/models/version_lineage.html", {**context, "drawing": drawing}
        )
    context |= _overview_context(request, version)
    changing = version.state == ModelState.IMPORTING
    return render_page(
        request, "console/models/model_version.html", context, fragment="live", changing=changing
    )


def version_tabs(version: ModelVersion, current: str) -> list[PageTab]:
    page = reverse("model-version", args=[version.uid])
    files = len(version.artifact.files) if version.artifact else None
    weights = reverse("model-version-weights", args=[version.uid])
    tabs = [
        PageTab(label=_("Overview"), href=page, current=current == "overview"),
        PageTab(
            label=_("Files"), href=f"{page}?tab=files", current=current == "files", count=files
        ),
        PageTab(label=_("Lineage"), href=f"{page}?tab=lineage", current=current == "lineage"),
        PageTab(label=_("Weights on nodes"), href=weights, current=current == "weights"),
    ]
    if is_quantized(version):
        href = reverse("model-version-quantization", args=[version.uid])
        tabs.insert(
            1, PageTab(label=_("Quantization"), href=href, current=current == "quantization")
        )
    return tabs


def _overview_context(request: AuthenticatedRequest, version: ModelVersion) -> dict[str, Any]:
    deployments = selectors.deployments_by_version([version.pk], user=request.user)
    producing_job = None
    if version.job_uid:
        producing_job = jobs.jobs_visible(request.user).filter(uid=version.job_uid).first()
    hub_import = hub_import_of(version)
    return {
        **catalog_context(version),
        "hub_import": hub_import,
        "import_progress": import_progress(hub_import) if hub_import else None,
        "evaluations": registry.evaluations_with_base(version, user=request.user),
        "moves": list(version.transitions.all()),
        "described": model_description(version.artifact),
        "deployments": deployments.get(version.pk, []),
        "maker": producing_job,
    }


def version_action_blockers(
    request: AuthenticatedRequest, version: ModelVersion
) -> VersionActionBlockers:
    roles_by_team = accounts.roles_by_team(request.user)
    missing = _files_unavailable_reason(version)
    team = version.line.team_id or min(roles_by_team, default=0)
    run = any(roles_grant(roles, Permission.RUN) for roles in roles_by_team.values())
    deploy = roles_grant(roles_by_team.get(team, frozenset()), Permission.DEPLOY)
    no_run = _("Your roles do not allow running jobs. A team administrator can change this.")
    no_deploy = _("Your roles do not allow deploying. A team administrator can change this.")
    plain = "" if run else no_run
    if is_quantized(version):
        plain = _("This version is quantized. Train or quantize its base version instead.")
    unfit = ""
    if version.acceptance == GateDecision.REJECTED:
        unfit = _("The quality loss exceeds the tolerance. Approve the version first.")
    return VersionActionBlockers(
        tune=missing or plain,
        quantize=missing or plain,
        evaluate=missing or ("" if run else no_run),
        deploy=missing or unfit or ("" if deploy else no_deploy),
        download=missing,
        name=first_available_route_name(version.line.name)
        if deploy and not missing and not unfit
        else "",
    )


def _files_unavailable_reason(version: ModelVersion) -> str:
    """Why its files cannot be used; empty if they can."""
    if version.state == ModelState.IMPORTING:
        return _(
            "The files of this version are being imported. The version can be used "
            "when the import has finished."
        )
    if version.state == ModelState.FAILED:
        return _("The import of the files failed. Retry it, or register another directory.")
    if version.state != ModelState.READY:
        return _("The files of this version were deleted.")
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationComparisonRow:
    """One row of the comparison of a quantized version with its base."""

    label: str
    before: str
    after: str
    difference: str
    tolerance: str = "–"
    #: None where there is no tolerance.
    tolerable: bool | None = None
    hint: str = ""


@login_required
def version_quantization(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """The quantized version compared with its base, against the tolerances; 404 for plain weights."""
    version = get_object_or_404(selectors.versions_with_origin(request.user), uid=uid)
    if not is_quantized(version):
        raise Http404(uid)
    producing_job = None
    if version.job_uid:
        producing_job = jobs.jobs_visible(request.user).filter(uid=version.job_uid).first()
    tolerance = producing_job.spec.get("tolerance") if producing_job else None
    roles = accounts.roles_by_team(request.user).get(version.line.team_id or 0, frozenset())
    found = quantization_report(version, tolerance=tolerance or {})
    context: dict[str, Any] = {
        "version": version,
        "steps": version_action_blockers(request, version),
        "tabs": version_tabs(version, "quantization"),
        "maker": producing_job,
        "found": found,
        "rows": list(_comparison_rows(found)),
        "may_decide": roles_grant(roles, Permission.CONTRIBUTE),
    }
    return render(request, "console/models/version_quantization.html", context)


def _comparison_rows(found: QuantizationReport) -> Iterator[QuantizationComparisonRow]:
    yield _size_row(_("size of all weights"), found.size)
    yield _size_row(
        _("size of quantized layers"),
        found.layers_size,
        _("including quantization scales and zero points"),
    )
    for each in found.comparisons:
        yield _metric_row(each)
    if found.speed.before:
        yield QuantizationComparisonRow(
            label=_("samples/s"),
            before=number(found.speed.before),
            after=number(found.speed.after),
            difference=_format_ratio(found.speed),
            hint=_("measured on the quantization host with unoptimized kernels"),
        )


def _size_row(
    label: str, change: QuantizationMetricChange, hint: str = ""
) -> QuantizationComparisonRow:
    return QuantizationComparisonRow(
        label=label,
        before=format_bytes(int(change.before or 0)),
        after=format_bytes(int(change.after or 0)),
        difference=_format_ratio(change),
        hint=hint,
    )


def _format_ratio(change: QuantizationMetricChange) -> str:
    """After as a multiple of before: ``0.48 ×``."""
    return "–" if change.share is None else f"{change.share:.3g} ×"


def _metric_row(each: MetricComparison) -> QuantizationComparisonRow:
    has_tolerance = each.tolerance is not None
    return QuantizationComparisonRow(
        label=humanized(each.metric),
        before=number(each.before),
        after=number(each.after),
        difference=_format_difference(each),
        tolerance=_format_tolerance(each),
        tolerable=each.tolerable if has_tolerance else None,
    )


def _format_difference(each: MetricComparison) -> str:
    if each.loss is None:
        return "–"
    if each.relative:
        return f"{each.loss:+.2%}"
    return _("%(points)s percentage points") % {"points": f"{-each.loss * 100:+.2f}"}


def _format_tolerance(each: MetricComparison) -> str:
    if each.tolerance is None:
        return "–"
    if each.relative:
        return f"+{each.tolerance:.2%}"
    return _("%(points)s percentage points") % {"points": f"−{each.tolerance * 100:.2f}"}


class WeightDownloadForm(TeamForm):
    """The nodes to which the weights of a version are downloaded in advance."""

    cluster = forms.ModelChoiceField(
        label=lazy("Cluster"),
        queryset=Cluster.objects.none(),
        to_field_name="uid",
        empty_label=None,
    )
    chip = forms.ChoiceField(
        label=lazy("Chip"), required=False, help_text=lazy("Only nodes with cards of this chip.")
    )
    labels = forms.CharField(
        label=lazy("Node labels"),
        required=False,
        max_length=1000,
        help_text=lazy(
            "Only nodes with all of these labels, for example of a node pool: name=value, separated by commas."
        ),
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "off"}),
    )
    nodes = forms.CharField(
        label=lazy("Nodes"),
        required=False,
        max_length=20_000,
        help_text=lazy("Names of nodes, separated by commas. Default: every node that matches."),
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "off"}),
    )
    finding_fields: ClassVar[Mapping[str, str]] = {"model_version": "cluster"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.model_choice_field("cluster").queryset = fleet.clusters_with_counts()
        chips = sorted(fleet.cards_by_chip())
        self.choice("chip").choices = [("", _("all")), *((name, name) for name in chips)]

    def clean_labels(self) -> dict[str, str]:
        labels = {}
        for each in _split_by_commas(self.cleaned_data["labels"]):
            name, separator, value = each.partition("=")
            if not separator or not name.strip():
                message = _("“%(label)s” must have the form name=value.") % {"label": each}
                raise forms.ValidationError(message)
            labels[name.strip()] = value.strip()
        return labels

    def clean_nodes(self) -> tuple[str, ...]:
        return tuple(_split_by_commas(self.cleaned_data["nodes"]))

    def selection(self) -> NodeSelection:
        values = self.cleaned_data
        return NodeSelection(
            cluster=values["cluster"],
            names=values["nodes"],
            chip=values["chip"],
            labels=values["labels"],
        )


def _split_by_commas(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


#: Downloads of a version that its page shows.
_MOST_DOWNLOADS = 200


@login_required
def version_weights(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """The nodes to which the weights were downloaded in advance, and the form that requests it."""
    version = get_object_or_404(selectors.versions_with_origin(request.user), uid=uid)
    steps = version_action_blockers(request, version)
    form = WeightDownloadForm(submitted_data(request), user=request.user)

    def save() -> list[WeightDownload]:
        team = form.cleaned_data["team"]
        accounts.require_permission(request.user, Permission.DEPLOY, team=team)
        return weight_downloads.weight_downloads_create(
            actor=request.user, team=team, model_version=version, nodes=form.selection()
        )

    rows = save_form(form, save, refusals={SpecRefused: ""})
    if rows is not None:
        messages.success(request, _("Downloading the weights to %(n)d nodes.") % {"n": len(rows)})
        return redirect("model-version-weights", uid=uid)
    found = serving.weight_downloads_visible(request.user).filter(model_version=version)
    downloads = list(found.order_by("-id")[:_MOST_DOWNLOADS])
    deployable = accounts.teams_with_permission(request.user, Permission.DEPLOY)
    context: dict[str, Any] = {
        "version": version,
        "steps": steps,
        "tabs": version_tabs(version, "weights"),
        "form": form,
        "refused": steps.download or ("" if deployable.exists() else steps.deploy),
        "downloads": downloads,
        "active": ACTIVE_WEIGHT_DOWNLOAD_STATES,
        "cancellable_teams": set(deployable.values_list("pk", flat=True)),
    }
    template = "console/models/version_weights.html"
    if form.is_bound:
        return render(request, template, {**context, "changing": False}, status=422)
    changing = any(row.state in ACTIVE_WEIGHT_DOWNLOAD_STATES for row in downloads)
    return render_page(request, template, context, fragment="live", changing=changing)


@login_required
@require_POST
def weight_download_delete(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Cancel a download, or remove an ended one from the list."""
    row = get_object_or_404(serving.weight_downloads_visible(request.user), uid=uid)
    accounts.require_permission(request.user, Permission.DEPLOY, team=row.team)
    deleted = weight_downloads.weight_download_delete(
        row=row, actor=request.user, at=timezone.now()
    )
    done = _("Removed from the list.") if deleted else _("The download is being cancelled.")
    messages.success(request, done)
    return redirect("model-version-weights", uid=row.model_version.uid)
