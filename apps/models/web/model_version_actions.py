"""Registration of models from folders and hubs, downloads of model files, and gate overrides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import pgettext

from apps.accounts import selectors as accounts
from apps.accounts.web.forms import TeamForm
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.models import selectors
from apps.models.models import Artifact, ModelVersion
from apps.models.selectors import ArtifactFileMissing, artifact_file
from apps.models.selectors.model_versions import hub_endpoint, hub_endpoints
from apps.models.services import hub_imports, model_versions
from apps.models.services.hub_imports import HubLookup
from apps.models.services.model_versions import GateOverrideRefused
from apps.models.web.forms import FolderImportForm
from controlplane.domain.common.permissions import Permission
from controlplane.domain.outbound.egress import EgressRefused
from controlplane.domain.registry.model_hubs import HubImportRefused
from controlplane.domain.registry.versions import ModelRefused
from controlplane.domain.storage.team_storage import StorageQuotaExceeded
from controlplane.ports.artifacts import BlobMissing
from controlplane.ports.model_hubs import HubUnreachable
from controlplane.web.downloads import file_download
from controlplane.web.forms import submitted_data
from controlplane.web.pages import PageTab, render_form, row_action_view, save_form


@login_required
def model_file_download(request: AuthenticatedRequest, uid: str, path: str) -> HttpResponseBase:
    version = get_object_or_404(selectors.model_versions_visible(request.user), uid=uid)
    if version.artifact is None:
        raise Http404(f"{version} has no files: it is {version.state}")
    return artifact_file_response(
        version.artifact, path, prefix=f"{version.line.name}-v{version.number}"
    )


def _changeable_version(request: AuthenticatedRequest, uid: str) -> ModelVersion:
    """:raises PermissionRefused: if the user may only view it."""
    version: ModelVersion = get_object_or_404(
        selectors.model_versions_visible(request.user), uid=uid
    )
    accounts.require_permission(request.user, Permission.CONTRIBUTE, team=version.line.team)
    return version


@row_action_view(load=_changeable_version, page="model-version")
def model_version_retry(request: AuthenticatedRequest, version: ModelVersion) -> str:
    model_versions.model_version_retry(version=version, actor=request.user, at=timezone.now())
    return _("The import of the model version was restarted.")


@row_action_view(load=_changeable_version, page="model-version")
def model_hub_import_cancel(request: AuthenticatedRequest, version: ModelVersion) -> str:
    """Cancel an import; partial downloads are kept for a retry."""
    hub_imports.hub_import_cancel(version=version, actor=request.user, at=timezone.now())
    return _("The import was stopped. Retry it to resume.")


@login_required
def folder_import_page(request: AuthenticatedRequest) -> HttpResponse:
    form = FolderImportForm(submitted_data(request), user=request.user)

    def save() -> ModelVersion:
        team = form.cleaned_data["team"]
        accounts.require_permission(request.user, Permission.CONTRIBUTE, team=team)
        return model_versions.model_version_import(
            actor=request.user, team=team, name=form.line_name(), path=form.cleaned_data["path"]
        )

    if version := save_form(form, save, refusals={ModelRefused: "path", StorageQuotaExceeded: ""}):
        messages.success(request, _("%(version)s is being imported.") % {"version": version})
        return redirect("model-version", uid=version.uid)
    context = {"roots": settings.NINEFOLD_MODEL_ROOTS, "tabs": import_tabs("folder")}
    return render_form(request, "registry/model_import.html", form, **context)


def artifact_file_response(artifact: Artifact, path: str, *, prefix: str) -> HttpResponseBase:
    """Download of the file with a prefixed name.

    :raises Http404: if there is no file at that path, or its bytes have been removed.
    """
    try:
        stream, size = artifact_file(artifact, path)
    except (ArtifactFileMissing, BlobMissing) as missing:
        raise Http404(str(missing)) from None
    return file_download(stream, size=size, filename=f"{prefix}-{path.replace('/', '-')}")


class HubForm(TeamForm):
    """A hub repository that becomes a version of the named model."""

    field_order = ("team", "hub", "repository", "revision", "name")

    hub = forms.ChoiceField(label=lazy("Model hub"))
    repository = forms.CharField(
        label=lazy("Repository"),
        max_length=200,
        help_text=lazy("Owner and name, for example Qwen/Qwen3-8B."),
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "off"}),
    )
    revision = forms.CharField(
        label=lazy("Revision"),
        max_length=200,
        required=False,
        help_text=lazy("Branch, tag or commit. Default: the main branch."),
    )
    name = forms.SlugField(
        label=lazy("Name"),
        max_length=80,
        required=False,
        help_text=lazy(
            "Default: the repository name. An existing name adds a version to that model."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choice("hub").choices = [
            (place.hub.name, f"{place.hub.title} ({place.address})") for place in hub_endpoints()
        ]

    def repository_request(self) -> dict[str, str]:
        """Hub, repository and revision, with defaults for empty fields."""
        values = self.cleaned_data
        return {
            "hub": values["hub"],
            "repository": values["repository"].strip(),
            "revision": values["revision"] or hub_endpoint(values["hub"]).hub.default_revision,
        }

    def line_name(self) -> str:
        """The given name, or that of the repository."""
        typed: str = self.cleaned_data["name"]
        return typed or slugify(self.cleaned_data["repository"].rpartition("/")[2])[:80]


def import_tabs(current: str) -> list[PageTab]:
    """Tabs of the two import sources."""
    return [
        PageTab(
            label=_("From a folder"), href=reverse("model-import"), current=current == "folder"
        ),
        PageTab(label=_("From a model hub"), href=reverse("model-fetch"), current=current == "hub"),
    ]


#: With the field to which they belong.
_HUB_REFUSALS: Mapping[type[Exception], str] = {
    HubImportRefused: "repository",
    HubUnreachable: "repository",
    EgressRefused: "repository",
    StorageQuotaExceeded: "",
}


@login_required
def hub_import_page(request: AuthenticatedRequest) -> HttpResponse:
    """The button ``look`` previews the import; the other one requests it."""
    chosen = {name: request.GET[name] for name in HubForm.base_fields if name in request.GET}
    form = HubForm(submitted_data(request), user=request.user, initial=chosen)

    def save() -> HubLookup | ModelVersion:
        team = form.cleaned_data["team"]
        accounts.require_permission(request.user, Permission.CONTRIBUTE, team=team)
        lookup = hub_imports.hub_lookup(**form.repository_request())
        if "look" in request.POST:
            return lookup
        return hub_imports.hub_import_request(
            actor=request.user, team=team, name=form.line_name(), lookup=lookup
        )

    found = save_form(form, save, refusals=_HUB_REFUSALS)
    if isinstance(found, ModelVersion):
        messages.success(request, _("%(version)s is being fetched.") % {"version": found})
        return redirect("model-version", uid=found.uid)
    context = {"form": form, "found": found, "tabs": import_tabs("hub")}
    status = 422 if form.is_bound and found is None else 200
    return render(request, "registry/model_fetch.html", context, status=status)


class GateOverrideForm(forms.Form):
    reason = forms.CharField(max_length=1000)


def _reason_of_override(request: AuthenticatedRequest) -> str:
    form = GateOverrideForm(request.POST)
    if not form.is_valid():
        raise GateOverrideRefused(
            _("Enter a reason of at most 1,000 characters. Nothing was changed.")
        )
    return str(form.cleaned_data["reason"])


_gate_override_view = row_action_view(
    load=_changeable_version, page="model-version-quantization", refusals=(GateOverrideRefused,)
)


@_gate_override_view
def model_version_accept(request: AuthenticatedRequest, version: ModelVersion) -> str:
    reason = _reason_of_override(request)
    model_versions.model_version_accept(version=version, actor=request.user, reason=reason)
    return _("The quantized version was accepted and can be deployed.")


@_gate_override_view
def model_version_reject(request: AuthenticatedRequest, version: ModelVersion) -> str:
    reason = _reason_of_override(request)
    model_versions.model_version_reject(version=version, actor=request.user, reason=reason)
    return _(
        "The quantized version was rejected and cannot be deployed again. Running "
        "deployments are not stopped."
    )


def models_tabs(current: str) -> list[PageTab]:
    """``current`` is ``catalog``, ``ours`` or ``sizing``."""
    parts = (
        ("catalog", pgettext("tab", "Catalog"), "catalog"),
        ("ours", pgettext("tab", "My models"), "models"),
        ("sizing", _("Sizing calculator"), "sizing"),
    )
    return [
        PageTab(label=label, href=reverse(name), current=key == current)
        for key, label, name in parts
    ]
