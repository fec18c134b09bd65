from typing import Literal

QuantizeSpecRequestMetricsItem = Literal["exact_match", "label_accuracy", "perplexity"]

QUANTIZE_SPEC_REQUEST_METRICS_ITEM_VALUES: set[QuantizeSpecRequestMetricsItem] = {
    "exact_match",
    "label_accuracy",
    "perplexity",
}


def check_quantize_spec_request_metrics_item(value: str) -> QuantizeSpecRequestMetricsItem:
    if value in QUANTIZE_SPEC_REQUEST_METRICS_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {QUANTIZE_SPEC_REQUEST_METRICS_ITEM_VALUES!r}"
    )
