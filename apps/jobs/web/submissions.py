"""Pages on which jobs are put together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.services import IdempotencyBusy
from apps.accounts.web.repeats import done_once
from apps.accounts.web.requests import SignedIn
from apps.jobs import selectors, services
from apps.jobs.web.chip_choices import ChipsForm
from apps.jobs.web.finetunes import FinetuneForm, estimate_for
from apps.jobs.web.forms import EvaluateForm, JobForm, ScriptForm
from apps.jobs.web.limited_choices import offered_of
from apps.jobs.web.quantizes import QuantizeForm
from apps.models.models import Artifact
from apps.models.services.artifacts import RegistrationRefused, code_upload
from controlplane.domain.jobs import JobKind
from controlplane.domain.permissions import Permission
from controlplane.domain.storage import StorageQuotaExceeded
from controlplane.ports import registry
from controlplane.ports.artifacts import StorageFull
from controlplane.ports.engines import Task
from controlplane.web.forms import only_unfilled

FORMS: Mapping[JobKind, type[JobForm]] = {
    form.kind: form for form in (FinetuneForm, EvaluateForm, QuantizeForm, ScriptForm)
}

#: Kinds whose form leads through steps.
_GUIDED: Mapping[JobKind, str] = {
    JobKind.FINETUNE: "jobs/finetune.html",
    JobKind.QUANTIZE: "jobs/quantize.html",
}


@login_required
def job_new(request: SignedIn) -> HttpResponse:
    return render(request, "jobs/job_new.html", {"kinds": [kind.value for kind in FORMS]})


def form_of(request: SignedIn, kind: str) -> JobForm:
    """The form of that kind, filled with what was posted, cloned or chosen.

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
        return form_class(user=request.user, initial=form_class.initial_of(job))
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
def job_submission(request: SignedIn, kind: str) -> HttpResponse:
    """The form of one kind; what is wrong comes back beside the fields, and what was typed stays."""
    form = form_of(request, kind)
    if form.is_bound and form.is_valid():
        try:
            uid, now = _submit(request, form)
        except services.SpecRefused as refusal:
            form.add_findings(refusal.findings)
        except IdempotencyBusy:
            form.add_error(
                None, _("It is being submitted already; look for it in the list of jobs.")
            )
        except RegistrationRefused as refusal:
            form.add_error("code", str(refusal))
        except (StorageFull, StorageQuotaExceeded) as full:
            form.add_error(None, str(full))
        else:
            if now:
                messages.success(request, _("The job was submitted."))
            else:
                messages.info(
                    request,
                    _("This form was submitted before; this is its job. Clone it for another."),
                )
            return redirect("job", uid=uid)
    status = 422 if form.is_bound else 200
    template = _GUIDED.get(JobKind(kind), "jobs/submission.html")
    context: dict[str, Any] = {"form": form, "kind": kind}
    if isinstance(form, FinetuneForm):
        context["chips_form"] = ChipsForm(
            request.POST,
            engine=registry.engine(form.engine_name()),
            task=Task(kind),
            preferred=form.preferred_chip(),
            chips_known=form.fleet_chips.known,
        )
    return render(request, template, context, status=status)


def _submit(request: SignedIn, form: JobForm) -> tuple[str, bool]:
    """The uid of its job, and whether it was submitted now."""
    team = form.cleaned_data["team"]
    accounts.require(request.user, Permission.RUN, team=team)

    def submit() -> str:
        code: Artifact | None = None
        if archive := form.cleaned_data.get("code"):
            code = code_upload(
                actor=request.user, team=team, stream=archive.file, filename=archive.name
            )
        with transaction.atomic():
            submitted = [
                services.job_submit(actor=request.user, team=team, request=wanted)
                for wanted in form.requests(code=code)
            ]
        return submitted[0].uid

    return done_once(request, submit)


@login_required
@require_POST
def job_check(request: SignedIn, kind: str) -> HttpResponse:
    """What is wrong with the form so far, or what it will take, as a fragment; nothing is kept."""
    form = form_of(request, kind)
    settled = services.Settled(findings=())
    if form.is_valid():
        settled = services.job_settle(form.request())
        form.add_findings(settled.findings)
    wrong = [
        (name, form.fields[name].label if name in form.fields else "", list(errors))
        for name, errors in form.errors.items()
    ]
    context: dict[str, Any] = {
        "form": form,
        "wrong": wrong,
        "unfilled": only_unfilled(form),
        "values": form.cleaned_data,
        "spec": settled.spec,
        "chip": settled.chips[0] if settled.chips else None,
        "offered": json.dumps(offered_of(form), ensure_ascii=False),
    }
    if settled.spec is not None and isinstance(form, FinetuneForm):
        context["estimate"] = estimate_for(form, settled, user=request.user)
    return render(request, "jobs/check.html", context)
