from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.fleet import selectors as fleet
from apps.monitoring.models import Fault, HealthRule, Isolation
from apps.monitoring.selectors.meanings import meaning_of
from apps.monitoring.selectors.policies import HealthStance, policy_json
from controlplane.domain.faults import FaultLevel
from controlplane.domain.health.isolations import IsolationState
from controlplane.domain.health.signals import Origin
from controlplane.web.rest import UID, Filters, M, Reference, StrictSerializer, VisibleField

_LEVELS = [(level.value, f"L{level.value}") for level in FaultLevel]
#: Rows that one request may act on.
MOST = 500


class Uid(serializers.RegexField):
    """A public name, where a list or a filter names something."""

    def __init__(self, **options: Any) -> None:
        super().__init__(f"^{UID}$", **options)


class FaultSerializer(serializers.ModelSerializer[Fault]):
    cluster = serializers.CharField(source="node.cluster.name")
    node = Reference()
    card = Reference(allow_null=True, help_text="Null: of the node itself.")
    level = serializers.IntegerField(help_text="1 is a note, 6 means isolation.")
    cause = serializers.SerializerMethodField(help_text="What the code stands for; may be empty.")
    remedy = serializers.SerializerMethodField(help_text="What to do about it; may be empty.")

    class Meta:
        model = Fault
        fields = (
            "uid",
            "cluster",
            "node",
            "card",
            "origin",
            "vendor",
            "code",
            "level",
            "message",
            "cause",
            "remedy",
            "count",
            "began_at",
            "told_at",
            "ended_at",
            "acknowledged_at",
            "acknowledged_by_name",
            "note",
        )

    def get_cause(self, fault: Fault) -> str:
        meaning = meaning_of(fault.vendor, fault.code)
        return meaning.cause if meaning else ""

    def get_remedy(self, fault: Fault) -> str:
        meaning = meaning_of(fault.vendor, fault.code)
        return meaning.remedy if meaning else ""


class FaultFilters(Filters):
    level = serializers.ChoiceField(choices=_LEVELS, required=False)
    origin = serializers.ChoiceField(
        choices=[(one.value, one.value) for one in Origin], required=False
    )
    code = serializers.CharField(required=False, max_length=120)
    cluster = serializers.CharField(required=False, max_length=40, help_text="Its name.")
    node = VisibleField(visible=lambda _user: fleet.nodes(), required=False, help_text="Its uid.")
    card = VisibleField(visible=lambda _user: fleet.cards(), required=False, help_text="Its uid.")
    standing = serializers.BooleanField(
        required=False, help_text="Only those that stand, or are over."
    )
    acknowledged = serializers.BooleanField(required=False)
    lookups = {
        "level": "level",
        "origin": "origin",
        "code": "code",
        "cluster": "node__cluster__name",
        "node": "node",
        "card": "card",
    }

    @classmethod
    def apply(cls, rows: QuerySet[M, Any], given: Mapping[str, Any]) -> QuerySet[M, Any]:
        rows = super().apply(rows, given)
        if "standing" in given:
            rows = rows.filter(ended_at__isnull=given["standing"])
        if "acknowledged" in given:
            rows = rows.filter(acknowledged_at__isnull=not given["acknowledged"])
        return rows


class UidsSerializer(StrictSerializer[Any]):
    uids = serializers.ListField(child=Uid(), min_length=1, max_length=MOST)


class AcknowledgeSerializer(UidsSerializer):
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=2000)


class AcknowledgedSerializer(serializers.Serializer[Any]):
    acknowledged = serializers.IntegerField(help_text="How many were not acknowledged before.")


class IsolationSerializer(serializers.ModelSerializer[Isolation]):
    cluster = serializers.CharField(source="node.cluster.name")
    node = Reference()
    card = Reference(allow_null=True, help_text="Null: the whole node.")
    state = serializers.ChoiceField(choices=[(one.value, one.value) for one in IsolationState])
    fault = serializers.CharField(source="fault.uid", allow_null=True, default=None)
    evidence = serializers.DictField(help_text="What the last burn-in found.")

    class Meta:
        model = Isolation
        fields = (
            "uid",
            "cluster",
            "node",
            "card",
            "state",
            "reason",
            "actor_name",
            "fault",
            "began_at",
            "drained_at",
            "burn_ins",
            "tested_at",
            "proved_at",
            "evidence",
            "ended_at",
        )
        extra_kwargs = {
            "actor_name": {"help_text": "Who took it out of use; empty: a rule."},
            "burn_ins": {"help_text": "How many tests it has begun."},
        }


