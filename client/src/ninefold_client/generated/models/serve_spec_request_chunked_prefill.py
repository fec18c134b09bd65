from typing import Literal

ServeSpecRequestChunkedPrefill = Literal["auto", "off", "on"]

SERVE_SPEC_REQUEST_CHUNKED_PREFILL_VALUES: set[ServeSpecRequestChunkedPrefill] = {
    "auto",
    "off",
    "on",
}


def check_serve_spec_request_chunked_prefill(value: str) -> ServeSpecRequestChunkedPrefill:
    if value in SERVE_SPEC_REQUEST_CHUNKED_PREFILL_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SERVE_SPEC_REQUEST_CHUNKED_PREFILL_VALUES!r}"
    )
