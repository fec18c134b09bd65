"""The page on which a pipeline is put together."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.services import IdempotencyBusy
from apps.accounts.web.form_idempotency import run_once_per_form
from apps.accounts.web.requests import AuthenticatedRequest
from apps.jobs.services import SpecRefused
from apps.workflows import selectors, services
from apps.workflows.web.forms import PipelineForm, initial_of
from controlplane.web.forms import only_unfilled


def _form(request: AuthenticatedRequest) -> PipelineForm:
    if request.method == "POST":
        return PipelineForm(request.POST, user=request.user)
    if clone := request.GET.get("clone"):
        found = get_object_or_404(selectors.pipelines_visible(request.user), uid=clone)
        return PipelineForm(user=request.user, initial=initial_of(found))
    chosen = {
        field: request.GET[parameter]
        for parameter, field in (("model", "model_version"), ("dataset", "dataset_version"))
        if parameter in request.GET
    }
    return PipelineForm(user=request.user, initial={"": chosen})


@login_required
def pipeline_new(request: AuthenticatedRequest) -> HttpResponse:
    """What is wrong comes back beside the fields, and what was typed stays."""
    form = _form(request)
    if form.is_bound and form.is_valid():
        try:
            uid, now = _submit(request, form)
        except SpecRefused as refusal:
            form.add_findings(refusal.findings)
        except IdempotencyBusy as busy:
            form.head.add_error(None, str(busy))
        else:
            if now:
                messages.success(request, _("The pipeline was submitted."))
            else:
                messages.info(
                    request,
                    _(
                        "This form was submitted before; this is its pipeline. Clone it for another."
                    ),
                )
            return redirect("pipeline", uid=uid)
    status = 422 if form.is_bound else 200
    return render(request, "workflows/pipeline_new.html", {"form": form}, status=status)


def _submit(request: AuthenticatedRequest, form: PipelineForm) -> tuple[str, bool]:
    """The uid of its pipeline, and whether it was submitted now."""
    wanted, team = form.request(), form.head.cleaned_data["team"]
    services.steps_require(request.user, wanted.kinds, team=team)
    return run_once_per_form(
        request,
        lambda: services.pipeline_submit(actor=request.user, team=team, request=wanted).uid,
    )


@login_required
@require_POST
def pipeline_check(request: AuthenticatedRequest) -> HttpResponse:
    """What is wrong with the form so far, or what will happen, as a fragment; nothing is kept."""
    form = _form(request)
    wanted = None
    if form.is_valid():
        wanted = form.request()
        form.add_findings(services.pipeline_check(wanted, team=form.head.cleaned_data["team"]))
    context = {
        "wrong": list(form.wrong()),
        "unfilled": only_unfilled(form.head, *form.sections),
        "asked": wanted,
    }
    return render(request, "workflows/check.html", context)
