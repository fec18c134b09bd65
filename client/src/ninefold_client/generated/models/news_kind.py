from typing import Literal

NewsKind = Literal[
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

NEWS_KIND_VALUES: set[NewsKind] = {
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


def check_news_kind(value: str) -> NewsKind:
    if value in NEWS_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {NEWS_KIND_VALUES!r}")
