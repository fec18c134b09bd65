from typing import Literal

DeployStepKind = Literal["deploy"]

DEPLOY_STEP_KIND_VALUES: set[DeployStepKind] = {
    "deploy",
}


def check_deploy_step_kind(value: str) -> DeployStepKind:
    if value in DEPLOY_STEP_KIND_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DEPLOY_STEP_KIND_VALUES!r}")
