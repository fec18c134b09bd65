"""Submission of jobs: forms, live check, and comparison of the Launches that a form or a job renders."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.services import IdempotentRequestInProgress
from apps.accounts.web.form_idempotency import run_once_per_form
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.jobs import selectors, services
from apps.jobs.models import Job
from apps.jobs.services import LaunchComparison
from apps.jobs.web.chip_choices import ChipComparisonForm
from apps.jobs.web.finetune_form import FinetuneForm, estimate_of_finetune_form
from apps.jobs.web.form_fields import form_choice_states
from apps.jobs.web.forms import EvaluateForm, JobForm, ScriptForm
from apps.jobs.web.quantize_form import QuantizeForm
from apps.models.models import Artifact
from apps.models.services.artifact_storage import RegistrationRefused, code_upload
from controlplane.domain.common.permissions import Permission
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.storage.team_storage import StorageQuotaExceeded
from controlplane.ports import adapter_registry
from controlplane.ports.artifacts import StorageFull, StorageUnavailable
from controlplane.ports.engines import EngineTask
from controlplane.ports.launches import DifferencePart
from controlplane.web.forms import has_only_required_errors
from controlplane.web.pages import render_form, save_form

FORMS: Mapping[JobKind, type[JobForm]] = {
    form.kind: form for form in (FinetuneForm, EvaluateForm, QuantizeForm, ScriptForm)
}

#: Templates of kinds whose forms have steps.
_GUIDED_TEMPLATES: Mapping[JobKind, str] = {
    JobKind.FINETUNE: "jobs/finetune.html",
    JobKind.QUANTIZE: "jobs/quantize.html",
}
#: What refuses a submission, with the field to which it belongs.
_REFUSALS: Mapping[type[Exception], str] = {
    services.SpecRefused: "",
    RegistrationRefused: "code",
    StorageFull: "",
    StorageUnavailable: "",
    StorageQuotaExceeded: "",
}


@login_required
def job_kind_selection_page(request: AuthenticatedRequest) -> HttpResponse:
    return render(request, "jobs/job_new.html", {"kinds": [kind.value for kind in FORMS]})


def job_form(request: AuthenticatedRequest, kind: str) -> JobForm:
    """The form of that kind, filled from the POST data, a cloned job or URL parameters.

    :raises Http404: if there is no such kind, or no such job to clone.
    """
    try:
        form_class = FORMS[JobKind(kind)]
    except (ValueError, KeyError):
        raise Http404 from None
    if request.method == "POST":
        return form_class(request.POST, request.FILES, user=request.user)
    if clone := request.GET.get("clone"):
        job = get_object_or_404(selectors.jobs_visible(request.user), uid=clone, kind=kind)
        return form_class(user=request.user, initial=form_class.initial_values_of_job(job))
    chosen = {
        field: request.GET[parameter]
        for parameter, field in (
            ("model", "model_version"),
            ("dataset", "dataset_version"),
        )
        if parameter in request.GET
    }
    return form_class(user=request.user, initial=chosen)


@login_required
def job_submission(request: AuthenticatedRequest, kind: str) -> HttpResponse:
    """The form of one kind; submit the job, or show the form again with its errors and values."""
    form = job_form(request, kind)
    try:
        saved = save_form(form, lambda: _submit_once(request, form), refusals=_REFUSALS)
    except IdempotentRequestInProgress:
        saved = None
        form.add_error(None, _("The job is already being submitted. See the job list."))
    if saved:
        uid, now = saved
        if now:
            messages.success(request, _("The job was submitted."))
        else:
            messages.info(
                request,
                _(
                    "This form was already submitted; this is its job. Clone it to submit "
                    "another one."
                ),
            )
        return redirect("job", uid=uid)
    template = _GUIDED_TEMPLATES.get(JobKind(kind), "jobs/submission.html")
    context: dict[str, Any] = {"kind": kind}
    if isinstance(form, FinetuneForm):
        context["chips_form"] = ChipComparisonForm(
            request.POST,
            engine=adapter_registry.engine_by_name(form.engine_name()),
            task=EngineTask(kind),
            preferred=form.preferred_chip(),
            chips_known=form.fleet_chips.known,
        )
    return render_form(request, template, form, **context)


def _submit_once(request: AuthenticatedRequest, form: JobForm) -> tuple[str, bool]:
    """The uid of the job, and whether this request submitted it."""
    team = form.cleaned_data["team"]
    accounts.require_permission(request.user, Permission.RUN, team=team)

    def submit() -> str:
        code: Artifact | None = None
        if archive := form.cleaned_data.get("code"):
            code = code_upload(
                actor=request.user, team=team, stream=archive.file, filename=archive.name
            )
        with transaction.atomic():
            submitted = [
                services.job_submit(actor=request.user, team=team, request=job_request)
                for job_request in form.requests(code=code)
            ]
        return submitted[0].uid

    return run_once_per_form(request, submit)


@login_required
@require_POST
def job_form_check(request: AuthenticatedRequest, kind: str) -> HttpResponse:
    """Errors of the form, or its resource estimate, as a fragment; nothing is stored."""
    form = job_form(request, kind)
    resolved = services.ResolvedRequest(findings=())
    if form.is_valid():
        resolved = services.job_request_resolve(form.request())
        form.add_findings(resolved.findings)
    context: dict[str, Any] = {
        "form": form,
        "wrong": form.labelled_errors,
        "unfilled": has_only_required_errors(form),
        "values": form.cleaned_data,
        "spec": resolved.spec,
        "chip": resolved.chips[0] if resolved.chips else None,
        "offered": json.dumps(form_choice_states(form), ensure_ascii=False),
    }
    if resolved.spec is not None and isinstance(form, FinetuneForm):
        context["estimate"] = estimate_of_finetune_form(form, resolved, user=request.user)
    return render(request, "jobs/check_result.html", context)


#: Labels of the parts of a Launch that differ.
_PARTS: Mapping[DifferencePart, Any] = {
    DifferencePart.IMAGE: lazy("image"),
    DifferencePart.ENVIRONMENT: lazy("environment"),
    DifferencePart.ARGUMENTS: lazy("arguments"),
    DifferencePart.CARDS: lazy("cards"),
}


def job_launch_comparison_context(job: Job, data: Mapping[str, Any]) -> dict[str, Any]:
    """Context of the tab that compares the job's Launch on two chips."""
    chips = ChipComparisonForm(
        data,
        engine=adapter_registry.engine_by_name(job.engine),
        task=EngineTask(job.kind),
        preferred=job.chips[0],
    )
    return {
        "chips_form": chips,
        **_launch_comparison_context(services.compare_launches_of_job(job, chips=chips.chips)),
    }


