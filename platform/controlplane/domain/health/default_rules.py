"""Default health rules of an installation.

They are cautious: a metric is a symptom, so no rule has level L6. The source of a threshold is the
vendor, or Ninefold if no vendor publishes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.domain.health.faults import FaultLevel
from controlplane.domain.health.rules import HealthRuleSpec, parse_health_rule

_DOCUMENTS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "hot-chip",
        "title": "High chip temperature",
        "level": FaultLevel.NOTE,
        "source": "Ninefold; replace it with the slowdown temperature that the vendor's tools print",
        "condition": {"metric": "temperature", "op": ">=", "value": 90, "for": "1m"},
    },
    {
        "name": "overheated-chip",
        "title": "Chip overheating",
        "level": FaultLevel.RESET_WHEN_IDLE,
        "source": "Ninefold; 10 °C above the threshold of the note",
        "condition": {"metric": "temperature", "op": ">=", "value": 100, "for": "1m"},
    },
    {
        "name": "hot-memory",
        "title": "High memory temperature",
        "level": FaultLevel.NOTE,
        "source": "Ninefold; replace it with the maximum operating temperature of the memory that the "
        "vendor's tools print",
        "condition": {"metric": "memory_temperature", "op": ">=", "value": 95, "for": "1m"},
    },
    {
        "name": "overheated-memory",
        "title": "Memory overheating",
        "level": FaultLevel.RESET_WHEN_IDLE,
        "source": "Ninefold; 10 °C above the threshold of the note",
        "condition": {"metric": "memory_temperature", "op": ">=", "value": 105, "for": "1m"},
    },
    {
        "name": "ecc-uncorrected",
        "title": "Uncorrectable ECC errors",
        "level": FaultLevel.RESET_NOW,
        "source": "NVIDIA, Xid Errors: after a Double Bit ECC Error (Xid 48), drain and reset the card",
        "condition": {"metric": "ecc_uncorrected", "how": "change", "op": ">", "value": 0},
    },
    {
        "name": "ecc-corrected",
        "title": "High rate of correctable ECC errors",
        "level": FaultLevel.NOTE,
        "source": "NVIDIA/DCGM, thresholds of its health checks: 10 single-bit errors per minute "
        "(provisional)",
        "condition": {
            "metric": "ecc_corrected",
            "how": "rate",
            "op": ">",
            "value": 10,
            "for": "5m",
        },
    },
    {
        "name": "link-errors",
        "title": "Link errors between cards",
        "level": FaultLevel.NOTE,
        "source": "NVIDIA/DCGM, thresholds of its health checks: 100 CRC errors per second",
        "condition": {
            "metric": "link_errors",
            "how": "rate",
            "op": ">=",
            "value": 6000,
            "within": "5m",
            "for": "1m",
        },
    },
    {
        "name": "network-errors",
        "title": "Network port errors",
        "level": FaultLevel.NOTE,
        "source": "Ninefold; 100 per second, as for links between cards",
        "condition": {
            "metric": "network_errors",
            "how": "rate",
            "op": ">=",
            "value": 6000,
            "within": "5m",
            "for": "1m",
        },
    },
    {
        "name": "unhealthy",
        "title": "Card unhealthy according to the vendor's tools",
        "level": FaultLevel.RESET_WHEN_IDLE,
        "source": "Ascend npu-exporter, health_status 0: without a fault code, running workloads "
        "continue and the card is tested",
        "condition": {"metric": "health", "op": "=", "value": 0, "for": "30s"},
    },
)

DEFAULT_RULES: tuple[HealthRuleSpec, ...] = tuple(map(parse_health_rule, _DOCUMENTS))
