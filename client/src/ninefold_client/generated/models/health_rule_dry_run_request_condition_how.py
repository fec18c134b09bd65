from typing import Literal

HealthRuleDryRunRequestConditionHow = Literal["change", "rate", "value"]

HEALTH_RULE_DRY_RUN_REQUEST_CONDITION_HOW_VALUES: set[HealthRuleDryRunRequestConditionHow] = {
    "change",
    "rate",
    "value",
}


def check_health_rule_dry_run_request_condition_how(
    value: str,
) -> HealthRuleDryRunRequestConditionHow:
    if value in HEALTH_RULE_DRY_RUN_REQUEST_CONDITION_HOW_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {HEALTH_RULE_DRY_RUN_REQUEST_CONDITION_HOW_VALUES!r}"
    )
