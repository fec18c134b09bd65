"""Quantization of models: schemes, formats and the accepted loss of quality."""

from controlplane.domain.quantization.quality import (
    MetricComparison,
    QuantizationVerdict,
    compare_metrics,
)
from controlplane.domain.quantization.schemes import (
    COMPRESSED_TENSORS,
    GROUP_SIZES,
    SCHEMES,
    QuantizationScheme,
    check_group_size,
    check_not_quantized,
    check_weight_format_loadable,
    input_widths,
    is_calibrated,
)

__all__ = [
    "COMPRESSED_TENSORS",
    "GROUP_SIZES",
    "SCHEMES",
    "MetricComparison",
    "QuantizationScheme",
    "QuantizationVerdict",
    "check_group_size",
    "check_not_quantized",
    "check_weight_format_loadable",
    "compare_metrics",
    "input_widths",
    "is_calibrated",
]
