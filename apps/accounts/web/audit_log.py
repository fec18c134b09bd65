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
from apps.accounts.web.requests import AuthenticatedRequest
from apps.accounts.web.role_labels import COMPANY_ROLE_LABELS, ROLE_LABELS
from controlplane.web.tables import Column, FilterForm, Table

AUDIT_MESSAGES: Mapping[str, Promise] = {
    "alert_receiver.create": _("%(actor)s made the receiver of alerts %(name)s"),
    "alert_receiver.delete": _("%(actor)s deleted the receiver of alerts %(name)s"),
    "alert_receiver.pause": _("%(actor)s sends no more alerts to %(name)s"),
    "alert_receiver.resume": _("%(actor)s sends alerts to %(name)s again"),
    "alert_route.change": _("%(actor)s changed the route of alerts %(name)s"),
    "alert_route.create": _("%(actor)s made the route of alerts %(name)s"),
    "alert_route.delete": _("%(actor)s deleted the route of alerts %(name)s"),
    "alert_rule.change": _("%(actor)s changed the alert rule %(name)s"),
    "alert_rule.create": _("%(actor)s made the alert rule %(name)s"),
    "alert_rule.delete": _("%(actor)s deleted the alert rule %(name)s"),
    "alert_silence.begin": _("%(actor)s silenced alerts: %(name)s"),
    "alert_silence.end": _("%(actor)s ended a silence of alerts: %(name)s"),
    "audit.prune": _("%(actor)s let old audit entries go"),
    "cluster.check": _("%(actor)s checked the connection to the cluster %(name)s"),
    "cluster.change": _("%(actor)s changed the cluster %(name)s"),
    "cluster.create": _("%(actor)s added the cluster %(name)s"),
    "cluster.remove": _("%(actor)s removed the cluster %(name)s"),
    "code.upload": _("%(actor)s uploaded code"),
    "company_roles.set": _("%(actor)s set the company roles of %(name)s: %(roles)s"),
    "dataset.add_version": _("%(actor)s added a version to the dataset %(name)s"),
    "dataset.change": _("%(actor)s changed the dataset %(name)s"),
    "dataset.create": _("%(actor)s uploaded the dataset %(name)s"),
    "dataset.revive": _("%(actor)s uploaded the deleted %(name)s again"),
    "defragmentation_plan.approve": _("%(actor)s approved the defragmentation plan: %(name)s"),
    "defragmentation_plan.dismiss": _("%(actor)s dismissed the defragmentation plan: %(name)s"),
    "defragmentation_plan.propose": _("%(actor)s proposed a defragmentation plan: %(name)s"),
    "deployment.create": _("%(actor)s created the deployment %(name)s"),
    "deployment.delete": _("%(actor)s deleted the deployment %(name)s"),
    "deployment.revise": _("%(actor)s gave the deployment %(name)s a new revision"),
    "deployment.scale": _("%(actor)s scaled the deployment %(name)s"),
    "deployment.start": _("%(actor)s started the deployment %(name)s"),
    "deployment.stop": _("%(actor)s stopped the deployment %(name)s"),
    "fault.acknowledge": _("%(actor)s acknowledged the fault %(name)s"),
    "health_policy.change": _("%(actor)s changed the health policy"),
    "health_rule.change": _("%(actor)s changed the health rule %(name)s"),
    "health_rule.create": _("%(actor)s made the health rule %(name)s"),
    "health_rule.delete": _("%(actor)s deleted the health rule %(name)s"),
    "held_back.isolate": _(
        "%(actor)s took %(count)s places of %(name)s out of use that the guard held back: %(reason)s"
    ),
    "held_back.leave": _(
        "%(actor)s left %(count)s places of %(name)s in use that the guard held back: %(reason)s"
    ),
    "identity.link": _("%(actor)s linked their sign-on account"),
    "identity.unlink": _("%(actor)s unlinked the sign-on account of %(name)s"),
    "isolation.begin": _("%(actor)s took %(name)s out of use: %(reason)s"),
    "isolation.release": _("%(actor)s gave %(name)s back: %(reason)s"),
    "isolation.test": _("%(actor)s asked for a burn-in of %(name)s"),
    "job.auto_retry": _(
        "%(actor)s retried the job %(name)s: %(cause)s (retry %(retry)s of %(max_retries)s)"
    ),
    "job.cancel": _("%(actor)s cancelled the job %(name)s"),
    "job.retry": _("%(actor)s retried the job %(name)s"),
    "job.submit": _("%(actor)s submitted the job %(name)s"),
    "key.create": _("%(actor)s made the key %(name)s"),
    "key.rotate": _("%(actor)s replaced the key %(name)s"),
    "key.revoke": _("%(actor)s revoked the key %(name)s"),
    "membership.change": _("%(actor)s changed the membership “%(name)s”"),
    "membership.create": _("%(actor)s made the membership “%(name)s”"),
    "membership.delete": _("%(actor)s ended the membership “%(name)s”"),
    "membership.migrate": _(
        "%(name)s is no longer operator of a team, with which they operated the fleet; roles there: %(roles)s"
    ),
    "membership.remove": _("%(actor)s took %(name)s out of the team"),
    "membership.set": _("%(actor)s gave %(name)s the roles: %(roles)s"),
    "membership.sync": _("By the sign-on provider %(name)s has the roles: %(roles)s"),
    "model.accept": _("%(actor)s accepted the quantized model %(name)s: %(reason)s"),
    "model.cancel": _("%(actor)s cancelled the import of %(name)s"),
    "model.fetch": _("%(actor)s asked for the model %(name)s from %(repository)s"),
    "model.import": _("%(actor)s imported the model %(name)s"),
    "model.register": _("%(actor)s registered the model %(name)s"),
    "model.reject": _("%(actor)s rejected the quantized model %(name)s: %(reason)s"),
    "model.retry": _("%(actor)s tried the import of %(name)s again"),
    "modelline.change": _("%(actor)s changed the model %(name)s"),
    "node.cordon": _("%(actor)s cordoned the node %(name)s"),
    "node.uncordon": _("%(actor)s opened the node %(name)s again"),
    "email.change": _("%(actor)s changed their e-mail"),
    "node_token.create": _("%(actor)s made a token for the agent of %(name)s"),
    "node_token.revoke": _("%(actor)s revoked a token of the agent of %(name)s"),
    "password.change": _("%(actor)s changed their password"),
    "password.set": _("%(actor)s set a password by a link"),
    "pipeline.approve_anyway": _(
        "%(actor)s approved the pipeline %(name)s despite its failed gate: %(reason)s"
    ),
    "pipeline.cancel": _("%(actor)s cancelled the pipeline %(name)s"),
    "pipeline.retry": _("%(actor)s took the pipeline %(name)s up again"),
    "pipeline.submit": _("%(actor)s submitted the pipeline %(name)s"),
    "priority_class.create": _("%(actor)s made the priority class %(name)s"),
    "priority_class.delete": _("%(actor)s deleted the priority class %(name)s"),
    "priority_class.edit": _("%(actor)s changed the priority class %(name)s"),
    "profile.change": _("%(actor)s changed their profile"),
    "queue.change": _("%(actor)s changed the queue %(name)s"),
    "queue.close": _("%(actor)s closed the queue %(name)s"),
    "queue.create": _("%(actor)s made the queue %(name)s"),
    "queue.edit": _("%(actor)s changed the queue %(name)s"),
    "queue.import": _("%(actor)s changed the queue %(name)s with a file"),
    "queue.move": _("%(actor)s moved the queue %(name)s"),
    "queue.open": _("%(actor)s opened the queue %(name)s"),
    "rate.change": _("%(actor)s changed what an hour of %(name)s costs"),
    "queue.retire": _("%(actor)s retired the queue %(name)s"),
    "queue.revert": _("%(actor)s took a change of the queue %(name)s back"),
    "retentionrule.change": _("%(actor)s changed the retention rules of %(name)s"),
    "retentionrule.create": _("%(actor)s changed the retention rules of %(name)s"),
    "retentionrule.delete": _("%(actor)s dropped the retention rules of %(name)s"),
    "rollout.begin": _("%(actor)s began the rollout %(name)s"),
    "route_weights.set": _("%(actor)s set the weights of the route %(name)s: %(weights)s"),
    "session.begin": _("%(actor)s logged in"),
    "session.end": _("%(actor)s logged out"),
    "session.end_all": _("%(actor)s logged out everywhere else"),
    "session.refuse": _("A log-in as “%(name)s” failed"),
    "source.change": _("%(actor)s changed the source of figures %(name)s"),
    "source.create": _("%(actor)s made the source of figures %(name)s"),
    "source.delete": _("%(actor)s deleted the source of figures %(name)s"),
    "storage.delete": _("%(actor)s deleted the files of %(name)s"),
    "storage.pin": _("%(actor)s protected the files of %(name)s from deletion"),
    "storage.quota": _("%(actor)s changed the storage quota of %(name)s"),
    "storage.remove": _("The files of %(name)s were removed for good; done by %(actor)s"),
    "storage.restore": _("%(actor)s restored the files of %(name)s"),
    "storage.retention": _("The files of %(name)s were deleted by a retention rule"),
    "storage.rules": _("%(actor)s changed the retention rules of %(name)s"),
    "storage.unpin": _("%(actor)s no longer protects the files of %(name)s from deletion"),
    "storagequota.change": _("%(actor)s changed the storage quota of %(name)s"),
    "storagequota.create": _("%(actor)s changed the storage quota of %(name)s"),
    "storagequota.delete": _("%(actor)s lifted the storage quota of %(name)s"),
    "team.change": _("%(actor)s changed the team %(name)s"),
    "team.create": _("%(actor)s made the team %(name)s"),
    "team.rename": _("%(actor)s renamed a team to %(name)s"),
    "token.create": _("%(actor)s made the personal token %(name)s"),
    "token.revoke": _("%(actor)s revoked the personal token %(name)s"),
    "user.change": _("%(actor)s changed the account %(name)s"),
    "user.create": _("%(actor)s made the account %(name)s"),
    "user.deactivate": _("%(actor)s deactivated %(name)s"),
    "user.demote": _("%(name)s no longer administers the company; done by %(actor)s"),
    "user.enrol": _("%(name)s came by the sign-on provider for the first time"),
    "user.keep": _(
        "%(name)s lost the group of administrators at the sign-on provider and stays one as the last"
    ),
    "user.invite": _("%(actor)s made a link by which %(name)s sets a password"),
    "user.promote": _("%(actor)s made %(name)s an administrator of the company"),
    "user.reactivate": _("%(actor)s reactivated %(name)s"),
    "user.unlock": _("%(actor)s let %(name)s try to log in again"),
    "webhook.change": _("%(actor)s changed the webhook %(name)s"),
    "webhook.create": _("%(actor)s made the webhook %(name)s"),
    "webhook.delete": _("%(actor)s deleted the webhook %(name)s"),
    "webhook.pause": _("%(actor)s paused the webhook %(name)s"),
    "webhook.resume": _("%(actor)s resumed the webhook %(name)s"),
    "webhook.rotate": _("%(actor)s gave the webhook %(name)s a new secret"),
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
    name = entry.object_name or gettext("somebody unknown")
    values = {"actor": actor, "name": name, "roles": _format_roles(entry.detail)}
    # An old entry may lack parameters of today's message.
    return str(template) % defaultdict(str, {**entry.detail, **values})


def _format_roles(detail: dict[str, Any]) -> str:
    codes = detail.get("roles", [])
    # Codes compare as text; entries of long ago name as a team role what is one of the company today.
    known = {str(code): name for code, name in (*ROLE_LABELS.items(), *COMPANY_ROLE_LABELS.items())}
    names = [str(known[code]) for code in codes if code in known]
    return gettext(", ").join(names) or gettext("none")


class DateInput(forms.DateInput):
    input_type = "date"


class AuditFilter(FilterForm):
    who = forms.CharField(label=gettext_lazy("Who"), required=False, max_length=150)
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
    since = forms.DateField(label=gettext_lazy("From"), required=False, widget=DateInput)
    until = forms.DateField(label=gettext_lazy("To"), required=False, widget=DateInput)

    def __init__(self, data: Any, *, teams: QuerySet[Team]) -> None:
        super().__init__(data)
        self.row_choice("team").queryset = teams

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
    Column(key="at", label=gettext_lazy("Time"), sort="pk", csv=lambda row: row.at.isoformat()),
    Column(key="audit_message", label=gettext_lazy("Event"), csv=audit_message),
    Column(key="action", label=gettext_lazy("Action")),
    Column(
        key="team", label=gettext_lazy("Team"), csv=lambda row: row.team.slug if row.team else ""
    ),
    Column(key="object_uid", label=gettext_lazy("Object")),
    Column(key="remote_address", label=gettext_lazy("From where")),
)
#: The CSV has the parts of the message and the details in columns of their own.
CSV_COLUMNS = (
    *COLUMNS,
    Column(key="actor_name", label=gettext_lazy("Who")),
    Column(key="object_name", label=gettext_lazy("Name")),
    Column(key="detail", label=gettext_lazy("Details"), csv=lambda row: _format_detail(row.detail)),
    Column(key="request_id", label=gettext_lazy("Request")),
)


@login_required
def audit_page(request: AuthenticatedRequest) -> HttpResponseBase:
    """For administrators: of a team its entries, of the company all."""
    if not selectors.can_view_audit_log(request.user):
        raise PermissionRefused(
            gettext(
                "the audit trail is for administrators of a team or of the company; you are neither"
            )
        )
    entries = selectors.audit_visible(request.user)
    filters = AuditFilter(request.GET, teams=selectors.audit_teams(request.user))
    table = Table(request, entries, columns=COLUMNS, filters=filters, default_sort="-at", size=50)
    if table.is_csv_request:
        whole = Table(request, entries, columns=CSV_COLUMNS, filters=filters, default_sort="-at")
        return whole.csv(filename="audit.csv")
    rows = [
        {"row": row, "audit_message": audit_message(row), "detail": _format_detail(row.detail)}
        for row in table.rows
    ]
    return render(request, "accounts/audit.html", {"table": table, "rows": rows})


def _format_detail(detail: dict[str, Any]) -> str:
    return json.dumps(detail, ensure_ascii=False, indent=2, sort_keys=True) if detail else ""
