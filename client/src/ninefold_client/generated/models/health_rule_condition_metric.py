from typing import Literal

HealthRuleConditionMetric = Literal[
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

HEALTH_RULE_CONDITION_METRIC_VALUES: set[HealthRuleConditionMetric] = {
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


def check_health_rule_condition_metric(value: str) -> HealthRuleConditionMetric:
    if value in HEALTH_RULE_CONDITION_METRIC_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {HEALTH_RULE_CONDITION_METRIC_VALUES!r}"
    )
