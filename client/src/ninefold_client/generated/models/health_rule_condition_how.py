from typing import Literal

HealthRuleConditionHow = Literal["change", "rate", "value"]

HEALTH_RULE_CONDITION_HOW_VALUES: set[HealthRuleConditionHow] = {
    "change",
    "rate",
    "value",
}


def check_health_rule_condition_how(value: str) -> HealthRuleConditionHow:
    if value in HEALTH_RULE_CONDITION_HOW_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {HEALTH_RULE_CONDITION_HOW_VALUES!r}"
    )
