from typing import Literal

MeasureEnum = Literal[
    "cards.clock",
    "cards.ecc_corrected",
    "cards.ecc_uncorrected",
    "cards.health",
    "cards.link_errors",
    "cards.memory_temperature",
    "cards.memory_total",
    "cards.memory_used",
    "cards.network_errors",
    "cards.power",
    "cards.temperature",
    "cards.utilization",
    "clusters.silence",
    "controllers.lag",
    "controllers.unhealthy",
    "decisions.held_back",
    "deployments.failure_share",
    "faults.level",
    "fleet.isolated_share",
    "fleet.unknown_share",
    "product.disk_free",
    "product.outbox_age",
    "queues.wait",
    "queues.waiting",
    "sources.silence",
]

MEASURE_ENUM_VALUES: set[MeasureEnum] = {
    "cards.clock",
    "cards.ecc_corrected",
    "cards.ecc_uncorrected",
    "cards.health",
    "cards.link_errors",
    "cards.memory_temperature",
    "cards.memory_total",
    "cards.memory_used",
    "cards.network_errors",
    "cards.power",
    "cards.temperature",
    "cards.utilization",
    "clusters.silence",
    "controllers.lag",
    "controllers.unhealthy",
    "decisions.held_back",
    "deployments.failure_share",
    "faults.level",
    "fleet.isolated_share",
    "fleet.unknown_share",
    "product.disk_free",
    "product.outbox_age",
    "queues.wait",
    "queues.waiting",
    "sources.silence",
}


def check_measure_enum(value: str) -> MeasureEnum:
    if value in MEASURE_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MEASURE_ENUM_VALUES!r}")
