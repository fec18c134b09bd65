"""REST of notifications and of webhooks: serializers, views and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.accounts.api.serializers import TeamOwnedSerializer
from apps.notifications.models import Notification, Webhook, WebhookDelivery, WebhookTry
from apps.notifications.selectors import notifications as inbox
from apps.notifications.selectors import webhooks as selectors
from apps.notifications.selectors.notifications import (
    event_subject_url,
    render_notification,
)
from apps.notifications.selectors.webhooks import SENDABLE, webhooks_visible
from apps.notifications.services import notifications, webhooks
from apps.notifications.services.webhooks import WebhookRefused
from controlplane.domain.alerts.deliveries import DeliveryState
from controlplane.domain.alerts.notifications import NotificationKind
from controlplane.domain.common.permissions import Scope
from controlplane.web.problem_details import register_problem
from controlplane.web.reasons import ReasonSerializerField, reason_as_response_data
from controlplane.web.rest import (
    ListFilters,
    M,
    ObjectReference,
    ResourceViewSet,
    StrictSerializer,
    VisibleUidField,
    supports_dry_run,
)


class NotificationSerializer(serializers.ModelSerializer[Notification]):
    team = ObjectReference(source="event.team", allow_null=True)
    subject = serializers.SerializerMethodField(help_text="Kind, uid and name of the object.")
    title = serializers.SerializerMethodField(help_text="Title.")
    reason = serializers.SerializerMethodField(help_text="Reason; may be empty.")
    link = serializers.SerializerMethodField(help_text="Path of the page of the object.")

    class Meta:
        model = Notification
        fields = (
            "uid",
            "kind",
            "severity",
            "title",
            "reason",
            "subject",
            "team",
            "link",
            "count",
            "first_at",
            "at",
            "read_at",
        )

    def get_subject(self, row: Notification) -> dict[str, str]:
        event = row.event
        return {
            "kind": event.subject_kind,
            "uid": event.subject_uid,
            "name": event.subject_name,
        }

    def get_title(self, row: Notification) -> str:
        return render_notification(row.event).title

    @extend_schema_field(ReasonSerializerField)
    def get_reason(self, row: Notification) -> dict[str, Any]:
        return reason_as_response_data(row.event.reason)

    def get_link(self, row: Notification) -> str:
        return event_subject_url(row.event)


class NotificationFilters(ListFilters):
    kind = serializers.ChoiceField(choices=[*NotificationKind], required=False)
    unread = serializers.BooleanField(required=False, help_text="Return only unread notifications.")
    lookups = {"kind": "kind"}

    @classmethod
    def apply(cls, rows: QuerySet[M, Any], given: Mapping[str, Any]) -> QuerySet[M, Any]:
        rows = super().apply(rows, given)
        return rows.filter(read_at__isnull=given["unread"]) if "unread" in given else rows


class MarkedReadCountSerializer(serializers.Serializer[Any]):
    marked = serializers.IntegerField(help_text="Number of notifications that were unread.")


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    team = ObjectReference()
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    kinds = serializers.ListField(child=serializers.ChoiceField(choices=SENDABLE))

    class Meta:
        model = Webhook
        fields: tuple[str, ...] = (
            "uid",
            "name",
            "team",
            "url",
            "kinds",
            "active",
            "error",
            "created_by",
            "created_at",
            "tried_at",
            "last_status",
            "last_error",
        )


class WebhookWithSecretSerializer(WebhookSerializer):
    secret = serializers.CharField(
        help_text="Secret that signs each request, shown only in this response."
    )

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")


class WebhookWithNewSecretSerializer(WebhookSerializer):
    secret = serializers.CharField(
        help_text="New secret if scheme, host or port of the URL changed, shown only in this "
        "response; else empty."
    )

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")


class WebhookCreateSerializer(TeamOwnedSerializer):
    name = serializers.CharField(max_length=80)
    url = serializers.CharField(max_length=2000)
    kinds = serializers.ListField(child=serializers.ChoiceField(choices=SENDABLE), min_length=1)
    active = serializers.BooleanField(required=False, help_text="False: paused. Default: true.")


class WebhookChangeSerializer(StrictSerializer[Any]):
    url = serializers.CharField(max_length=2000, required=False)
    kinds = serializers.ListField(
        child=serializers.ChoiceField(choices=SENDABLE), min_length=1, required=False
    )
    active = serializers.BooleanField(required=False, help_text="False: paused.")


class WebhookTrySerializer(serializers.ModelSerializer[WebhookTry]):
    class Meta:
        model = WebhookTry
        fields = ("at", "status", "seconds", "error", "answer")


class WebhookDeliveryFilters(ListFilters):
    webhook = VisibleUidField(
        visible=webhooks_visible, required=False, help_text="Uid of the object."
    )
    state = serializers.ChoiceField(choices=[*DeliveryState], required=False)
    lookups = {"webhook": "webhook", "state": "state"}


class WebhookDeliverySerializer(serializers.ModelSerializer[WebhookDelivery]):
    webhook = ObjectReference()
    event = serializers.CharField(source="event.uid", help_text="Event id that the receiver gets.")
    kind = serializers.CharField(source="event.kind")
    tries = WebhookTrySerializer(source="history", many=True, help_text="Newest first.")

    class Meta:
        model = WebhookDelivery
        fields = (
            "uid",
            "webhook",
            "event",
            "kind",
            "state",
            "created_at",
            "next_try_at",
            "ended_at",
            "tries",
        )


@extend_schema_view(
    list=extend_schema(
        summary="My notifications",
        tags=["notifications"],
        parameters=[NotificationFilters],
    ),
    retrieve=extend_schema(summary="A notification", tags=["notifications"]),
)
class NotificationViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Notification]
):
    """The caller's own."""

    token_scope = Scope.ALL
    queries = {"list": NotificationFilters}
    serializer_class = NotificationSerializer

    def get_queryset(self) -> QuerySet[Notification]:
        return inbox.notifications_of_user(self.request.user)

    @extend_schema(
        summary="Mark a notification as read",
        tags=["notifications"],
        request=None,
        responses=NotificationSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def read(self, request: Request, uid: str) -> Response:
        row = self.get_object()
        user = acting_user(request)
        notifications.notifications_mark_read(user=user, uids=[row.uid], at=timezone.now())
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="Mark all of my notifications as read",
        tags=["notifications"],
        request=None,
        responses=MarkedReadCountSerializer,
    )
    @idempotent
    @action(detail=False, methods=["post"], url_path="read-all")
    def read_all(self, request: Request) -> Response:
        user = acting_user(request)
        marked = notifications.notifications_mark_read(user=user, uids=None, at=timezone.now())
        return Response({"marked": marked})


