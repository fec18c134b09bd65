from typing import Literal

ServeSpecRequestKVCachePrecision = Literal["auto", "fp8"]

SERVE_SPEC_REQUEST_KV_CACHE_PRECISION_VALUES: set[ServeSpecRequestKVCachePrecision] = {
    "auto",
    "fp8",
}


def check_serve_spec_request_kv_cache_precision(value: str) -> ServeSpecRequestKVCachePrecision:
    if value in SERVE_SPEC_REQUEST_KV_CACHE_PRECISION_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SERVE_SPEC_REQUEST_KV_CACHE_PRECISION_VALUES!r}"
    )
