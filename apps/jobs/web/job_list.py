"""The job list: filters, columns, state tabs, saved filters, and bulk cancellation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from apps.accounts.models import User
from apps.accounts.web.forms import TeamFilterForm
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.jobs import selectors, services
from apps.jobs.models import SavedFilter
from apps.jobs.selectors.jobs import MAX_COUNTED
from apps.jobs.selectors.progress import JobProgress, job_progress_of
from controlplane.domain.jobs.lifecycle import JobKind, JobState
from controlplane.web.pages import PageTab, render_page, run_action
from controlplane.web.reasons import render_reason
from controlplane.web.state_badges import state_badge
from controlplane.web.tables import BulkAction, ListTable, TableColumn

#: URL parameter with the uid of the open saved filter.
SAVED_FILTER_PARAMETER = "filter"

KIND_LABELS = {
    JobKind.FINETUNE: lazy("fine-tune"),
    JobKind.EVALUATE: lazy("evaluate"),
    JobKind.QUANTIZE: lazy("quantize"),
    JobKind.SCRIPT: lazy("script"),
}


class JobFilter(TeamFilterForm):
    """Filters of the list, apart from the state, which has tabs."""

    field_order = ("text", "kind", "team")

    text = forms.CharField(label=lazy("Name contains"), max_length=120)
    kind = forms.ChoiceField(
        label=lazy("Kind"),
        choices=[
            ("", lazy("any type")),
            *((kind.value, label) for kind, label in KIND_LABELS.items()),
        ],
    )
    model = forms.CharField(label=lazy("Model"), max_length=80)
    dataset = forms.CharField(label=lazy("Dataset"), max_length=80)
    since = forms.DateField(
        label=lazy("Submitted on or after"), widget=forms.DateInput(attrs={"type": "date"})
    )
    until = forms.DateField(label=lazy("until"), widget=forms.DateInput(attrs={"type": "date"}))
    mine = forms.BooleanField(label=lazy("mine only"))

    lookups: ClassVar[Mapping[str, str]] = {
        "text": "name__icontains",
        "kind": "kind",
        "team": "team",
        "model": "model_version__line__name__icontains",
        "dataset": "dataset_version__dataset__name__icontains",
    }

    def __init__(self, data: QueryDict | None = None, *, user: User, **kwargs: Any) -> None:
        super().__init__(data, user=user, **kwargs)
        self._user = user

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().apply(rows)
        if self.chosen("mine"):
            rows = rows.filter(created_by=self._user)
        if since := self.chosen("since"):
            # In the user's time zone.
            midnight = timezone.make_aware(datetime.combine(since, time.min))
            rows = rows.filter(created_at__gte=midnight)
        if until := self.chosen("until"):
            rows = rows.filter(created_at__date__lte=until)
        return rows


def _progress_csv(job: Any) -> str:
    progress = job.progress or {}
    total = progress.get("total_steps")
    return f"{progress.get('step', 0)}/{total}" if total else ""


def _run_seconds_csv(job: Any) -> object:
    """Run time of its newest attempt in seconds; empty if that has not started."""
    if job.began_at is None:
        return ""
    return round(((job.ended_at or timezone.now()) - job.began_at).total_seconds())


COLUMNS = (
    TableColumn(key="name", label=lazy("Name"), sort="name"),
    TableColumn(key="state", label=lazy("State"), sort="state"),
    TableColumn(key="kind", label=lazy("Kind"), sort="kind"),
    TableColumn(key="progress", label=lazy("Status"), csv=_progress_csv),
    TableColumn(
        key="created_by",
        label=lazy("Created by"),
        sort="created_by__username",
        csv=lambda job: job.created_by.username,
    ),
    TableColumn(
        key="created_at",
        label=lazy("Submitted"),
        sort="pk",
        csv=lambda job: job.created_at.isoformat(),
    ),
    TableColumn(key="ran", label=lazy("Duration"), numeric=True, csv=_run_seconds_csv),
)


def saved_filter_query(query: str) -> str:
    """The query string without parameters that are not filters."""
    query_dict = QueryDict(query, mutable=True)
    for name in (SAVED_FILTER_PARAMETER, "after", "format"):
        query_dict.pop(name, None)
    return query_dict.urlencode()


def saved_filter_url(saved: SavedFilter) -> str:
    return f"{reverse('jobs')}?{saved.query}&{SAVED_FILTER_PARAMETER}={saved.uid}"


@login_required
@require_POST
def filter_save(request: AuthenticatedRequest) -> HttpResponse:
    query = saved_filter_query(request.POST.get("query", ""))
    try:
        saved = services.saved_filter_save(
            owner=request.user, name=request.POST.get("name", ""), query=query
        )
    except services.FilterRefused as refusal:
        messages.error(request, str(refusal))
        return redirect(
            f"{reverse('jobs')}?{query}"
            if query
            else f"{reverse('jobs')}?{SAVED_FILTER_PARAMETER}=none"
        )
    messages.success(request, _("The job filter was saved."))
    return redirect(saved_filter_url(saved))


@login_required
@require_POST
def job_filter_change(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """``act`` is ``rename``, ``default``, ``no-default`` or ``delete``."""
    saved = get_object_or_404(selectors.saved_filters(request.user), uid=uid)
    actions = {
        "rename": lambda: services.saved_filter_rename(
            saved=saved, name=request.POST.get("name", "")
        ),
        "default": lambda: services.saved_filter_set_default(saved=saved, enabled=True),
        "no-default": lambda: services.saved_filter_set_default(saved=saved, enabled=False),
        "delete": lambda: services.saved_filter_delete(saved=saved),
    }
    action = request.POST.get("act", "")
    deleted = action == "delete"
    return run_action(
        request,
        actions.get(action, lambda: None),
        back=f"{reverse('jobs')}?{SAVED_FILTER_PARAMETER}=none"
        if deleted
        else saved_filter_url(saved),
        done=_("The job filter was deleted.") if deleted else _("The job filter was changed."),
        refusals=(services.FilterRefused,),
    )


LIVE_STATES = (JobState.WAITING, JobState.RUNNING)
#: Refusals of a bulk action that have a message of their own.
_MAX_REFUSAL_MESSAGES = 8
_REASON_CHARACTERS = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    job: Any
    #: None unless it runs and has reported its progress.
    job_progress: JobProgress | None
    #: Why it is pending or how it ended, shortened.
    reason: str


@login_required
def job_list_page(request: AuthenticatedRequest) -> HttpResponseBase:
    """The list by the filters in the URL; without any, redirect to the user's default filter."""
    saved = list(selectors.saved_filters(request.user))
    default = next((one for one in saved if one.is_default), None)
    if default is not None and not request.META.get("QUERY_STRING"):
        return redirect(saved_filter_url(default))
    at = timezone.now()
    state = request.GET.get("state", "")
    form = JobFilter(request.GET, user=request.user)
    every = selectors.jobs_visible(request.user)
    table = ListTable(
        request,
        selectors.jobs_with_latest_attempt(
            every.filter(state=state) if state in set(JobState) else every
        ),
        columns=COLUMNS,
        filters=form,
        bulk=[_cancel_action()],
    )
    if table.is_csv_request:
        return table.csv(filename="jobs.csv")
    rows = [_job_row(job, at=at) for job in table.rows]
    open_filter = request.GET.get(SAVED_FILTER_PARAMETER)
    context = {
        "table": table,
        "rows": rows,
        "state": state,
        "tabs": _state_tabs(request, selectors.jobs_by_state(form.apply(every)), chosen=state),
        "saved": [(one, saved_filter_url(one)) for one in saved],
        "open_filter": next((one for one in saved if one.uid == open_filter), None),
        "filtered": bool(state) or table.filtered,
    }
    changing = any(row.job.state in LIVE_STATES for row in rows)
    return render_page(request, "jobs/job_list.html", context, fragment="rows", changing=changing)


