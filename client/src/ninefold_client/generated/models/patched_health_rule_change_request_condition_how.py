from typing import Literal

PatchedHealthRuleChangeRequestConditionHow = Literal["change", "rate", "value"]

PATCHED_HEALTH_RULE_CHANGE_REQUEST_CONDITION_HOW_VALUES: set[
    PatchedHealthRuleChangeRequestConditionHow
] = {
    "change",
    "rate",
    "value",
}


def check_patched_health_rule_change_request_condition_how(
    value: str,
) -> PatchedHealthRuleChangeRequestConditionHow:
    if value in PATCHED_HEALTH_RULE_CHANGE_REQUEST_CONDITION_HOW_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {PATCHED_HEALTH_RULE_CHANGE_REQUEST_CONDITION_HOW_VALUES!r}"
    )
