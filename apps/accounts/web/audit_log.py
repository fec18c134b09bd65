"""The audit log page, and the message of each audit action. A test requires a message for every action."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, time
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_lazy as _

from apps.accounts import selectors
from apps.accounts.models import AuditEntry, Team
from apps.accounts.selectors import PermissionRefused
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.accounts.web.role_labels import COMPANY_ROLE_LABELS, ROLE_LABELS
from controlplane.web.tables import FilterForm, ListTable, TableColumn

AUDIT_MESSAGES: Mapping[str, Promise] = {
    "alert_receiver.create": _("%(actor)s created the alert receiver %(name)s"),
    "alert_receiver.delete": _("%(actor)s deleted the alert receiver %(name)s"),
    "alert_receiver.pause": _("%(actor)s disabled the alert receiver %(name)s"),
    "alert_receiver.resume": _("%(actor)s enabled the alert receiver %(name)s"),
    "alert_route.change": _("%(actor)s changed the notification route %(name)s"),
    "alert_route.create": _("%(actor)s created the notification route %(name)s"),
    "alert_route.delete": _("%(actor)s deleted the notification route %(name)s"),
    "alert_rule.change": _("%(actor)s changed the alert rule %(name)s"),
    "alert_rule.create": _("%(actor)s created the alert rule %(name)s"),
    "alert_rule.delete": _("%(actor)s deleted the alert rule %(name)s"),
    "alert_silence.begin": _("%(actor)s created the alert silence %(name)s"),
    "alert_silence.change": _("%(actor)s changed the alert silence %(name)s"),
    "alert_silence.end": _("%(actor)s ended the silence %(name)s"),
    "audit.prune": _("%(actor)s deleted old audit events"),
    "cluster.check": _("%(actor)s checked the connection to the cluster %(name)s"),
    "cluster.change": _("%(actor)s changed the cluster %(name)s"),
    "cluster.create": _("%(actor)s added the cluster %(name)s"),
    "cluster.remove": _("%(actor)s removed the cluster %(name)s"),
    "code.upload": _("%(actor)s uploaded the code of a job"),
    "company_roles.set": _("%(actor)s set the company roles of %(name)s to %(roles)s"),
    "dataset.add_version": _("%(actor)s added a version to the dataset %(name)s"),
    "dataset.change": _("%(actor)s changed the dataset %(name)s"),
    "dataset.create": _("%(actor)s uploaded the dataset %(name)s"),
    "dataset.delete": _("%(actor)s deleted the dataset %(name)s"),
    "dataset.revive": _("%(actor)s re-uploaded %(name)s, which had been deleted"),
    "defragmentation_plan.approve": _("%(actor)s approved the defragmentation plan: %(name)s"),
    "defragmentation_plan.dismiss": _("%(actor)s dismissed the defragmentation plan: %(name)s"),
    "defragmentation_plan.propose": _("%(actor)s proposed a defragmentation plan: %(name)s"),
    "deployment.change_strategy": _(
        "%(actor)s changed the rollout strategy of the deployment %(name)s"
    ),
    "deployment.create": _("%(actor)s created the deployment %(name)s"),
    "deployment.delete": _("%(actor)s deleted the deployment %(name)s"),
    "deployment.pause_rollout": _("%(actor)s paused the rollout of the deployment %(name)s"),
    "deployment.resume_rollout": _("%(actor)s resumed the rollout of the deployment %(name)s"),
    "deployment.revise": _("%(actor)s created a revision of the deployment %(name)s"),
    "deployment.scale": _("%(actor)s scaled the deployment %(name)s"),
    "deployment.start": _("%(actor)s started the deployment %(name)s"),
    "deployment.stop": _("%(actor)s stopped the deployment %(name)s"),
    "deployment.undo_rollout": _("%(actor)s undid the rollout of the deployment %(name)s"),
    "fault.acknowledge": _("%(actor)s acknowledged the fault %(name)s"),
    "health_policy.change": _("%(actor)s changed the health policy"),
    "health_rule.change": _("%(actor)s changed the health rule %(name)s"),
    "health_rule.create": _("%(actor)s created the health rule %(name)s"),
    "health_rule.delete": _("%(actor)s deleted the health rule %(name)s"),
    "held_back.isolate": _(
        "%(actor)s isolated %(count)s cards or nodes of %(name)s whose isolation was "
        "suppressed: %(reason)s"
    ),
    "held_back.leave": _(
        "%(actor)s dismissed %(count)s suppressed isolations of %(name)s: %(reason)s"
    ),
    "identity.link": _("%(actor)s linked their single sign-on account"),
    "identity.unlink": _("%(actor)s unlinked the single sign-on account of %(name)s"),
    "isolation.begin": _("%(actor)s isolated %(name)s: %(reason)s"),
    "isolation.release": _("%(actor)s returned %(name)s to service: %(reason)s"),
    "isolation.test": _("%(actor)s requested a burn-in run of %(name)s"),
    "job.auto_retry": _(
        "%(actor)s retried the job %(name)s: %(cause)s (retry %(retry)s of %(max_retries)s)"
    ),
    "job.cancel": _("%(actor)s cancelled the job %(name)s"),
    "job.retry": _("%(actor)s retried the job %(name)s"),
    "job.submit": _("%(actor)s submitted the job %(name)s"),
    "key.change": _("%(actor)s changed the key %(name)s"),
    "key.create": _("%(actor)s created the key %(name)s"),
    "key.rotate": _("%(actor)s rotated the key %(name)s"),
    "key.revoke": _("%(actor)s revoked the key %(name)s"),
    "membership.change": _("%(actor)s changed the membership “%(name)s”"),
    "membership.create": _("%(actor)s created the membership “%(name)s”"),
    "membership.delete": _("%(actor)s deleted the membership “%(name)s”"),
    "membership.migrate": _(
        "%(name)s lost the team role operator, which granted access to the fleet; "
        "remaining roles: %(roles)s"
    ),
    "membership.remove": _("%(actor)s removed the member %(name)s from the team"),
    "membership.set": _("%(actor)s set the roles of %(name)s to %(roles)s"),
    "membership.sync": _("The sign-on provider set the roles of %(name)s to %(roles)s"),
    "model.accept": _("%(actor)s accepted the quantized model %(name)s: %(reason)s"),
    "model.cancel": _("%(actor)s cancelled the import of %(name)s"),
    "model.fetch": _("%(actor)s started the import of %(name)s from %(repository)s"),
    "model.import": _("%(actor)s imported the model %(name)s"),
    "model.register": _("%(actor)s registered the model %(name)s"),
    "model.reject": _("%(actor)s rejected the quantized model %(name)s: %(reason)s"),
    "model.retry": _("%(actor)s retried the import of %(name)s"),
    "modelline.change": _("%(actor)s changed the model %(name)s"),
    "modelline.delete": _("%(actor)s deleted the model %(name)s"),
    "node.cordon": _("%(actor)s cordoned the node %(name)s"),
    "node.uncordon": _("%(actor)s uncordoned the node %(name)s"),
    "apply_set.change": _("%(actor)s changed the objects of the apply set %(name)s"),
    "apply_set.create": _("%(actor)s created the apply set %(name)s"),
    "apply_set.delete": _("%(actor)s deleted the apply set %(name)s"),
    "device_authorization.approve": _(
        "%(actor)s approved the sign-in of the command line on %(host)s"
    ),
    "device_authorization.deny": _("%(actor)s denied the sign-in of the command line on %(host)s"),
    "email.change": _("%(actor)s changed their e-mail"),
    "node_token.create": _("%(actor)s created an agent token for the node %(name)s"),
    "node_token.revoke": _("%(actor)s revoked an agent token of the node %(name)s"),
    "password.change": _("%(actor)s changed their password"),
    "password.set": _("%(actor)s set a password with a password link"),
    "pipeline.approve_anyway": _(
        "%(actor)s approved the pipeline %(name)s despite its failed gate: %(reason)s"
    ),
    "pipeline.cancel": _("%(actor)s cancelled the pipeline %(name)s"),
    "pipeline.retry": _("%(actor)s retried the pipeline %(name)s"),
    "pipeline.submit": _("%(actor)s submitted the pipeline %(name)s"),
    "priority_class.create": _("%(actor)s created the priority class %(name)s"),
    "priority_class.delete": _("%(actor)s deleted the priority class %(name)s"),
    "priority_class.edit": _("%(actor)s changed the priority class %(name)s"),
    "profile.change": _("%(actor)s changed their profile"),
    "queue.change": _("%(actor)s changed the queue %(name)s"),
    "queue.close": _("%(actor)s closed the queue %(name)s"),
    "queue.create": _("%(actor)s created the queue %(name)s"),
    "queue.edit": _("%(actor)s changed the queue %(name)s"),
    "queue.import": _("%(actor)s changed the queue %(name)s by importing a file"),
    "queue.move": _("%(actor)s moved the queue %(name)s"),
    "queue.open": _("%(actor)s opened the queue %(name)s"),
    "rate.change": _("%(actor)s changed the card-hour rate of %(name)s"),
    "queue.retire": _("%(actor)s retired the queue %(name)s"),
    "queue.revert": _("%(actor)s reverted a change of the queue %(name)s"),
    "retentionrule.change": _("%(actor)s changed the retention rules of %(name)s"),
    "retentionrule.create": _("%(actor)s changed the retention rules of %(name)s"),
    "retentionrule.delete": _("%(actor)s deleted the retention rules of %(name)s"),
    "rollout.begin": _("%(actor)s started the maintenance rollout %(name)s"),
    "route_weights.set": _("%(actor)s set the weights of the route %(name)s to %(weights)s"),
    "session.begin": _("%(actor)s signed in"),
    "session.end": _("%(actor)s signed out"),
    "session.end_all": _("%(actor)s signed out all other browser sessions"),
    "session.refuse": _("A sign-in as “%(name)s” failed"),
    "source.change": _("%(actor)s changed the metric source %(name)s"),
    "source.create": _("%(actor)s created the metric source %(name)s"),
    "source.delete": _("%(actor)s deleted the metric source %(name)s"),
    "storage.delete": _("%(actor)s deleted the files of %(name)s"),
    "storage.pin": _("%(actor)s protected the files of %(name)s from deletion"),
    "storage.quota": _("%(actor)s changed the storage quota of %(name)s"),
    "storage.remove": _("%(actor)s permanently deleted the files of %(name)s"),
    "storage.restore": _("%(actor)s restored the files of %(name)s"),
    "storage.retention": _("The files of %(name)s were deleted by a retention rule"),
    "storage.rules": _("%(actor)s changed the retention rules of %(name)s"),
    "storage.unpin": _("%(actor)s no longer protects the files of %(name)s from deletion"),
    "storagequota.change": _("%(actor)s changed the storage quota of %(name)s"),
    "storagequota.create": _("%(actor)s changed the storage quota of %(name)s"),
    "storagequota.delete": _("%(actor)s removed the storage quota of %(name)s"),
    "team.change": _("%(actor)s changed the team %(name)s"),
    "team.create": _("%(actor)s created the team %(name)s"),
    "team.rename": _("%(actor)s renamed a team to %(name)s"),
    "token.change": _("%(actor)s renamed the token %(name)s"),
    "token.create": _("%(actor)s created the personal token %(name)s"),
    "token.revoke": _("%(actor)s revoked the personal token %(name)s"),
    "user.change": _("%(actor)s changed the account %(name)s"),
    "user.create": _("%(actor)s created the account %(name)s"),
    "user.deactivate": _("%(actor)s deactivated the account %(name)s"),
    "user.demote": _("%(actor)s removed the company administrator role from %(name)s"),
    "user.enrol": _("%(name)s signed in with the sign-on provider for the first time"),
    "user.keep": _(
        "%(name)s left the administrators' group of the sign-on provider and stays "
        "administrator because no other is left"
    ),
    "user.invite": _("%(actor)s created a password link for %(name)s"),
    "user.promote": _("%(actor)s gave %(name)s the company administrator role"),
    "user.reactivate": _("%(actor)s reactivated the account %(name)s"),
    "user.unlock": _("%(actor)s unlocked the account %(name)s"),
    "webhook.change": _("%(actor)s changed the webhook %(name)s"),
    "webhook.create": _("%(actor)s created the webhook %(name)s"),
    "webhook.delete": _("%(actor)s deleted the webhook %(name)s"),
    "webhook.pause": _("%(actor)s paused the webhook %(name)s"),
    "webhook.resume": _("%(actor)s resumed the webhook %(name)s"),
    "webhook.rotate": _("%(actor)s rotated the secret of the webhook %(name)s"),
    "weights.cancel": _("%(actor)s cancelled the download of weights: %(name)s"),
    "weights.delete": _("%(actor)s deleted the weight download: %(name)s"),
    "weights.download": _("%(actor)s pre-downloaded the weights of %(name)s to nodes"),
}
#: Actions in entries of version 0.1.0 → their present names; entries cannot be changed.
RENAMED_ACTIONS: Mapping[str, str] = {
    "pipeline.wave": "pipeline.approve_anyway",
    "rearrangement.approve": "defragmentation_plan.approve",
    "rearrangement.dismiss": "defragmentation_plan.dismiss",
    "rearrangement.propose": "defragmentation_plan.propose",
}
_NO_ACTOR = "system"


def audit_message(entry: AuditEntry) -> str:
    """What happened, in the reader's language."""
    actor = gettext("the system") if entry.actor_name == _NO_ACTOR else entry.actor_name
    template = AUDIT_MESSAGES.get(RENAMED_ACTIONS.get(entry.action, entry.action))
    if template is None:
        return f"{actor}: {entry.action} {entry.object_name}".rstrip()
    name = entry.object_name or gettext("unknown user")
    values = {"actor": actor, "name": name, "roles": _format_audited_roles(entry.detail)}
    # An old entry may lack parameters of today's message.
    return str(template) % defaultdict(str, {**entry.detail, **values})


