from typing import Literal

ServeSpecRequestPrefixCaching = Literal["auto", "off", "on"]

SERVE_SPEC_REQUEST_PREFIX_CACHING_VALUES: set[ServeSpecRequestPrefixCaching] = {
    "auto",
    "off",
    "on",
}


def check_serve_spec_request_prefix_caching(value: str) -> ServeSpecRequestPrefixCaching:
    if value in SERVE_SPEC_REQUEST_PREFIX_CACHING_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SERVE_SPEC_REQUEST_PREFIX_CACHING_VALUES!r}"
    )
