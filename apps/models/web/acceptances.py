"""Deciding about a quantized version."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.web.requests import AuthenticatedRequest
from apps.models import selectors
from apps.models.services import acceptances
from controlplane.domain.common.permissions import Permission
from controlplane.web.message_translation import translate_message


class DecisionForm(forms.Form):
    reason = forms.CharField(max_length=1000)


@login_required
@require_POST
def version_accept(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    return _decided(
        request, uid, decide=acceptances.version_accept, done=_("It may be deployed now.")
    )


@login_required
@require_POST
def version_reject(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    done = _("It is not deployed any more; what serves goes on.")
    return _decided(request, uid, decide=acceptances.version_reject, done=done)


def _decided(
    request: AuthenticatedRequest, uid: str, *, decide: acceptances.Decision, done: str
) -> HttpResponse:
    version = get_object_or_404(selectors.model_versions_visible(request.user), uid=uid)
    accounts.require(request.user, Permission.CONTRIBUTE, team=version.line.team)
    form = DecisionForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Say why in at most 1,000 characters; nothing was changed."))
        return redirect("model-version-quantization", uid=uid)
    try:
        decide(version=version, actor=request.user, reason=form.cleaned_data["reason"])
    except acceptances.AcceptanceRefused as refusal:
        messages.error(request, translate_message(str(refusal)))
    else:
        messages.success(request, done)
    return redirect("model-version-quantization", uid=uid)
