from typing import Literal

HealthRuleCreateRequestConditionHow = Literal["change", "rate", "value"]

HEALTH_RULE_CREATE_REQUEST_CONDITION_HOW_VALUES: set[HealthRuleCreateRequestConditionHow] = {
    "change",
    "rate",
    "value",
}


def check_health_rule_create_request_condition_how(
    value: str,
) -> HealthRuleCreateRequestConditionHow:
    if value in HEALTH_RULE_CREATE_REQUEST_CONDITION_HOW_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {HEALTH_RULE_CREATE_REQUEST_CONDITION_HOW_VALUES!r}"
    )