@login_required
@require_POST
def job_launch_preview(request: AuthenticatedRequest, kind: str) -> HttpResponse:
    """The Launches of a form that is not submitted yet; a fragment, or a page without JavaScript."""
    form = job_form(request, kind)
    chips = ChipComparisonForm(
        request.POST,
        engine=adapter_registry.engine_by_name(form.engine_name()),
        task=EngineTask(kind),
        preferred=form.preferred_chip(),
    )
    context: dict[str, Any] = {"kind": kind, "chips_form": chips, "form": form}
    if form.is_valid():
        context |= _launch_comparison_context(
            services.compare_launches_of_request(form.request(), chips=chips.chips)
        )
    as_fragment = bool(request.htmx)
    template = "jobs/launch_comparison.html" if as_fragment else "jobs/launch_preview.html"
    status = 200 if as_fragment or form.is_valid() else 422
    return render(request, template, context, status=status)


def _launch_comparison_context(found: LaunchComparison) -> dict[str, Any]:
    counts = Counter(difference.part for difference in found.differences)
    return {
        "comparison": found,
        "sides": list(zip(found.chips, found.findings, strict=True)),
        "not_run_on_hardware": [
            chip.label
            for chip in found.chips
            if not adapter_registry.plugin_of_chip(chip).profile().run_on_hardware
        ],
        "counts": [(label, counts[part]) for part, label in _PARTS.items() if counts[part]],
    }
