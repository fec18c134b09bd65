"""REST of apply sets, which ``ninefold apply --prune`` uses."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.accounts.models import ApplySet, Team
from apps.accounts.services.apply_sets import (
    MAX_OBJECTS,
    ApplySetConflict,
    SetObject,
    apply_set_change,
    apply_set_create,
    apply_set_delete,
)
from controlplane.domain.common.permissions import Permission, Scope
from controlplane.web import rest
from controlplane.web.problem_details import register_problem

register_problem(ApplySetConflict, code="apply-set-conflict", status=409)


class ApplySetObjectSerializer(rest.StrictSerializer[Any]):
    kind = serializers.CharField(max_length=40, help_text="Kind of the document.")
    uid = serializers.CharField(max_length=80)
    name = serializers.CharField(max_length=200)


class ApplySetSerializer(serializers.ModelSerializer[ApplySet]):
    team = rest.ObjectReference(allow_null=True, help_text="Null: a set of the company.")
    objects = serializers.SerializerMethodField()

    class Meta:
        model = ApplySet
        fields = ("uid", "name", "team", "version", "changed_at", "objects")

    @extend_schema_field(ApplySetObjectSerializer(many=True))
    def get_objects(self, row: ApplySet) -> list[dict[str, str]]:
        return [
            {"kind": one.kind, "uid": one.object_uid, "name": one.name}
            for one in row.objects_of_set.all()
        ]


class ApplySetCreateSerializer(rest.StrictSerializer[Any]):
    name = serializers.SlugField(max_length=80)
    team = rest.VisibleUidField(
        visible=selectors.teams_visible,
        required=False,
        allow_null=True,
        default=None,
        help_text="Slug or uid of the team; null: the company.",
    )


class ApplySetChangeSerializer(rest.StrictSerializer[Any]):
    version = serializers.IntegerField(
        min_value=1, max_value=rest.LARGEST_INTEGER, help_text="The version that was read."
    )
    objects = serializers.ListField(
        child=ApplySetObjectSerializer(),
        max_length=MAX_OBJECTS,
        help_text="All objects of the set.",
    )


class ApplySetFilters(rest.ListFilters):
    lookups = {"name": "name"}

    name = serializers.CharField(required=False, help_text="Exact name.")


class ApplySetViewSet(rest.CollectionViewSet[ApplySet]):
    """Objects by the set of documents that describes them. Changing a set changes none of its objects."""

    tag = "accounts"
    summaries = {"list": "Apply sets", "retrieve": "An apply set with its objects"}
    #: What is in a set may be deleted by the next who applies it, whatever kind it is of.
    token_scope = Scope.ALL
    serializer_class = ApplySetSerializer
    queries = {"list": ApplySetFilters}

    def get_queryset(self) -> QuerySet[ApplySet]:
        visible = Q(team__in=selectors.teams_visible(self.request.user))
        if selectors.has_company_permission(self.request.user, Permission.OPERATE_FLEET):
            visible |= Q(team=None)
        rows = ApplySet.objects.filter(visible)
        return rows.select_related("team").prefetch_related("objects_of_set")

    @extend_schema(
        summary="Create an apply set",
        description="Requires the permission to submit jobs in the team, or to operate the fleet.",
        request=ApplySetCreateSerializer,
    )
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(ApplySetCreateSerializer)
        self._require_permission(request, given["team"])
        row = apply_set_create(actor=acting_user(request), **given)
        return Response(self.get_serializer(row).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Replace the objects of an apply set",
        description="Refused (409) if the set has another version, or an object is in another set.",
        request=ApplySetChangeSerializer,
    )
    def partial_update(self, request: Request, uid: str) -> Response:
        row = self.get_object()
        self._require_permission(request, row.team)
        given = self.validated_body(ApplySetChangeSerializer)
        apply_set_change(
            apply_set=row,
            version=given["version"],
            objects=[SetObject(**one) for one in given["objects"]],
            actor=acting_user(request),
        )
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(summary="Delete an apply set", description="Its objects are not changed.")
    @rest.supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        row = self.get_object()
        self._require_permission(request, row.team)
        apply_set_delete(apply_set=row, actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _require_permission(self, request: Request, team: Team | None) -> None:
        needed = Permission.RUN if team else Permission.OPERATE_FLEET
        selectors.require_permission(request.user, needed, team=team)
