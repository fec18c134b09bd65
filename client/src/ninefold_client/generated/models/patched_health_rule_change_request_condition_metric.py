from typing import Literal

PatchedHealthRuleChangeRequestConditionMetric = Literal[
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

PATCHED_HEALTH_RULE_CHANGE_REQUEST_CONDITION_METRIC_VALUES: set[
    PatchedHealthRuleChangeRequestConditionMetric
] = {
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


def check_patched_health_rule_change_request_condition_metric(
    value: str,
) -> PatchedHealthRuleChangeRequestConditionMetric:
    if value in PATCHED_HEALTH_RULE_CHANGE_REQUEST_CONDITION_METRIC_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {PATCHED_HEALTH_RULE_CHANGE_REQUEST_CONDITION_METRIC_VALUES!r}"
    )
