from typing import Literal

EvaluateSpecRequestMetricsItem = Literal["exact_match", "label_accuracy", "perplexity"]

EVALUATE_SPEC_REQUEST_METRICS_ITEM_VALUES: set[EvaluateSpecRequestMetricsItem] = {
    "exact_match",
    "label_accuracy",
    "perplexity",
}


def check_evaluate_spec_request_metrics_item(value: str) -> EvaluateSpecRequestMetricsItem:
    if value in EVALUATE_SPEC_REQUEST_METRICS_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {EVALUATE_SPEC_REQUEST_METRICS_ITEM_VALUES!r}"
    )
