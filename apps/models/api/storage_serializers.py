from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.accounts import selectors as accounts
from apps.models.models import Artifact, StorageRun
from apps.models.selectors.storage import title_of
from controlplane.domain.storage.retention import RetentionRules
from controlplane.domain.storage.usage import StorageKind, StorageLevel
from controlplane.web.rest import Filters, Query, Reference, StrictSerializer, VisibleField

LARGEST_QUOTA = 2**62


class TeamStorageSerializer(serializers.Serializer[Any]):
    team = Reference()
    used = serializers.IntegerField(source="use.used", help_text="Bytes.")
    limit = serializers.IntegerField(
        source="use.limit", allow_null=True, help_text="Bytes; null: no limit."
    )
    level = serializers.ChoiceField(
        source="use.level", choices=[(level.value, level.value) for level in StorageLevel]
    )
    deleted = serializers.IntegerField(
        help_text="Bytes of what is deleted and can still be had back; they are part of `used`."
    )
    by_kind = serializers.SerializerMethodField(help_text="Bytes of each kind.")

    def get_by_kind(self, row: Any) -> dict[StorageKind, int]:
        return dict(row.use.by_kind)


class StoreFiguresSerializer(serializers.Serializer[Any]):
    logical = serializers.IntegerField(help_text="Bytes charged to teams.")
    physical = serializers.IntegerField(
        allow_null=True, help_text="Bytes on disk: equal content lies there once."
    )
    shared = serializers.IntegerField(allow_null=True)
    set_aside = serializers.IntegerField(
        allow_null=True, help_text="Bytes that nothing names any more, to be discarded."
    )
    blobs = serializers.IntegerField(allow_null=True)
    counted_at = serializers.DateTimeField(allow_null=True)


class StorageSerializer(serializers.Serializer[Any]):
    teams = TeamStorageSerializer(many=True)
    store = StoreFiguresSerializer(
        allow_null=True, help_text="For administrators of the company; null for others."
    )


class QuotaSerializer(StrictSerializer[Any]):
    limit = serializers.IntegerField(
        min_value=0, max_value=LARGEST_QUOTA, allow_null=True, help_text="Bytes; null: no limit."
    )


class RulesSerializer(StrictSerializer[Any]):
    """Null switches a rule off."""

    enabled = serializers.BooleanField()
    keep_versions = serializers.IntegerField(
        min_value=1, max_value=100_000, allow_null=True, help_text="Newest versions of each model."
    )
    checkpoint_days = serializers.IntegerField(min_value=0, max_value=3650, allow_null=True)
    failed_days = serializers.IntegerField(min_value=0, max_value=3650, allow_null=True)
    log_days = serializers.IntegerField(min_value=0, max_value=3650, allow_null=True)

    def to_rules(self) -> RetentionRules:
        return RetentionRules(**self.validated_data)


class TeamRulesSerializer(serializers.Serializer[Any]):
    team = Reference(allow_null=True, help_text="Null: every team without rules of its own.")
    rules = RulesSerializer()


class RemovalSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(source="item.kind")
    uid = serializers.CharField(
        source="item.uid", help_text="Of the model version, or of the attempt."
    )
    name = serializers.CharField(source="item.name")
    team = serializers.CharField(source="item.team", help_text="A team's uid.")
    size = serializers.IntegerField(source="item.size", help_text="Bytes.")
    rule = serializers.CharField()
    reason = serializers.CharField()


class SparedSerializer(serializers.Serializer[Any]):
    """What a rule would take, had nothing held it."""

    kind = serializers.CharField()
    uid = serializers.CharField()
    name = serializers.CharField()
    held = serializers.CharField(help_text="By what; empty where another version needs it.")
    pinned = serializers.BooleanField()


class PlanSerializer(serializers.Serializer[Any]):
    size = serializers.IntegerField(help_text="Bytes that would stop being charged.")
    removals = RemovalSerializer(many=True)
    spared = SparedSerializer(many=True)


class PlanQuery(Query):
    team = serializers.CharField(
        required=False, help_text="A team's uid: with its rules as if they were switched on."
    )


class RunSerializer(serializers.ModelSerializer[StorageRun]):
    details = serializers.ListField(child=serializers.DictField())

    class Meta:
        model = StorageRun
        fields = (
            "uid",
            "kind",
            "dry_run",
            "started_at",
            "ended_at",
            "examined",
            "set_aside",
            "removed",
            "removed_bytes",
            "details",
            "error",
        )


class RunFilters(Filters):
    lookups = {"kind": "kind"}

    kind = serializers.ChoiceField(choices=StorageRun.KINDS, required=False)


class StoredArtifactSerializer(serializers.ModelSerializer[Artifact]):
    name = serializers.SerializerMethodField()
    team = Reference(allow_null=True, help_text="Null: it belongs to every team.")

    class Meta:
        model = Artifact
        fields = (
            "uid",
            "name",
            "kind",
            "team",
            "size",
            "created_at",
            "pinned_at",
            "deleted_at",
            "deleted_by",
            "deletion_reason",
            "removed_at",
        )

    def get_name(self, artifact: Artifact) -> str:
        return title_of(artifact)


class StoredArtifactFilters(Filters):
    lookups = {"team": "team", "kind": "kind"}

    team = VisibleField(visible=accounts.teams_of, required=False, help_text="A team's uid.")
    kind = serializers.ChoiceField(choices=Artifact.KINDS, required=False)
