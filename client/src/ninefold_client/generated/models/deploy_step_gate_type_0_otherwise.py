from typing import Literal

DeployStepGateType0Otherwise = Literal["skip", "stop"]

DEPLOY_STEP_GATE_TYPE_0_OTHERWISE_VALUES: set[DeployStepGateType0Otherwise] = {
    "skip",
    "stop",
}


def check_deploy_step_gate_type_0_otherwise(value: str) -> DeployStepGateType0Otherwise:
    if value in DEPLOY_STEP_GATE_TYPE_0_OTHERWISE_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {DEPLOY_STEP_GATE_TYPE_0_OTHERWISE_VALUES!r}"
    )
