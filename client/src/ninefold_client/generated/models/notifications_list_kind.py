from typing import Literal

NotificationsListKind = Literal[
    "card.isolated",
    "card.returned",
    "card.unproved",
    "deployment.degraded",
    "deployment.ready",
    "deployment.recovered",
    "health.held_back",
    "job.cancelled",
    "job.failed",
    "job.succeeded",
    "model.imported",
    "model.refused",
    "pipeline.cancelled",
    "pipeline.failed",
    "pipeline.held",
    "pipeline.succeeded",
    "test",
    "webhook.disabled",
    "webhook.given_up",
]

NOTIFICATIONS_LIST_KIND_VALUES: set[NotificationsListKind] = {
    "card.isolated",
    "card.returned",
    "card.unproved",
    "deployment.degraded",
    "deployment.ready",
    "deployment.recovered",
    "health.held_back",
    "job.cancelled",
    "job.failed",
    "job.succeeded",
    "model.imported",
    "model.refused",
    "pipeline.cancelled",
    "pipeline.failed",
    "pipeline.held",
    "pipeline.succeeded",
    "test",
    "webhook.disabled",
    "webhook.given_up",
}


def check_notifications_list_kind(value: str) -> NotificationsListKind:
    if value in NOTIFICATIONS_LIST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {NOTIFICATIONS_LIST_KIND_VALUES!r}"
    )
