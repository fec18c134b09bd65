"""The list of jobs: tabs of states, filters, and what can be done to several at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from apps.accounts.web.requests import SignedIn
from apps.jobs import selectors, services
from apps.jobs.models import Job, SavedFilter
from apps.jobs.selectors.headway import Headway, headway_of
from apps.jobs.selectors.jobs import MOST_COUNTED
from apps.jobs.web.filters import COLUMNS, SAVED, JobFilter, address_of
from controlplane.domain.jobs import JobState
from controlplane.web.pages import Tab, show
from controlplane.web.sentences import said
from controlplane.web.states import look_of
from controlplane.web.tables import BulkAction, Table

LIVE_STATES = (JobState.WAITING, JobState.RUNNING)
#: Refusals of a bulk action that are told one by one.
_TOLD = 8
_REASON_CHARACTERS = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    job: Any
    #: None unless it runs and has said how far it is.
    headway: Headway | None
    #: Why it waits or how it ended, shortened.
    reason: str


@login_required
def jobs(request: SignedIn) -> HttpResponseBase:
    """What is shown is in the address; without any question there, the default filter's is asked."""
    saved = list(selectors.saved_filters(request.user))
    default = next((one for one in saved if one.is_default), None)
    if default is not None and not request.META.get("QUERY_STRING"):
        return redirect(address_of(default))
    at = timezone.now()
    state = request.GET.get("state", "")
    form = JobFilter(request.GET, user=request.user)
    every = selectors.jobs_visible(request.user)
    table = Table(
        request,
        selectors.jobs_with_newest_attempt(_in_state(every, state)),
        columns=COLUMNS,
        filters=form,
        bulk=[_cancel()],
    )
    if table.wants_csv:
        return table.csv(filename="jobs.csv")
    rows = [_row(job, at=at) for job in table.rows]
    context = {
        "table": table,
        "rows": rows,
        "state": state,
        "tabs": _tabs(request, selectors.jobs_by_state(form.apply(every)), chosen=state),
        "saved": [(one, address_of(one)) for one in saved],
        "open_filter": _open(request, saved),
        "filtered": bool(state) or table.filtered,
    }
    changing = any(row.job.state in LIVE_STATES for row in rows)
    return show(request, "jobs/jobs.html", context, fragment="rows", changing=changing)


def _in_state(rows: QuerySet[Job], state: str) -> QuerySet[Job]:
    return rows.filter(state=state) if state in set(JobState) else rows


def _open(request: SignedIn, saved: list[SavedFilter]) -> SavedFilter | None:
    return next((one for one in saved if one.uid == request.GET.get(SAVED)), None)


def _row(job: Any, *, at: datetime) -> JobRow:
    headway = None
    if job.state == JobState.RUNNING:
        headway = headway_of(job.progress, reported_at=job.reported_at, at=at)
    reason = job.message if job.state in LIVE_STATES else job.state_reason
    return JobRow(
        job=job,
        headway=headway,
        reason=Truncator(said(reason or job.state_reason)).chars(_REASON_CHARACTERS),
    )


def _tabs(request: SignedIn, counts: Mapping[str, int], *, chosen: str) -> list[Tab]:
    """One for each state, with how many jobs the other filters leave in it."""
    parameters = request.GET.copy()
    parameters.pop("after", None)

    def href(state: str) -> str:
        parameters["state"] = state
        return f"?{parameters.urlencode()}"

    every = Tab(
        label=_("all"),
        href=href(""),
        current=chosen not in set(JobState),
        count=_counted(sum(counts.values())),
    )
    return [
        every,
        *(
            Tab(
                label=look_of(state).word,
                href=href(state),
                current=state == chosen,
                count=_counted(counts.get(state, 0)),
            )
            for state in JobState
        ),
    ]


def _counted(count: int) -> str:
    return f"{count:,}" if count <= MOST_COUNTED else f"{MOST_COUNTED:,}+"


def _cancel() -> BulkAction:
    return BulkAction(
        name="cancel",
        label=_("Cancel"),
        href=reverse("jobs-cancel"),
        warning=_(
            "The chosen jobs that wait or run are asked to save and are then stopped. "
            "A retry goes on from the last checkpoint."
        ),
        picture="player-stop",
    )


@login_required
@require_POST
def jobs_cancel(request: SignedIn) -> HttpResponse:
    """Those of the chosen that may be cancelled; each of the others with its reason."""
    chosen = selectors.jobs_visible(request.user).filter(uid__in=request.POST.getlist("uid"))
    outcomes = services.jobs_cancel(jobs=chosen, actor=request.user, at=timezone.now())
    if not outcomes:
        messages.info(request, _("Choose the jobs first, by the boxes before their names."))
    refused = [one for one in outcomes if one.refusal]
    if asked := [one.job.name for one in outcomes if not one.refusal]:
        words = ngettext(
            "%(count)d job is being cancelled: %(names)s",
            "%(count)d jobs are being cancelled: %(names)s",
            len(asked),
        )
        names = Truncator(", ".join(asked)).chars(200)
        messages.success(request, words % {"count": len(asked), "names": names})
    for one in refused[:_TOLD]:
        messages.error(request, f"{one.job.name}: {said(one.refusal)}")
    if more := len(refused[_TOLD:]):
        words = ngettext(
            "%(count)d more was not cancelled either.",
            "%(count)d more were not cancelled either.",
            more,
        )
        messages.error(request, words % {"count": more})
    return redirect(_back(request))


def _back(request: SignedIn) -> str:
    """The list as it was; never another site's."""
    query = request.META.get("HTTP_REFERER", "").partition("?")[2]
    return f"{reverse('jobs')}?{query}" if query else f"{reverse('jobs')}?{SAVED}=none"
