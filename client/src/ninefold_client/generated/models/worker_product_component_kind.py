from typing import Literal

WorkerProductComponentKind = Literal["worker"]

WORKER_PRODUCT_COMPONENT_KIND_VALUES: set[WorkerProductComponentKind] = {
    "worker",
}


def check_worker_product_component_kind(value: str) -> WorkerProductComponentKind:
    if value in WORKER_PRODUCT_COMPONENT_KIND_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {WORKER_PRODUCT_COMPONENT_KIND_VALUES!r}"
    )
