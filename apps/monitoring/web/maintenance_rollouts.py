"""Pages of maintenance rollouts: the list, one with its batches, and a new one."""

from __future__ import annotations

import shlex
from typing import ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts.selectors import PermissionRefused
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.fleet.models import Cluster
from apps.fleet.selectors import clusters_with_counts, require_fleet_operator
from apps.monitoring.models import Rollout
from apps.monitoring.selectors.maintenance_rollouts import rollout_batches, rollouts_visible
from apps.monitoring.services import maintenance_rollouts as services
from controlplane.domain.health.maintenance_rollouts import RolloutEvent, RolloutState
from controlplane.web.forms import StyledForm, submitted_data
from controlplane.web.pages import render_form, render_page, run_action, save_form
from controlplane.web.reasons import render_reason
from controlplane.web.tables import ListTable, TableColumn

COLUMNS = (
    TableColumn(key="name", label=gettext_lazy("Name"), sort="name"),
    TableColumn(key="state", label=gettext_lazy("State"), sort="state"),
    TableColumn(key="cluster", label=gettext_lazy("Cluster")),
    TableColumn(
        key="finished", label=gettext_lazy("Completed nodes"), sort="finished", numeric=True
    ),
    TableColumn(
        key="created_by", label=gettext_lazy("Created by"), csv=lambda row: row.created_by.username
    ),
    TableColumn(key="created_at", label=gettext_lazy("Started"), sort="pk"),
)


class MaintenanceRolloutForm(StyledForm):
    more: ClassVar[tuple[str, ...]] = ("domain_label", "run_within", "image")
    finding_fields: ClassVar[dict[str, str]] = {"argv": "command"}

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=120,
        help_text=gettext_lazy("Purpose of the maintenance rollout."),
    )
    cluster = forms.ModelChoiceField(
        label=gettext_lazy("Cluster"), queryset=Cluster.objects.none(), to_field_name="uid"
    )
    labels = forms.CharField(
        label=gettext_lazy("Node labels"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "rack=r1", "spellcheck": "false"}),
        help_text=gettext_lazy("One label=value or name=… per line. Empty: all available nodes."),
    )
    command = forms.CharField(
        label=gettext_lazy("Maintenance command"),
        required=False,
        max_length=4000,
        widget=forms.TextInput(
            attrs={"placeholder": "/usr/bin/update --to 2", "spellcheck": "false"}
        ),
        help_text=gettext_lazy(
            "Program and arguments, run without a shell. Quote arguments that contain spaces."
        ),
    )
    burn_in = forms.BooleanField(
        label=gettext_lazy("Burn-in before nodes return to service"), required=False, initial=True
    )
    parallel = forms.IntegerField(label=gettext_lazy("Nodes at a time"), min_value=1, initial=1)
    domain_label = forms.CharField(
        label=gettext_lazy("Failure domain label"),
        required=False,
        max_length=120,
        help_text=gettext_lazy(
            "Each value of the label is one batch. Empty: network topology levels."
        ),
    )
    run_within = forms.IntegerField(
        label=gettext_lazy("Command timeout (s)"), min_value=1, initial=600
    )
    image = forms.CharField(
        label=gettext_lazy("Image"),
        required=False,
        max_length=300,
        help_text=gettext_lazy("Container image. Required on clusters that run containers."),
    )

    def clean_labels(self) -> dict[str, str]:
        """:raises ValidationError: for a line that is no label."""
        labels = {}
        for line in filter(None, map(str.strip, self.cleaned_data["labels"].splitlines())):
            name, sign, value = line.partition("=")
            if not sign or not name.strip():
                raise forms.ValidationError(_("Each line must have the form label=value."))
            labels[name.strip()] = value.strip()
        return labels

    def clean_command(self) -> list[str]:
        """:raises ValidationError: for quotes that do not end."""
        try:
            return shlex.split(self.cleaned_data["command"])
        except ValueError:
            raise forms.ValidationError(_("The command has an unclosed quote.")) from None

    def rollout(self) -> Rollout:
        values = dict(self.cleaned_data)
        return Rollout(argv=values.pop("command"), **values)


@login_required
def maintenance_rollout_list(request: AuthenticatedRequest) -> HttpResponseBase:
    require_fleet_operator(request.user)
    table = ListTable(request, rollouts_visible(request.user), columns=COLUMNS)
    if table.is_csv_request:
        return table.csv(filename="rollouts.csv")
    return render(
        request, "monitoring/maintenance_rollouts.html", {"table": table, "rows": table.rows}
    )


@login_required
def maintenance_rollout_detail(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Refreshes itself until the rollout ends."""
    found = _find_rollout(request, uid)
    going_on = found.state in (RolloutState.RUNNING, RolloutState.PAUSED)
    context = {
        "rollout": found,
        "going_on": going_on,
        "command": shlex.join(found.argv),
        "batches": rollout_batches(found),
    }
    return render_page(
        request, "monitoring/maintenance_rollout.html", context, fragment="now", changing=going_on
    )


def _find_rollout(request: AuthenticatedRequest, uid: str) -> Rollout:
    require_fleet_operator(request.user)
    return get_object_or_404(rollouts_visible(request.user), uid=uid)


@login_required
def maintenance_rollout_new_view(request: AuthenticatedRequest) -> HttpResponse:
    require_fleet_operator(request.user)
    form = MaintenanceRolloutForm(submitted_data(request))
    form.model_choice_field("cluster").queryset = clusters_with_counts()

    def save() -> Rollout:
        rollout, at = form.rollout(), timezone.now()
        services.maintenance_rollout_begin(rollout=rollout, actor=request.user, at=at)
        return rollout

    try:
        rollout = save_form(form, save)
    except PermissionRefused as refusal:
        rollout = None
        form.add_error("command", render_reason(str(refusal)))
    if rollout is not None:
        messages.success(request, _("Maintenance rollout started."))
        return redirect("rollout", rollout.uid)
    return render_form(request, "monitoring/maintenance_rollout_new.html", form)


@login_required
@require_POST
def maintenance_rollout_control_view(
    request: AuthenticatedRequest, uid: str, *, event: RolloutEvent
) -> HttpResponse:
    found = _find_rollout(request, uid)
    messages_by_event = {
        RolloutEvent.PAUSE: _("Maintenance rollout paused. Nodes in progress are completed."),
        RolloutEvent.RESUME: _("Maintenance rollout resumed."),
        RolloutEvent.CANCEL: _(
            "Maintenance rollout cancelled. Nodes in progress are completed; the others "
            "are not changed."
        ),
    }

    def action() -> str:
        services.maintenance_rollout_control(
            rollout=found, event=event, actor=request.user, at=timezone.now()
        )
        return messages_by_event[event]

    return run_action(request, action, back=reverse("rollout", args=[uid]))
