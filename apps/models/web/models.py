"""Registering models; their files."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.web.requests import AuthenticatedRequest
from apps.models import selectors
from apps.models.services import versions as services
from apps.models.web.files import file_answer
from apps.models.web.forms import ImportForm
from apps.models.web.hubs import tabs
from controlplane.domain.common.permissions import Permission
from controlplane.domain.models import ModelRefused
from controlplane.domain.storage.usage import StorageQuotaExceeded
from controlplane.web.pages import run_action


@login_required
def model_file(request: AuthenticatedRequest, uid: str, path: str) -> HttpResponseBase:
    """One file of the version, to save."""
    version = get_object_or_404(selectors.model_versions_visible(request.user), uid=uid)
    if version.artifact is None:
        raise Http404(f"{version} has no files: it is {version.state}")
    return file_answer(version.artifact, path, prefix=f"{version.line.name}-v{version.number}")


@login_required
@require_POST
def model_version_retry(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Try a failed import again."""
    version = get_object_or_404(selectors.model_versions_visible(request.user), uid=uid)
    accounts.require(request.user, Permission.CONTRIBUTE, team=version.line.team)
    return run_action(
        request,
        lambda: services.model_version_retry(
            version=version, actor=request.user, at=timezone.now()
        ),
        back=reverse("model-version", args=[uid]),
        done=_("The import starts again."),
    )


@login_required
def model_import(request: AuthenticatedRequest) -> HttpResponse:
    bound = request.method == "POST"
    form = ImportForm(request.POST if bound else None, user=request.user)
    if bound and form.is_valid():
        team = form.cleaned_data["team"]
        accounts.require(request.user, Permission.CONTRIBUTE, team=team)
        try:
            version = services.model_version_import(
                actor=request.user,
                team=team,
                name=form.line_name(),
                path=form.cleaned_data["path"],
            )
        except ModelRefused as refusal:
            form.add_error("path", str(refusal))
        except StorageQuotaExceeded as full:
            form.add_error(None, str(full))
        else:
            messages.success(request, _("%(version)s is being imported.") % {"version": version})
            return redirect("model-version", uid=version.uid)
    context = {"form": form, "roots": settings.NINEFOLD_MODEL_ROOTS, "tabs": tabs("folder")}
    return render(request, "registry/model_import.html", context, status=422 if bound else 200)