@extend_schema_view(
    list=extend_schema(summary="Webhooks of my teams", tags=["notifications"]),
    retrieve=extend_schema(summary="A webhook", tags=["notifications"]),
)
class WebhookViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Webhook]):
    """Those of teams that the caller may manage."""

    token_scope = Scope.ADMIN
    serializer_class = WebhookSerializer

    def get_queryset(self) -> QuerySet[Webhook]:
        return selectors.webhooks_visible(self.request.user)

    @extend_schema(
        summary="Create a webhook",
        description="The URL is called for each event of the selected kinds. The secret is shown "
        "only in this response.",
        tags=["notifications"],
        request=WebhookCreateSerializer,
        responses={201: WebhookWithSecretSerializer},
    )
    @supports_dry_run
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.validated_body(WebhookCreateSerializer)
        webhook, secret = webhooks.webhook_create(actor=acting_user(request), **given)
        body = {**self.get_serializer(webhook).data, "secret": secret}
        return Response(body, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change, pause or resume a webhook",
        description="If scheme, host or port of the URL change, a new secret is created and shown "
        "only in this response.",
        tags=["notifications"],
        request=WebhookChangeSerializer,
        responses=WebhookWithNewSecretSerializer,
    )
    @supports_dry_run
    def partial_update(self, request: Request, uid: str) -> Response:
        webhook, actor = self.get_object(), acting_user(request)
        given = self.validated_body(WebhookChangeSerializer)
        active = given.pop("active", None)
        secret = webhooks.webhook_change(webhook=webhook, actor=actor, active=active, **given)
        return Response({**self.get_serializer(webhook).data, "secret": secret})

    @extend_schema(summary="Delete a webhook", tags=["notifications"], responses={204: None})
    @supports_dry_run
    def destroy(self, request: Request, uid: str) -> Response:
        webhooks.webhook_delete(webhook=self.get_object(), actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Rotate the secret of a webhook",
        tags=["notifications"],
        request=None,
        responses=WebhookWithSecretSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def rotate(self, request: Request, uid: str) -> Response:
        webhook = self.get_object()
        secret = webhooks.webhook_secret_rotate(webhook=webhook, actor=acting_user(request))
        return Response({**self.get_serializer(webhook).data, "secret": secret})

    @extend_schema(
        summary="Send a test event to a webhook",
        description="The result is shown by the delivery.",
        tags=["notifications"],
        request=None,
        responses={202: WebhookDeliverySerializer},
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def test(self, request: Request, uid: str) -> Response:
        delivery = webhooks.webhook_test(
            webhook=self.get_object(), actor=acting_user(request), at=timezone.now()
        )
        body = WebhookDeliverySerializer(delivery).data
        return Response(body, status=status.HTTP_202_ACCEPTED)


@extend_schema_view(
    list=extend_schema(
        summary="Webhook deliveries",
        tags=["notifications"],
        parameters=[WebhookDeliveryFilters],
    ),
    retrieve=extend_schema(
        summary="Get a webhook delivery with all attempts", tags=["notifications"]
    ),
)
class WebhookDeliveryViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[WebhookDelivery]
):
    """To webhooks of teams that the caller may manage."""

    token_scope = Scope.ADMIN
    queries = {"list": WebhookDeliveryFilters}
    serializer_class = WebhookDeliverySerializer

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        return selectors.webhook_deliveries_visible(self.request.user)

    @extend_schema(
        summary="Send a delivery again",
        description="The id and the content are unchanged.",
        tags=["notifications"],
        request=None,
        responses={202: WebhookDeliverySerializer},
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def again(self, request: Request, uid: str) -> Response:
        actor = acting_user(request)
        webhooks.webhook_delivery_retry(delivery=self.get_object(), actor=actor, at=timezone.now())
        body = self.get_serializer(self.get_object()).data
        return Response(body, status=status.HTTP_202_ACCEPTED)


register_problem(WebhookRefused, code="webhook-refused")


router = SimpleRouter(trailing_slash=False)
router.register("notifications", NotificationViewSet, basename="api-notification")
router.register("webhooks", WebhookViewSet, basename="api-webhook")
router.register("deliveries", WebhookDeliveryViewSet, basename="api-delivery")

urlpatterns = router.urls
