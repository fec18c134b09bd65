from typing import Literal

DeployStepSubmitRequestKind = Literal["deploy"]

DEPLOY_STEP_SUBMIT_REQUEST_KIND_VALUES: set[DeployStepSubmitRequestKind] = {
    "deploy",
}


def check_deploy_step_submit_request_kind(value: str) -> DeployStepSubmitRequestKind:
    if value in DEPLOY_STEP_SUBMIT_REQUEST_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {DEPLOY_STEP_SUBMIT_REQUEST_KIND_VALUES!r}"
    )
