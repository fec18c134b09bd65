from __future__ import annotations

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api.authentication import acting_user
from apps.accounts.api.idempotency import idempotent
from apps.monitoring.api import serializers
from apps.monitoring.models import Notification, Webhook, WebhookDelivery
from apps.monitoring.selectors import notifications as told
from apps.monitoring.selectors import webhooks as selectors
from apps.monitoring.services import notifications, webhooks
from controlplane.domain.common.permissions import Scope
from controlplane.web.rest import ResourceViewSet


@extend_schema_view(
    list=extend_schema(
        summary="What I was told",
        tags=["notifications"],
        parameters=[serializers.NotificationFilters],
    ),
    retrieve=extend_schema(summary="A notification", tags=["notifications"]),
)
class NotificationViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Notification]
):
    """The caller's own."""

    token_scope = Scope.ALL
    queries = {"list": serializers.NotificationFilters}
    serializer_class = serializers.NotificationSerializer

    def get_queryset(self) -> QuerySet[Notification]:
        return told.notifications_of(self.request.user)

    @extend_schema(
        summary="Mark a notification as read",
        tags=["notifications"],
        request=None,
        responses=serializers.NotificationSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def read(self, request: Request, uid: str) -> Response:
        row = self.get_object()
        user = acting_user(request)
        notifications.notifications_read(user=user, uids=[row.uid], at=timezone.now())
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="Mark all of my notifications as read",
        tags=["notifications"],
        request=None,
        responses=serializers.MarkedSerializer,
    )
    @idempotent
    @action(detail=False, methods=["post"], url_path="read-all")
    def read_all(self, request: Request) -> Response:
        user = acting_user(request)
        marked = notifications.notifications_read(user=user, uids=None, at=timezone.now())
        return Response({"marked": marked})


@extend_schema_view(
    list=extend_schema(summary="Webhooks of my teams", tags=["notifications"]),
    retrieve=extend_schema(summary="A webhook", tags=["notifications"]),
)
class WebhookViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[Webhook]):
    """Those of teams that the caller may manage."""

    token_scope = Scope.ADMIN
    serializer_class = serializers.WebhookSerializer

    def get_queryset(self) -> QuerySet[Webhook]:
        return selectors.webhooks_visible(self.request.user)

    @extend_schema(
        summary="Make a webhook",
        description="Its address is called with each event of those kinds. The secret is in this answer "
        "and nowhere else.",
        tags=["notifications"],
        request=serializers.WebhookCreateSerializer,
        responses={201: serializers.WebhookWithSecretSerializer},
    )
    @idempotent
    def create(self, request: Request) -> Response:
        given = self.checked(serializers.WebhookCreateSerializer)
        webhook, secret = webhooks.webhook_create(actor=acting_user(request), **given)
        body = {**self.get_serializer(webhook).data, "secret": secret}
        return Response(body, status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change, pause or resume a webhook",
        description="A URL with another scheme, host or port gets a new secret, which is in this answer and "
        "nowhere else.",
        tags=["notifications"],
        request=serializers.WebhookChangeSerializer,
        responses=serializers.WebhookChangedSerializer,
    )
    def partial_update(self, request: Request, uid: str) -> Response:
        webhook, actor = self.get_object(), acting_user(request)
        given = self.checked(serializers.WebhookChangeSerializer)
        active = given.pop("active", None)
        secret = webhooks.webhook_change(webhook=webhook, actor=actor, active=active, **given)
        return Response({**self.get_serializer(webhook).data, "secret": secret})

    @extend_schema(summary="Delete a webhook", tags=["notifications"], responses={204: None})
    def destroy(self, request: Request, uid: str) -> Response:
        webhooks.webhook_delete(webhook=self.get_object(), actor=acting_user(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Give a webhook a new secret",
        tags=["notifications"],
        request=None,
        responses=serializers.WebhookWithSecretSerializer,
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def rotate(self, request: Request, uid: str) -> Response:
        webhook = self.get_object()
        secret = webhooks.webhook_rotate(webhook=webhook, actor=acting_user(request))
        return Response({**self.get_serializer(webhook).data, "secret": secret})

    @extend_schema(
        summary="Send a test to a webhook",
        description="Look at the delivery to see how it went.",
        tags=["notifications"],
        request=None,
        responses={202: serializers.DeliverySerializer},
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def test(self, request: Request, uid: str) -> Response:
        delivery = webhooks.webhook_test(
            webhook=self.get_object(), actor=acting_user(request), at=timezone.now()
        )
        body = serializers.DeliverySerializer(delivery).data
        return Response(body, status=status.HTTP_202_ACCEPTED)


@extend_schema_view(
    list=extend_schema(
        summary="What was sent to webhooks",
        tags=["notifications"],
        parameters=[serializers.DeliveryFilters],
    ),
    retrieve=extend_schema(
        summary="A delivery to a webhook, with every try", tags=["notifications"]
    ),
)
class DeliveryViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, ResourceViewSet[WebhookDelivery]
):
    """To webhooks of teams that the caller may manage."""

    token_scope = Scope.ADMIN
    queries = {"list": serializers.DeliveryFilters}
    serializer_class = serializers.DeliverySerializer

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        return selectors.deliveries_visible(self.request.user)

    @extend_schema(
        summary="Send a delivery again",
        description="With the same id and the same content.",
        tags=["notifications"],
        request=None,
        responses={202: serializers.DeliverySerializer},
    )
    @idempotent
    @action(detail=True, methods=["post"])
    def again(self, request: Request, uid: str) -> Response:
        actor = acting_user(request)
        webhooks.delivery_again(delivery=self.get_object(), actor=actor, at=timezone.now())
        body = self.get_serializer(self.get_object()).data
        return Response(body, status=status.HTTP_202_ACCEPTED)
