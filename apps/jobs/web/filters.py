"""What the list of jobs can be narrowed by, its columns, and the filters that people keep."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.views.decorators.http import require_POST

from apps.accounts.models import User
from apps.accounts.web.forms import TeamFilterForm
from apps.accounts.web.requests import SignedIn
from apps.jobs import selectors, services
from apps.jobs.models import SavedFilter
from controlplane.domain.jobs import JobKind
from controlplane.web.pages import acted
from controlplane.web.tables import Column

#: The parameter of the address that says which saved filter is open.
SAVED = "filter"

KIND_WORDS = {
    JobKind.FINETUNE: lazy("fine-tune"),
    JobKind.EVALUATE: lazy("evaluate"),
    JobKind.QUANTIZE: lazy("quantize"),
    JobKind.SCRIPT: lazy("script"),
}


class JobFilter(TeamFilterForm):
    """The state is chosen by the tabs above the list."""

    field_order = ("text", "kind", "team")

    text = forms.CharField(label=lazy("Name contains"), max_length=120)
    kind = forms.ChoiceField(
        label=lazy("Kind"),
        choices=[
            ("", lazy("any kind")),
            *((kind.value, word) for kind, word in KIND_WORDS.items()),
        ],
    )
    model = forms.CharField(label=lazy("Model"), max_length=80)
    dataset = forms.CharField(label=lazy("Dataset"), max_length=80)
    since = forms.DateField(
        label=lazy("Submitted from"), widget=forms.DateInput(attrs={"type": "date"})
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
            rows = rows.filter(created_at__gte=_midnight(since))
        if until := self.chosen("until"):
            rows = rows.filter(created_at__date__lte=until)
        return rows


def _midnight(day: Any) -> datetime:
    """Where the day begins for whoever looks."""
    return timezone.make_aware(datetime.combine(day, time.min))


def _share(job: Any) -> str:
    progress = job.progress or {}
    total = progress.get("total_steps")
    return f"{progress.get('step', 0)}/{total}" if total else ""


def _ran_seconds(job: Any) -> object:
    """Of its newest attempt; empty where it never began."""
    if job.began_at is None:
        return ""
    return round(((job.ended_at or timezone.now()) - job.began_at).total_seconds())


COLUMNS = (
    Column(key="name", label=lazy("Name"), sort="name"),
    Column(key="state", label=lazy("State"), sort="state"),
    Column(key="kind", label=lazy("Kind"), sort="kind"),
    Column(key="progress", label=lazy("Progress, or why not"), csv=_share),
    Column(
        key="created_by",
        label=lazy("By"),
        sort="created_by__username",
        csv=lambda job: job.created_by.username,
    ),
    Column(
        key="created_at",
        label=lazy("Submitted"),
        sort="pk",
        csv=lambda job: job.created_at.isoformat(),
    ),
    Column(key="ran", label=lazy("Ran for"), numeric=True, csv=_ran_seconds),
)


def query_to_keep(query: str) -> str:
    """Without what belongs to the page rather than to the question."""
    kept = QueryDict(query, mutable=True)
    for name in (SAVED, "after", "format"):
        kept.pop(name, None)
    return kept.urlencode()


def address_of(saved: SavedFilter) -> str:
    return f"{reverse('jobs')}?{saved.query}&{SAVED}={saved.uid}"


@login_required
@require_POST
def filter_save(request: SignedIn) -> HttpResponse:
    query = query_to_keep(request.POST.get("query", ""))
    try:
        saved = services.filter_save(
            owner=request.user, name=request.POST.get("name", ""), query=query
        )
    except services.FilterRefused as refusal:
        messages.error(request, str(refusal))
        return redirect(
            f"{reverse('jobs')}?{query}" if query else f"{reverse('jobs')}?{SAVED}=none"
        )
    messages.success(request, _("The filter was saved."))
    return redirect(address_of(saved))


@login_required
@require_POST
def filter_change(request: SignedIn, uid: str) -> HttpResponse:
    """``act`` is ``rename``, ``default``, ``no-default`` or ``delete``."""
    saved = get_object_or_404(selectors.saved_filters(request.user), uid=uid)
    acts = {
        "rename": lambda: services.filter_rename(saved=saved, name=request.POST.get("name", "")),
        "default": lambda: services.filter_default(saved=saved, wanted=True),
        "no-default": lambda: services.filter_default(saved=saved, wanted=False),
        "delete": lambda: services.filter_delete(saved=saved),
    }
    act = request.POST.get("act", "")
    gone = act == "delete"
    return acted(
        request,
        acts.get(act, lambda: None),
        back=f"{reverse('jobs')}?{SAVED}=none" if gone else address_of(saved),
        done=_("The filter was deleted.") if gone else _("The filter was changed."),
        refusals=(services.FilterRefused,),
    )
