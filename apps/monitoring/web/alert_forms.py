"""Forms of alert rules, silences, receivers and routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from apps.monitoring.models import AlertReceiver, AlertRoute, AlertRule
from apps.monitoring.selectors.alerts import MEASURE_LABELS, SEVERITY_LABELS
from apps.monitoring.services.alerts import AlertReceiverRequest, AlertRouteRequest
from controlplane.domain.alerts.chat_messages import ReceiverKind
from controlplane.domain.alerts.rules import AlertSeverity
from controlplane.domain.rules.conditions import Comparison
from controlplane.web.forms import StyledForm

RECEIVER_LABELS = {
    ReceiverKind.FEISHU: _("Feishu or Lark, custom bot"),
    ReceiverKind.DINGTALK: _("DingTalk, custom robot"),
    ReceiverKind.SLACK: _("Slack, incoming webhook"),
    ReceiverKind.EMAIL: _("E-mail"),
    ReceiverKind.WEBHOOK: _("Webhook with JSON"),
}
_OPS = {
    Comparison.ABOVE: _("is above"),
    Comparison.AT_LEAST: _("is at least"),
    Comparison.BELOW: _("is below"),
    Comparison.AT_MOST: _("is at most"),
    Comparison.EQUAL: _("is equal to"),
}
_SEVERITIES = [(one.value, word) for one, word in SEVERITY_LABELS.items()]
_LENGTHS = {
    1: _("1 hour"),
    4: _("4 hours"),
    24: _("1 day"),
    24 * 7: _("1 week"),
    24 * 30: _("30 days"),
}


def non_empty_lines(text: str) -> tuple[str, ...]:
    """What is on each line that is not empty."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _text_area(placeholder: str) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": 2, "placeholder": placeholder, "spellcheck": "false"})


