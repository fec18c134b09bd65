"""The queue of a request: by name or uid, and usable by the team that submits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from django.http import Http404
from django.utils import timezone
from drf_spectacular.drainage import set_override
from drf_spectacular.utils import (
    OpenApiParameter,
    PolymorphicProxySerializer,
    extend_schema,
    extend_schema_field,
)
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors as accounts
from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.accounts.models import Team
from apps.quotas import selectors, services
from apps.quotas.api.claims import ReclaimPreviewQuery, ReclaimPreviewSerializer
from apps.quotas.models import Queue, QueueChange
from apps.quotas.selectors.queue_trees import (
    current_tree_fingerprint,
    queue_statuses_by_queue,
    queue_tree_documents,
    visible_change_differences,
    visible_change_documents,
)
from apps.quotas.selectors.queues import queue_visibility_of, queues_active
from apps.quotas.selectors.scheduling_cycles import current_scheduling_policy
from apps.quotas.selectors.simulations import ReclaimRequest, reclaim_preview
from apps.quotas.services import TreeAction, TreeEdit
from controlplane.domain.common.permissions import Scope
from controlplane.domain.common.reasons import NONE, Reason
from controlplane.domain.quotas.queue_documents import (
    PLAIN_FIELDS,
    QUEUE_FIELDS,
    DifferenceKind,
    QueueDocument,
    queue_document_to_json,
    queue_tree_fingerprint,
    single_queue_edit,
)
from controlplane.domain.quotas.queue_fields import QueueField
from controlplane.domain.quotas.queues import QUOTA_FIELDS, ChipQuota
from controlplane.ports import adapter_registry
from controlplane.web.reasons import ReasonSerializerField
from controlplane.web.references import ReferenceNaming, reason_error, register_reference_naming
from controlplane.web.rest import (
    CollectionViewSet,
    EnumField,
    ObjectReference,
    QuerySerializer,
    StrictSerializer,
    TextListField,
    VisibleUidField,
)

_EMPTY_CHIP = "Empty: all chips together."


class QueueValueSerializerField(serializers.Field[Any, Any, Any, Any]):
    """A declared field; its limits, messages and description are those of the declaration."""

    def __init__(self, declared: QueueField, **options: Any) -> None:
        super().__init__(
            help_text=declared.help,
            allow_null=declared.optional,
            error_messages={"null": declared.error(None) or ""},
            **options,
        )
        self.declared = declared
        set_override(self, "field", _queue_field_json_schema(declared))

    def to_internal_value(self, data: Any) -> Any:
        if message := self.declared.error(data):
            raise serializers.ValidationError([message])
        return self.declared.from_json(data)

    def to_representation(self, value: Any) -> Any:
        return self.declared.to_json(value)


def _queue_field_json_schema(declared: QueueField) -> dict[str, Any]:
    if declared.choices:
        return {"type": "string", "enum": list(declared.choices)}
    if declared.value_type is str:
        pattern = {"pattern": f"^{declared.pattern}$"} if declared.pattern else {}
        return {"type": "string", "maxLength": declared.longest, **pattern}
    if declared.value_type is bool:
        return {"type": "boolean"}
    limits = {"minimum": declared.least, "maximum": declared.most}
    if declared.value_type is int:
        return {"type": "integer", **limits}
    return {
        "type": "number",
        "format": "double",
        **limits,
        "exclusiveMinimum": declared.above_least,
    }


def _queue_response_fields() -> dict[str, QueueValueSerializerField]:
    """Fields of a queue in responses, without its references."""
    return {name: QueueValueSerializerField(each) for name, each in PLAIN_FIELDS.items()}


class ChipQuotaSerializer(serializers.Serializer[Any]):
    """Reserved and guaranteed cards, and the cap."""

    def get_fields(self) -> dict[str, Any]:
        declared = {name: QueueValueSerializerField(each) for name, each in QUOTA_FIELDS.items()}
        return {**declared, **super().get_fields()}


class QueueCardsSerializer(ChipQuotaSerializer):
    """Cards of one chip."""

    chip = serializers.CharField(help_text=_EMPTY_CHIP)
    used = serializers.IntegerField(help_text="Cards in use in this queue and below.")
    borrowed = serializers.IntegerField(help_text="Cards in use above the guaranteed quota.")
    lent = serializers.IntegerField(help_text="Guaranteed cards that are in use by other queues.")


class EntitlementSerializer(StrictSerializer[Any]):
    chip = serializers.CharField(allow_blank=True, max_length=60, help_text=_EMPTY_CHIP)

    def get_fields(self) -> dict[str, Any]:
        declared = {
            name: QueueValueSerializerField(each, default=each.default)
            for name, each in QUOTA_FIELDS.items()
        }
        return {**super().get_fields(), **declared}


class QueueSerializer(serializers.ModelSerializer[Queue]):
    parent = ObjectReference(allow_null=True, help_text=QUEUE_FIELDS["parent"].help)
    team = ObjectReference(allow_null=True, help_text=QUEUE_FIELDS["team"].help)
    entitlements = EntitlementSerializer(many=True, help_text="Quotas set on this queue.")
    cards = serializers.SerializerMethodField()
    waiting = serializers.IntegerField(help_text="Pending claims.")
    running = serializers.IntegerField(help_text="Running claims.")

    class Meta:
        model = Queue
        fields = ("uid", *QUEUE_FIELDS, "entitlements", "cards", "waiting", "running")

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), **_queue_response_fields()}

    @extend_schema_field(QueueCardsSerializer(many=True))
    def get_cards(self, queue: Queue) -> list[dict[str, Any]]:
        shown = (*QUOTA_FIELDS, "used", "borrowed", "lent")
        return [
            {"chip": chip, **{name: getattr(one, name) for name in shown}}
            for chip, one in self.context["standings"].get(queue.uid, ())
        ]


class QueueWriteSerializer(StrictSerializer[Any]):
    """What is left out has its default where a queue is made, and stays where one is changed."""

    entitlements = serializers.ListField(
        child=EntitlementSerializer(),
        required=False,
        max_length=200,
        help_text="Quotas; replaces all quotas of this queue.",
    )
    note = serializers.CharField(
        required=False, allow_blank=True, max_length=500, help_text="Reason, stored in the history."
    )

    def get_fields(self) -> dict[str, Any]:
        rows = {"parent": selectors.queues_visible, "team": accounts.teams_visible}
        declared = {
            name: VisibleUidField(
                visible=rows[name],
                required=each.required,
                allow_null=True,
                help_text=f"Name or uid; null: none. {each.help}",
            )
            if each.reference
            else QueueValueSerializerField(each, required=each.required)
            for name, each in QUEUE_FIELDS.items()
        }
        return {**declared, **super().get_fields()}

    def validate_entitlements(self, given: list[Mapping[str, Any]]) -> dict[str, ChipQuota]:
        stated: dict[str, ChipQuota] = {}
        for one in given:
            amounts = dict(one)
            chip = amounts.pop("chip")
            if chip in stated:
                raise serializers.ValidationError(
                    [f"{chip or 'all chips together'} is there twice"]
                )
            stated[chip] = ChipQuota(**amounts)
        return stated

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "parent" in attrs:
            attrs["parent"] = attrs["parent"].uid if attrs["parent"] else ""
        if "team" in attrs:
            attrs["team"] = attrs["team"].slug if attrs["team"] else ""
        return attrs


class QueueDryRunQuery(QuerySerializer):
    dry_run = serializers.BooleanField(
        default=False, help_text="Return the preview without changes."
    )


class QueueRetireQuery(QueueDryRunQuery):
    note = serializers.CharField(
        required=False, max_length=500, help_text="Note, stored in the history."
    )


class QueueFindingSerializer(serializers.Serializer[Any]):
    field = serializers.CharField(
        help_text="Name of the queue; empty if it concerns several queues."
    )
    message = serializers.CharField()


class QueueDifferenceSerializer(serializers.Serializer[Any]):
    kind = EnumField(DifferenceKind)
    uid = serializers.CharField(help_text="Uid of the queue; new:<name> for a new queue.")
    queue = serializers.CharField()
    field = serializers.CharField(
        help_text="Changed field; empty if the queue was created or retired."
    )
    chip = serializers.CharField(help_text=_EMPTY_CHIP)
    before = serializers.CharField()
    after = serializers.CharField()
    message = serializers.CharField()


class QueueGainSerializer(serializers.Serializer[Any]):
    uid = serializers.CharField()
    queue = serializers.CharField()
    chip = serializers.CharField(help_text=_EMPTY_CHIP)
    guaranteed_before = serializers.IntegerField()
    guaranteed_after = serializers.IntegerField()
    cap_before = serializers.IntegerField(allow_null=True)
    cap_after = serializers.IntegerField(allow_null=True)
    cards_now = serializers.IntegerField(
        help_text="Additional cards that pending claims of the queue would get now."
    )
    starting = TextListField(help_text="Uids of additional claims that would start.")


class QueueChangeEvictionSerializer(serializers.Serializer[Any]):
    uid = serializers.CharField(source="claim", help_text="Uid of the claim that would be evicted.")
    queue = serializers.CharField()
    team = serializers.CharField(source="work.team")
    work_name = serializers.CharField(
        source="work.name", help_text="Empty if it is not visible to you."
    )
    chip = serializers.CharField()
    cards = serializers.IntegerField()
    lost_seconds = serializers.IntegerField(help_text="Seconds of progress that would be lost.")
    beneficiary = serializers.CharField(help_text="Uid of the claim that gets its cards.")
    reason = ReasonSerializerField()


class QueueTreePreviewSerializer(serializers.Serializer[Any]):
    """What saving a change would mean now."""

    differences = QueueDifferenceSerializer(many=True)
    findings = QueueFindingSerializer(many=True, help_text="Errors.")
    warnings = QueueFindingSerializer(many=True, help_text="Warnings.")
    gains = QueueGainSerializer(many=True)
    reclaims = QueueChangeEvictionSerializer(many=True)
    fingerprint = serializers.CharField(help_text="Fingerprint of the tree for If-Match.")


class QueueDocumentSerializer(serializers.Serializer[Any]):
    """A queue as it was kept."""

    uid = serializers.CharField()
    team = serializers.CharField(help_text="Slug of the team; empty: all teams.")
    entitlements = serializers.DictField(child=ChipQuotaSerializer(), help_text="Images by chip.")

    def get_fields(self) -> dict[str, Any]:
        """Adds declared fields, and ``parent``, which would clash with ``Field.parent`` as a class attribute."""
        parent = serializers.CharField(help_text="Uid of the parent; empty at the top level.")
        return {**super().get_fields(), **_queue_response_fields(), "parent": parent}


#: By uid.
DocumentsSerializer = serializers.DictField(child=QueueDocumentSerializer(allow_null=True))


class QueueChangeSerializer(serializers.ModelSerializer[QueueChange]):
    actor = serializers.CharField(source="actor_name")
    reverts = serializers.CharField(source="reverts.uid", default=None, allow_null=True)
    differences = serializers.SerializerMethodField()
    before = serializers.SerializerMethodField(
        help_text="Changed queues before the change, by uid."
    )
    after = serializers.SerializerMethodField(
        help_text="Changed queues after the change, by uid; null if retired."
    )

    class Meta:
        model = QueueChange
        fields = (
            "uid",
            "created_at",
            "actor",
            "action",
            "note",
            "reverts",
            "differences",
            "before",
            "after",
        )

    @extend_schema_field(QueueDifferenceSerializer(many=True))
    def get_differences(self, change: QueueChange) -> list[dict[str, Any]]:
        shown = visible_change_differences(
            change, names=self.context["names"], teams=self.context["teams"]
        )
        return [asdict(difference) for difference in shown]

    @extend_schema_field(DocumentsSerializer)
    def get_before(self, change: QueueChange) -> dict[str, Any]:
        return self._documents(change.before)

    @extend_schema_field(DocumentsSerializer)
    def get_after(self, change: QueueChange) -> dict[str, Any]:
        return self._documents(change.after)

    def _documents(self, stored: dict[str, Any]) -> dict[str, Any]:
        shown = visible_change_documents(stored, teams=self.context["teams"])
        return {
            uid: document and queue_document_to_json(document) for uid, document in shown.items()
        }


class QueueTreeSavedSerializer(serializers.Serializer[Any]):
    change = QueueChangeSerializer(
        allow_null=True, help_text="The change; null if the tree was already in this state."
    )


QueueOrPreviewSerializer = PolymorphicProxySerializer(
    component_name="QueueOrPreview",
    serializers=[QueueSerializer, QueueTreePreviewSerializer],
    resource_type_field_name=None,
)
SavedOrPreviewSerializer = PolymorphicProxySerializer(
    component_name="SavedOrPreview",
    serializers=[QueueTreeSavedSerializer, QueueTreePreviewSerializer],
    resource_type_field_name=None,
)


class QueueChangeRevertSerializer(StrictSerializer[Any]):
    note = serializers.CharField(required=False, allow_blank=True, max_length=500)


def validate_chip_names(chips: list[str]) -> tuple[str, ...]:
    """:raises ValidationError: if there is no such chip."""
    known = adapter_registry.all_chips()
    for chip in chips:
        if chip not in known:
            message = f"unknown chip {chip!r}; known chips: {', '.join(known)}"
            raise serializers.ValidationError([message])
    return tuple(dict.fromkeys(chips))


IF_MATCH = OpenApiParameter(
    name="If-Match",
    type=str,
    location=OpenApiParameter.HEADER,
    description=(
        "The ETag or fingerprint of the queue tree that the change is based on. If the tree has changed "
        "since, the request is refused (412)."
    ),
)


def if_match_tree_fingerprint(request: Request) -> str:
    """The tree fingerprint of the ``If-Match`` header; empty if absent."""
    given = request.headers.get("If-Match", "").strip()
    return "" if given == "*" else given.removeprefix("W/").strip('"')


def etag_header(value: str) -> dict[str, str]:
    return {"ETag": f'"{value}"'}


def queue_change_preview_response(edit: TreeEdit, request: Request) -> Response:
    """A preview of the edit, as far as the requesting user may see it."""
    preview = services.queue_tree_preview(edit, at=timezone.now(), user=acting_user(request))
    return Response(
        QueueTreePreviewSerializer(preview).data, headers=etag_header(preview.fingerprint)
    )


class QueueViewSet(CollectionViewSet[Queue]):
    """Queues of the caller's teams and those for every team, with what each has, borrows and lends."""

    tag = "scheduling"
    summaries = {"list": "Queues", "retrieve": "A queue"}
    token_scope = Scope.ADMIN
    serializer_class = QueueSerializer
    queries = {
        "create": QueueDryRunQuery,
        "partial_update": QueueDryRunQuery,
        "destroy": QueueRetireQuery,
        "reclaim_preview": ReclaimPreviewQuery,
    }
    visible = staticmethod(selectors.queues_visible)

    def get_serializer_context(self) -> dict[str, Any]:
        shown = self.action in ("list", "retrieve")
        standings = {"standings": queue_statuses_by_queue()} if shown else {}
        return {**super().get_serializer_context(), **standings}

    @extend_schema(
        summary="Create a queue",
        parameters=[IF_MATCH],
        request=QueueWriteSerializer,
        responses={200: QueueTreePreviewSerializer, 201: QueueSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(QueueWriteSerializer)
        note = given.pop("note", "")
        document = QueueDocument(uid="", **given)
        edit = single_queue_edit(
            document, saved=None, note=note, seen=if_match_tree_fingerprint(request)
        )
        return self._edit_response(edit, code=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change or move a queue",
        description="Omitted fields are not changed.",
        parameters=[IF_MATCH],
        request=QueueWriteSerializer,
        responses={
            (200, "application/json"): QueueOrPreviewSerializer,
        },
    )
    def partial_update(self, request: Request, uid: str) -> Response:
        document, now = self._queue_document(uid)
        fields = self.validated_body(QueueWriteSerializer, partial=True)
        note = fields.pop("note", "")
        # Fields that the body leaves out have the values that were just read.
        seen = if_match_tree_fingerprint(request) or now
        edit = single_queue_edit(replace(document, **fields), saved=document, note=note, seen=seen)
        return self._edit_response(edit)

    @extend_schema(
        summary="Retire a queue",
        description="Refused while the queue has workloads or child queues. The name cannot be used again.",
        parameters=[IF_MATCH],
        responses={200: QueueTreePreviewSerializer, 204: None},
    )
    def destroy(self, request: Request, uid: str) -> Response:
        self._queue_document(uid)
        edit = TreeEdit(
            queues={uid: None},
            action=TreeAction.RETIRE,
            note=self.query.get("note", ""),
            seen=if_match_tree_fingerprint(request),
        )
        return self._edit_response(edit, code=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Reclaim preview of a queue",
        description="Simulated by the scheduler with a hypothetical claim. Nothing is changed.",
        parameters=[ReclaimPreviewQuery],
        responses=ReclaimPreviewSerializer,
    )
    @action(detail=True, url_path="reclaim-preview")
    def reclaim_preview(self, request: Request, uid: str) -> Response:
        reclaim_request = ReclaimRequest(queue=self.get_object(), **self.query)
        found = reclaim_preview(
            reclaim_request,
            visibility=queue_visibility_of(request.user, queues_active()),
            policy=current_scheduling_policy(),
            at=timezone.now(),
        )
        return Response(ReclaimPreviewSerializer(found).data)

    def _queue_document(self, uid: str) -> tuple[QueueDocument, str]:
        """The document of the requested queue, and the fingerprint of the tree."""
        self.get_object()
        documents = queue_tree_documents()
        if uid not in documents:
            raise Http404
        return documents[uid], queue_tree_fingerprint(documents)

    def _edit_response(self, edit: TreeEdit, *, code: int = status.HTTP_200_OK) -> Response:
        """A preview for a dry run; otherwise apply the edit."""
        if self.query["dry_run"]:
            return queue_change_preview_response(edit, self.request)
        change = services.queue_tree_apply(edit, actor=acting_user(self.request), at=timezone.now())
        headers = etag_header(current_tree_fingerprint())
        if code == status.HTTP_204_NO_CONTENT:
            return Response(status=code, headers=headers)
        (uid,) = change.after
        context = {**self.get_serializer_context(), "standings": queue_statuses_by_queue()}
        queue = selectors.queues_visible(self.request.user).get(uid=uid)
        shown = QueueSerializer(queue, context=context)
        return Response(shown.data, status=code, headers=headers)


DEFAULT_QUEUE = "default"

register_reference_naming(
    Queue, ReferenceNaming(noun=Reason("reference.noun.queue", "queue"), example=DEFAULT_QUEUE)
)


def queue_reference_field() -> VisibleUidField[Queue]:
    """The field of a request body that names a queue; it may be omitted."""
    return VisibleUidField(
        visible=selectors.queues_visible,
        required=False,
        default=DEFAULT_QUEUE,
        help_text="Name or uid of the queue.",
    )


def require_queue_of_team(queue: Queue | str, *, team: Team) -> Queue:
    """The queue, as the team may use it.

    :param queue: what ``queue_reference_field`` gave: a queue, or the default name where none was given.
    :raises ValidationError: for the field ``queue``, if the team may not submit to it.
    """
    usable = {each.name: each for each in selectors.queues_for_team(team)}
    name = queue if isinstance(queue, str) else queue.name
    if name not in usable:
        error = reason_error(
            Reason(
                "reference.queue.not_of_team",
                "the team {team} may not use the queue {queue}; available queues: {queues}",
                team=team.slug,
                queue=name,
                queues=", ".join(usable) or NONE,
            )
        )
        error.detail = {"queue": error.detail}
        raise error
    return usable[name]
