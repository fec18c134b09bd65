from typing import Literal

PullPolicyEnum = Literal["Always", "IfNotPresent", "Never"]

PULL_POLICY_ENUM_VALUES: set[PullPolicyEnum] = {
    "Always",
    "IfNotPresent",
    "Never",
}


def check_pull_policy_enum(value: str) -> PullPolicyEnum:
    if value in PULL_POLICY_ENUM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PULL_POLICY_ENUM_VALUES!r}")
