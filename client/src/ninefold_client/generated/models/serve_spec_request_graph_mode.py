from typing import Literal

ServeSpecRequestGraphMode = Literal["auto", "off", "on"]

SERVE_SPEC_REQUEST_GRAPH_MODE_VALUES: set[ServeSpecRequestGraphMode] = {
    "auto",
    "off",
    "on",
}


def check_serve_spec_request_graph_mode(value: str) -> ServeSpecRequestGraphMode:
    if value in SERVE_SPEC_REQUEST_GRAPH_MODE_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SERVE_SPEC_REQUEST_GRAPH_MODE_VALUES!r}"
    )
