"""Default health rules of an installation.

They are cautious: a metric is a symptom, so no rule isolates by itself. The source of a threshold is the
vendor, or Ninefold if no vendor publishes one.
"""

from __future__ import annotations

from datetime import timedelta

from controlplane.domain.health.faults import FaultLevel
from controlplane.domain.health.rules import (
    HealthRuleCondition,
    HealthRuleSpec,
    MetricTransform,
    RuleOperator,
)
from controlplane.domain.telemetry.metrics import Metric

_MINUTE = timedelta(minutes=1)

DEFAULT_RULES: tuple[HealthRuleSpec, ...] = (
    HealthRuleSpec(
        name="hot-chip",
        title="High chip temperature",
        level=FaultLevel.NOTE,
        source="Ninefold; replace it with the slowdown temperature that the vendor's tools print",
        condition=HealthRuleCondition(
            metric=Metric.TEMPERATURE, op=RuleOperator.AT_LEAST, value=90, lasting=_MINUTE
        ),
    ),
    HealthRuleSpec(
        name="overheated-chip",
        title="Chip overheating",
        level=FaultLevel.RESET_WHEN_IDLE,
        source="Ninefold; 10 °C above the threshold of the note",
        condition=HealthRuleCondition(
            metric=Metric.TEMPERATURE, op=RuleOperator.AT_LEAST, value=100, lasting=_MINUTE
        ),
    ),
    HealthRuleSpec(
        name="hot-memory",
        title="High memory temperature",
        level=FaultLevel.NOTE,
        source="Ninefold; replace it with the maximum operating temperature of the memory that the vendor's "
        "tools print",
        condition=HealthRuleCondition(
            metric=Metric.MEMORY_TEMPERATURE, op=RuleOperator.AT_LEAST, value=95, lasting=_MINUTE
        ),
    ),
    HealthRuleSpec(
        name="overheated-memory",
        title="Memory overheating",
        level=FaultLevel.RESET_WHEN_IDLE,
        source="Ninefold; 10 °C above the threshold of the note",
        condition=HealthRuleCondition(
            metric=Metric.MEMORY_TEMPERATURE, op=RuleOperator.AT_LEAST, value=105, lasting=_MINUTE
        ),
    ),
    HealthRuleSpec(
        name="ecc-uncorrected",
        title="Uncorrectable ECC errors",
        level=FaultLevel.RESET_NOW,
        source="NVIDIA, Xid Errors: after a Double Bit ECC Error (Xid 48), drain and reset the card",
        condition=HealthRuleCondition(
            metric=Metric.ECC_UNCORRECTED,
            how=MetricTransform.CHANGE,
            op=RuleOperator.ABOVE,
            value=0,
        ),
    ),
    HealthRuleSpec(
        name="ecc-corrected",
        title="High rate of correctable ECC errors",
        level=FaultLevel.NOTE,
        source="NVIDIA/DCGM, thresholds of its health checks: 10 single-bit errors per minute (provisional)",
        condition=HealthRuleCondition(
            metric=Metric.ECC_CORRECTED,
            how=MetricTransform.RATE,
            op=RuleOperator.ABOVE,
            value=10,
            lasting=5 * _MINUTE,
        ),
    ),
    HealthRuleSpec(
        name="link-errors",
        title="Link errors between cards",
        level=FaultLevel.NOTE,
        source="NVIDIA/DCGM, thresholds of its health checks: 100 CRC errors per second",
        condition=HealthRuleCondition(
            metric=Metric.LINK_ERRORS,
            how=MetricTransform.RATE,
            op=RuleOperator.AT_LEAST,
            value=6000,
            within=5 * _MINUTE,
            lasting=_MINUTE,
        ),
    ),
    HealthRuleSpec(
        name="network-errors",
        title="Network port errors",
        level=FaultLevel.NOTE,
        source="Ninefold; 100 per second, as for links between cards",
        condition=HealthRuleCondition(
            metric=Metric.NETWORK_ERRORS,
            how=MetricTransform.RATE,
            op=RuleOperator.AT_LEAST,
            value=6000,
            within=5 * _MINUTE,
            lasting=_MINUTE,
        ),
    ),
    HealthRuleSpec(
        name="unhealthy",
        title="Card unhealthy according to the vendor's tools",
        level=FaultLevel.RESET_WHEN_IDLE,
        source="Ascend npu-exporter, health_status 0: without a fault code, running workloads continue and the "
        "card is tested",
        condition=HealthRuleCondition(
            metric=Metric.HEALTH, op=RuleOperator.IS, value=0, lasting=timedelta(seconds=30)
        ),
    ),
)
