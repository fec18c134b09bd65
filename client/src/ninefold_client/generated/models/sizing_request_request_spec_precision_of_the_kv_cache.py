from typing import Literal

SizingRequestRequestSpecPrecisionOfTheKVCache = Literal["auto", "fp8"]

SIZING_REQUEST_REQUEST_SPEC_PRECISION_OF_THE_KV_CACHE_VALUES: set[
    SizingRequestRequestSpecPrecisionOfTheKVCache
] = {
    "auto",
    "fp8",
}


def check_sizing_request_request_spec_precision_of_the_kv_cache(
    value: str,
) -> SizingRequestRequestSpecPrecisionOfTheKVCache:
    if value in SIZING_REQUEST_REQUEST_SPEC_PRECISION_OF_THE_KV_CACHE_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SIZING_REQUEST_REQUEST_SPEC_PRECISION_OF_THE_KV_CACHE_VALUES!r}"
    )
