"""One spec beside itself: what runs on one chip and on another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from apps.accounts.web.requests import SignedIn
from apps.jobs import services
from apps.jobs.models import Job
from apps.jobs.services import SideBySide
from apps.jobs.web.chip_choices import ChipsForm
from apps.jobs.web.submissions import form_of
from controlplane.ports import registry
from controlplane.ports.differences import Part
from controlplane.ports.engines import Task

#: What differs, in words.
_PARTS: Mapping[Part, Any] = {
    Part.IMAGE: _("image"),
    Part.ENVIRONMENT: _("environment"),
    Part.ARGUMENTS: _("arguments"),
    Part.CARDS: _("cards"),
}


def job_rendering(job: Job, data: Mapping[str, Any]) -> dict[str, Any]:
    """The context of a job's own rendering."""
    chips = ChipsForm(
        data, engine=registry.engine(job.engine), task=Task(job.kind), preferred=job.chips[0]
    )
    return {"chips_form": chips, **_shown(services.job_rendered(job, chips=chips.chips))}


@login_required
@require_POST
def job_render(request: SignedIn, kind: str) -> HttpResponse:
    """What a form that is not submitted yet would run; a fragment, or a page of its own without script."""
    form = form_of(request, kind)
    chips = ChipsForm(
        request.POST,
        engine=registry.engine(form.engine_name()),
        task=Task(kind),
        preferred=form.preferred_chip(),
    )
    context: dict[str, Any] = {"kind": kind, "chips_form": chips, "form": form}
    if form.is_valid():
        context |= _shown(services.request_rendered(form.request(), chips=chips.chips))
    as_fragment = bool(request.htmx)
    template = "jobs/side_by_side.html" if as_fragment else "jobs/form_rendered.html"
    status = 200 if as_fragment or form.is_valid() else 422
    return render(request, template, context, status=status)


def _shown(found: SideBySide) -> dict[str, Any]:
    counts = Counter(difference.part for difference in found.differences)
    return {
        "beside": found,
        "sides": list(zip(found.chips, found.findings, strict=True)),
        "untried": [
            chip.label
            for chip in found.chips
            if not registry.chip_plugin(chip).profile().run_on_hardware
        ],
        "counts": [(word, counts[part]) for part, word in _PARTS.items() if counts[part]],
    }