class IsolationFilters(Filters):
    state = serializers.ChoiceField(
        choices=[(one.value, one.value) for one in IsolationState], required=False
    )
    cluster = serializers.CharField(required=False, max_length=40, help_text="Its name.")
    node = VisibleField(visible=lambda _user: fleet.nodes(), required=False, help_text="Its uid.")
    standing = serializers.BooleanField(
        required=False, help_text="Only what is out of use, or back."
    )
    lookups = {"state": "state", "cluster": "node__cluster__name", "node": "node"}

    @classmethod
    def apply(cls, rows: QuerySet[M, Any], given: Mapping[str, Any]) -> QuerySet[M, Any]:
        rows = super().apply(rows, given)
        return rows.filter(ended_at__isnull=given["standing"]) if "standing" in given else rows


class IsolateSerializer(StrictSerializer[Any]):
    nodes = serializers.ListField(child=Uid(), required=False, default=list, max_length=MOST)
    cards = serializers.ListField(child=Uid(), required=False, default=list, max_length=MOST)
    reason = serializers.CharField(max_length=2000)


class IsolationsSerializer(serializers.Serializer[Any]):
    """Those that this changed."""

    isolations = IsolationSerializer(many=True)


class ReleaseSerializer(UidsSerializer):
    reason = serializers.CharField(max_length=2000)


class BurnInsAskedSerializer(serializers.Serializer[Any]):
    asked = serializers.IntegerField(help_text="How many will be tested.")


class HealthRuleSerializer(serializers.ModelSerializer[HealthRule]):
    condition = serializers.DictField(
        help_text="metric, how (value, change or rate), op, value, for, within, chips."
    )
    level = serializers.IntegerField()

    class Meta:
        model = HealthRule
        fields = ("uid", "name", "title", "enabled", "condition", "level", "changed_at")


class HealthRuleChangeSerializer(StrictSerializer[Any]):
    title = serializers.CharField(required=False, allow_blank=True, max_length=120)
    condition = serializers.DictField(required=False)
    level = serializers.ChoiceField(choices=_LEVELS, required=False)
    enabled = serializers.BooleanField(required=False)


class HealthRuleCreateSerializer(HealthRuleChangeSerializer):
    name = serializers.SlugField(max_length=60)
    condition = serializers.DictField()
    level = serializers.ChoiceField(choices=_LEVELS)


class DryRunSerializer(StrictSerializer[Any]):
    condition = serializers.DictField()
    hours = serializers.IntegerField(required=False, default=24, min_value=1, max_value=72)


class FiringSerializer(serializers.Serializer[Any]):
    began_at = serializers.DateTimeField()
    fired_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    worst = serializers.FloatField(help_text="The figure that lay furthest beyond the limit.")


class TrialSerializer(serializers.Serializer[Any]):
    card = Reference()
    firings = FiringSerializer(many=True)


class TrialsSerializer(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    cards = serializers.IntegerField(help_text="How many were looked at.")
    times = serializers.IntegerField(help_text="How often it would have fired.")
    trials = TrialSerializer(many=True)


class HealthPolicySerializer(serializers.Serializer[Any]):
    automatic = serializers.BooleanField(help_text="Whether rules act by themselves.")
    settings = serializers.SerializerMethodField(
        help_text="Guards and pauses: durations in seconds, shares in thousandths."
    )
    changed_by_name = serializers.CharField()
    changed_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(serializers.DictField(child=serializers.FloatField()))
    def get_settings(self, stance: HealthStance) -> dict[str, float]:
        return policy_json(stance.policy)


class HealthPolicyChangeSerializer(StrictSerializer[Any]):
    automatic = serializers.BooleanField(required=False)
    settings = serializers.DictField(child=serializers.FloatField(), required=False)
