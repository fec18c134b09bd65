"""The page of one model version: what it is, how good it is, where it serves, what can be done with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.accounts import selectors as accounts
from apps.accounts.web.requests import SignedIn
from apps.jobs import selectors as jobs
from apps.models import selectors as registry
from apps.models.models import ModelVersion
from apps.models.selectors.contents import model_description
from apps.models.selectors.hubs import headway, hub_import_of
from apps.models.selectors.quantizations import is_quantized
from apps.models.web.catalog import catalog_part
from apps.serving.selectors import catalog as selectors
from apps.serving.selectors import route_name_free
from apps.serving.web.lineage import drawn_versions
from controlplane.domain.models import Acceptance, ModelState
from controlplane.domain.permissions import Permission, allows
from controlplane.web.pages import Tab, show


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSteps:
    """For each thing that can be done with the version, why it cannot be done; empty where it can."""

    tune: str
    quantize: str
    evaluate: str
    deploy: str
    download: str
    #: The name under which one press deploys it.
    name: str

    @property
    def reasons(self) -> list[str]:
        """Each once, in the order of the buttons."""
        told = (self.tune, self.quantize, self.evaluate, self.deploy, self.download)
        return list(dict.fromkeys(reason for reason in told if reason))


@login_required
def model_version(request: SignedIn, uid: str) -> HttpResponse:
    """``?tab=`` is ``overview``, ``files`` or ``lineage``."""
    version = get_object_or_404(selectors.versions_with_origin(request.user), uid=uid)
    asked = request.GET.get("tab", "")
    tab = asked if asked in ("files", "lineage") else "overview"
    context: dict[str, Any] = {
        "version": version,
        "steps": steps_of(request, version),
        "tabs": tabs_of(version, tab),
    }
    if tab == "files":
        return render(request, "registry/version_files.html", context)
    if tab == "lineage":
        drawing = drawn_versions(request, [version.pk])
        return render(request, "registry/version_lineage.html", {**context, "drawing": drawing})
    context |= _overview(request, version)
    changing = version.state == ModelState.IMPORTING
    return show(request, "registry/model_version.html", context, fragment="live", changing=changing)


def tabs_of(version: ModelVersion, current: str) -> list[Tab]:
    page = reverse("model-version", args=[version.uid])
    files = len(version.artifact.files) if version.artifact else None
    tabs = [
        Tab(label=_("Overview"), href=page, current=current == "overview"),
        Tab(label=_("Files"), href=f"{page}?tab=files", current=current == "files", count=files),
        Tab(label=_("Lineage"), href=f"{page}?tab=lineage", current=current == "lineage"),
    ]
    if is_quantized(version):
        href = reverse("model-version-quantization", args=[version.uid])
        tabs.insert(1, Tab(label=_("Quantization"), href=href, current=current == "quantization"))
    return tabs


def _overview(request: SignedIn, version: ModelVersion) -> dict[str, Any]:
    serving = selectors.deployments_by_version([version.pk], user=request.user)
    maker = None
    if version.job_uid:
        maker = jobs.jobs_visible(request.user).filter(uid=version.job_uid).first()
    arriving = hub_import_of(version)
    return {
        **catalog_part(version),
        "arriving": arriving,
        "headway": headway(arriving) if arriving else None,
        "evaluations": registry.evaluations_of(version, user=request.user),
        "moves": list(version.transitions.all()),
        "described": model_description(version.artifact),
        "deployments": serving.get(version.pk, []),
        "maker": maker,
    }


def steps_of(request: SignedIn, version: ModelVersion) -> NextSteps:
    held = accounts.roles_by_team(request.user)
    missing = _missing(version)
    team = version.line.team_id or min(held, default=0)
    run = any(allows(roles, Permission.RUN) for roles in held.values())
    deploy = allows(held.get(team, frozenset()), Permission.DEPLOY)
    no_run = _("Your roles let you look, not run jobs; an administrator of a team can change that.")
    no_deploy = _(
        "Your roles let you look, not deploy; an administrator of the team can change that."
    )
    plain = "" if run else no_run
    if is_quantized(version):
        plain = _("It is quantized; train or quantize the version that it was made from.")
    unfit = ""
    if version.acceptance == Acceptance.REJECTED:
        unfit = _("It lost more than its tolerance allows; somebody must accept it first.")
    return NextSteps(
        tune=missing or plain,
        quantize=missing or plain,
        evaluate=missing or ("" if run else no_run),
        deploy=missing or unfit or ("" if deploy else no_deploy),
        download=missing,
        name=route_name_free(version.line.name) if deploy and not missing and not unfit else "",
    )


def _missing(version: ModelVersion) -> str:
    """Why its files cannot be used, in words; empty if they can."""
    if version.state == ModelState.IMPORTING:
        return _("Its files are being copied; it can be used when they are here.")
    if version.state == ModelState.FAILED:
        return _("Its import failed; try it again, or register another folder.")
    if version.state != ModelState.READY:
        return _("Its files are deleted.")
    return ""
