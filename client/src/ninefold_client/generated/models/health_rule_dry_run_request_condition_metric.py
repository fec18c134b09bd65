from typing import Literal

HealthRuleDryRunRequestConditionMetric = Literal[
    "clock",
    "ecc_corrected",
    "ecc_uncorrected",
    "health",
    "link_errors",
    "memory_temperature",
    "memory_total",
    "memory_used",
    "network_errors",
    "power",
    "temperature",
    "utilization",
]

HEALTH_RULE_DRY_RUN_REQUEST_CONDITION_METRIC_VALUES: set[HealthRuleDryRunRequestConditionMetric] = {
    "clock",
    "ecc_corrected",
    "ecc_uncorrected",
    "health",
    "link_errors",
    "memory_temperature",
    "memory_total",
    "memory_used",
    "network_errors",
    "power",
    "temperature",
    "utilization",
}


def check_health_rule_dry_run_request_condition_metric(
    value: str,
) -> HealthRuleDryRunRequestConditionMetric:
    if value in HEALTH_RULE_DRY_RUN_REQUEST_CONDITION_METRIC_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {HEALTH_RULE_DRY_RUN_REQUEST_CONDITION_METRIC_VALUES!r}"
    )