def _format_audited_roles(detail: dict[str, Any]) -> str:
    codes = detail.get("roles", [])
    # Codes compare as text; entries of long ago name as a team role what is one of the company today.
    known = {str(code): name for code, name in (*ROLE_LABELS.items(), *COMPANY_ROLE_LABELS.items())}
    names = [str(known[code]) for code in codes if code in known]
    return gettext(", ").join(names) or gettext("none")


class DateInput(forms.DateInput):
    input_type = "date"


class AuditFilter(FilterForm):
    who = forms.CharField(label=gettext_lazy("Actor"), required=False, max_length=150)
    # All known actions: those that occur would need a scan of the whole table.
    action = forms.ChoiceField(
        label=gettext_lazy("Action"),
        choices=[("", gettext_lazy("all")), *((code, code) for code in sorted(AUDIT_MESSAGES))],
        required=False,
    )
    team = forms.ModelChoiceField(
        label=gettext_lazy("Team"),
        queryset=Team.objects.none(),
        to_field_name="slug",
        required=False,
        empty_label=gettext_lazy("all teams"),
    )
    object = forms.CharField(label=gettext_lazy("Object"), required=False, max_length=200)
    since = forms.DateField(label=gettext_lazy("From date"), required=False, widget=DateInput)
    until = forms.DateField(label=gettext_lazy("To date"), required=False, widget=DateInput)

    def __init__(self, data: Any, *, teams: QuerySet[Team]) -> None:
        super().__init__(data)
        self.model_choice_field("team").queryset = teams

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Days are whole days in the viewer's zone."""
        simple = {"who": "actor_name__iexact", "team": "team"}
        for name, lookup in simple.items():
            if (value := self.chosen(name)) is not None:
                rows = rows.filter(**{lookup: value})
        if action := self.chosen("action"):
            earlier = [name for name, present in RENAMED_ACTIONS.items() if present == action]
            rows = rows.filter(action__in=[action, *earlier])
        if text := self.chosen("object"):
            rows = rows.filter(Q(object_name__icontains=text) | Q(object_uid=text))
        if since := self.chosen("since"):
            rows = rows.filter(at__gte=timezone.make_aware(datetime.combine(since, time.min)))
        if until := self.chosen("until"):
            rows = rows.filter(at__lte=timezone.make_aware(datetime.combine(until, time.max)))
        return rows


