from typing import Literal

KindsEnum = Literal[
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
]

KINDS_ENUM_VALUES: set[KindsEnum] = {
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
}


def check_kinds_enum(value: str) -> KindsEnum:
    if value in KINDS_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {KINDS_ENUM_VALUES!r}")