class AlertRuleForm(StyledForm):
    more: ClassVar[tuple[str, ...]] = ("where", "keeps", "group_by", "repeat")

    name = forms.SlugField(
        label=_("Name"),
        max_length=60,
        help_text=_(
            "Lowercase letters, digits and hyphens. Silences and routes match "
            "the rule by this name."
        ),
    )
    title = forms.CharField(
        label=_("Title"), max_length=120, help_text=_("Title of the notification.")
    )
    measure = forms.ChoiceField(label=_("Metric"), choices=list(MEASURE_LABELS.items()))
    op = forms.ChoiceField(
        label=_("Comparison"), choices=[(one.value, word) for one, word in _OPS.items()]
    )
    threshold = forms.FloatField(
        label=_("Threshold"),
        help_text=_("Threshold in the unit of the metric: seconds, percent, °C or a count."),
    )
    lasts = forms.IntegerField(
        label=_("Hold duration (s)"), min_value=0, initial=60, required=False
    )
    severity = forms.ChoiceField(
        label=_("Severity"), choices=_SEVERITIES, initial=AlertSeverity.WARNING.value
    )
    enabled = forms.BooleanField(label=_("Enabled"), required=False, initial=True)
    where = forms.CharField(
        label=_("Label matchers"),
        required=False,
        max_length=2000,
        widget=_text_area("cluster=west"),
        help_text=_("One matcher per line, such as node!=test-*."),
    )
    keeps = forms.IntegerField(
        label=_("Resolve delay (s)"),
        min_value=0,
        initial=0,
        required=False,
        help_text=_("Time without the condition after which the alert resolves."),
    )
    group_by = forms.CharField(
        label=_("Group by"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": "cluster"}),
        help_text=_("Comma-separated labels. Empty: one notification for all alerts of the rule."),
    )
    repeat = forms.IntegerField(
        label=_("Repeat interval (min)"),
        min_value=5,
        required=False,
        help_text=_("Time between notifications while the alert fires. Empty: notify once."),
    )

    def document(self) -> Mapping[str, Any]:
        """As the rule's reader wants it."""
        values = self.cleaned_data
        labels = (label.strip() for label in values["group_by"].split(","))
        return {
            **values,
            "lasts": values["lasts"] or 0,
            "keeps": values["keeps"] or 0,
            "where": list(non_empty_lines(values["where"])),
            "group_by": [label for label in labels if label],
            "repeat": values["repeat"] * 60 if values["repeat"] else None,
        }

    @staticmethod
    def initial_values_of_job(rule: AlertRule) -> dict[str, Any]:
        document = rule.document
        return {
            **document,
            "enabled": rule.enabled,
            "where": "\n".join(document["where"]),
            "group_by": ", ".join(document["group_by"]),
            "repeat": document["repeat"] // 60 if document["repeat"] else None,
        }


class SilenceForm(StyledForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=80,
        help_text=_("Unique among the silences that have not expired."),
    )
    matchers = forms.CharField(
        label=_("Label matchers"),
        max_length=2000,
        widget=_text_area("rule=card-hot"),
        help_text=_("One label matcher per line. All must match."),
    )
    hours = forms.TypedChoiceField(
        label=_("Duration"), coerce=int, choices=list(_LENGTHS.items()), initial=4
    )
    reason = forms.CharField(
        label=_("Reason"), max_length=300, help_text=_("Reason for the silence.")
    )

    @property
    def length(self) -> timedelta:
        return timedelta(hours=self.cleaned_data["hours"])


class AlertReceiverForm(StyledForm):
    name = forms.CharField(label=_("Name"), max_length=80)
    kind = forms.ChoiceField(
        label=_("Kind"), choices=[(one.value, word) for one, word in RECEIVER_LABELS.items()]
    )
    url = forms.CharField(
        label=_("URL"),
        max_length=2000,
        required=False,
        widget=forms.URLInput(attrs={"placeholder": "https://", "autocomplete": "off"}),
        help_text=_("URL of the bot or webhook. Stored encrypted and not shown again."),
    )
    secret = forms.CharField(
        label=_("Secret"),
        max_length=200,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("Signing secret of the bot, if it has one. Not shown again."),
    )
    addresses = forms.CharField(
        label=_("E-mail addresses"),
        max_length=4000,
        required=False,
        widget=_text_area("night-shift@example.com"),
        help_text=_("One e-mail address per line. Only for e-mail receivers."),
    )
    language = forms.ChoiceField(
        label=_("Language"), choices=settings.LANGUAGES, initial=settings.LANGUAGE_CODE
    )

    def to_request(self) -> AlertReceiverRequest:
        values = self.cleaned_data
        kind = ReceiverKind(values["kind"])
        mails = kind is ReceiverKind.EMAIL
        return AlertReceiverRequest(
            name=values["name"],
            kind=kind,
            url="" if mails else values["url"].strip(),
            secret="" if mails else values["secret"],
            addresses=non_empty_lines(values["addresses"]) if mails else (),
            language=values["language"],
        )


class AlertRouteForm(StyledForm):
    more: ClassVar[tuple[str, ...]] = ("matchers",)

    name = forms.CharField(label=_("Name"), max_length=80)
    severity = forms.ChoiceField(
        label=_("Minimum severity"), choices=_SEVERITIES, initial=AlertSeverity.WARNING.value
    )
    receivers = forms.ModelMultipleChoiceField(
        label=_("Alert receivers"),
        queryset=AlertReceiver.objects.none(),
        to_field_name="uid",
        widget=forms.CheckboxSelectMultiple,
    )
    enabled = forms.BooleanField(label=_("Enabled"), required=False, initial=True)
    matchers = forms.CharField(
        label=_("Label matchers"),
        required=False,
        max_length=2000,
        widget=_text_area("cluster=west"),
        help_text=_("Matchers on the rule name and its grouping labels, one per line."),
    )

    def offer(self, receivers: Any) -> None:
        self.model_choice_field("receivers").queryset = receivers

    def to_request(self) -> AlertRouteRequest:
        values = self.cleaned_data
        return AlertRouteRequest(
            name=values["name"],
            severity=AlertSeverity(values["severity"]),
            matchers=non_empty_lines(values["matchers"]),
            receivers=list(values["receivers"]),
            enabled=values["enabled"],
        )

    @staticmethod
    def initial_values_of_job(route: AlertRoute) -> dict[str, Any]:
        chosen: Iterable[AlertReceiver] = route.receivers.all()
        return {
            "name": route.name,
            "severity": route.severity,
            "receivers": [one.uid for one in chosen],
            "enabled": route.enabled,
            "matchers": "\n".join(route.matchers),
        }