def _job_row(job: Any, *, at: datetime) -> JobRow:
    job_progress = None
    if job.state == JobState.RUNNING:
        job_progress = job_progress_of(job.progress, reported_at=job.reported_at, at=at)
    reason = job.message if job.state in LIVE_STATES else job.state_reason
    return JobRow(
        job=job,
        job_progress=job_progress,
        reason=Truncator(render_reason(reason or job.state_reason)).chars(_REASON_CHARACTERS),
    )


def _state_tabs(
    request: AuthenticatedRequest, counts: Mapping[str, int], *, chosen: str
) -> list[PageTab]:
    """One tab per state, with the number of jobs that match the other filters."""
    parameters = request.GET.copy()
    parameters.pop("after", None)

    def href(state: str) -> str:
        parameters["state"] = state
        return f"?{parameters.urlencode()}"

    every = PageTab(
        label=_("all"),
        href=href(""),
        current=chosen not in set(JobState),
        count=_count_label(sum(counts.values())),
    )
    return [
        every,
        *(
            PageTab(
                label=state_badge(state).label,
                href=href(state),
                current=state == chosen,
                count=_count_label(counts.get(state, 0)),
            )
            for state in JobState
        ),
    ]


def _count_label(count: int) -> str:
    return f"{count:,}" if count <= MAX_COUNTED else f"{MAX_COUNTED:,}+"


def _cancel_action() -> BulkAction:
    return BulkAction(
        name="cancel",
        label=_("Cancel"),
        href=reverse("jobs-cancel"),
        warning=_(
            "The selected pending and running jobs save a checkpoint and stop. A retry "
            "continues from the latest checkpoint."
        ),
        picture="player-stop",
    )


@login_required
@require_POST
def jobs_cancel(request: AuthenticatedRequest) -> HttpResponse:
    """Cancel the selected jobs; show the reason for each that cannot be cancelled."""
    chosen = selectors.jobs_visible(request.user).filter(uid__in=request.POST.getlist("uid"))
    outcomes = services.jobs_cancel(jobs=chosen, actor=request.user, at=timezone.now())
    if not outcomes:
        messages.info(request, _("Select at least one job."))
    refused = [one for one in outcomes if one.refusal]
    if cancelled := [one.job.name for one in outcomes if not one.refusal]:
        message = ngettext(
            "Cancelling %(count)d job: %(names)s",
            "Cancelling %(count)d jobs: %(names)s",
            len(cancelled),
        )
        names = Truncator(", ".join(cancelled)).chars(200)
        messages.success(request, message % {"count": len(cancelled), "names": names})
    for one in refused[:_MAX_REFUSAL_MESSAGES]:
        messages.error(request, f"{one.job.name}: {render_reason(one.refusal)}")
    if more := len(refused[_MAX_REFUSAL_MESSAGES:]):
        message = ngettext(
            "%(count)d more job was not cancelled.",
            "%(count)d more jobs were not cancelled.",
            more,
        )
        messages.error(request, message % {"count": more})
    return redirect(_list_url(request))


def _list_url(request: AuthenticatedRequest) -> str:
    """The URL of the list with the filters of the referring page."""
    query = request.META.get("HTTP_REFERER", "").partition("?")[2]
    return (
        f"{reverse('jobs')}?{query}"
        if query
        else f"{reverse('jobs')}?{SAVED_FILTER_PARAMETER}=none"
    )