COLUMNS = (
    TableColumn(
        key="at", label=gettext_lazy("Time"), sort="pk", csv=lambda row: row.at.isoformat()
    ),
    TableColumn(key="audit_message", label=gettext_lazy("Event"), csv=audit_message),
    TableColumn(key="action", label=gettext_lazy("Action")),
    TableColumn(
        key="team", label=gettext_lazy("Team"), csv=lambda row: row.team.slug if row.team else ""
    ),
    TableColumn(key="object_uid", label=gettext_lazy("Object")),
    TableColumn(key="remote_address", label=gettext_lazy("Source address")),
)
#: The CSV has the parts of the message and the details in columns of their own.
CSV_COLUMNS = (
    *COLUMNS,
    TableColumn(key="actor_name", label=gettext_lazy("Actor")),
    TableColumn(key="object_name", label=gettext_lazy("Name")),
    TableColumn(
        key="detail", label=gettext_lazy("Details"), csv=lambda row: _format_detail(row.detail)
    ),
    TableColumn(key="request_id", label=gettext_lazy("Request ID")),
)


@login_required
def audit_page(request: AuthenticatedRequest) -> HttpResponseBase:
    """For administrators: of a team its entries, of the company all."""
    if not selectors.can_view_audit_log(request.user):
        raise PermissionRefused(
            gettext("the audit log requires the role administrator of a team or of the company")
        )
    entries = selectors.audit_entries_visible(request.user)
    filters = AuditFilter(request.GET, teams=selectors.teams_with_visible_audit_log(request.user))
    table = ListTable(
        request, entries, columns=COLUMNS, filters=filters, default_sort="-at", size=50
    )
    if table.is_csv_request:
        whole = ListTable(
            request, entries, columns=CSV_COLUMNS, filters=filters, default_sort="-at"
        )
        return whole.csv(filename="audit.csv")
    rows = [
        {"row": row, "audit_message": audit_message(row), "detail": _format_detail(row.detail)}
        for row in table.rows
    ]
    return render(request, "accounts/audit.html", {"table": table, "rows": rows})


def _format_detail(detail: dict[str, Any]) -> str:
    return json.dumps(detail, ensure_ascii=False, indent=2, sort_keys=True) if detail else ""
