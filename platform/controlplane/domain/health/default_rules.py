"""The rules that an installation begins with.

They are cautious: a figure is a symptom, so none of them isolates by itself. Where a limit is a choice of ours and
no maker's, its source says so.
"""

from __future__ import annotations

from datetime import timedelta

from controlplane.domain.health.faults import FaultLevel
from controlplane.domain.health.rules import Condition, HealthRuleSpec, How, RuleOperator
from controlplane.domain.telemetry.metrics import Metric

_MINUTE = timedelta(minutes=1)
_DCGM = "NVIDIA/DCGM, limits of its health checks"

DEFAULT_RULES: tuple[HealthRuleSpec, ...] = (
    HealthRuleSpec(
        name="hot-chip",
        title="The chip runs hot",
        level=FaultLevel.NOTE,
        source="our choice; put in what the maker's tools print as the temperature at which the chip slows down",
        condition=Condition(
            metric=Metric.TEMPERATURE, op=RuleOperator.AT_LEAST, value=90, lasting=_MINUTE
        ),
    ),
    HealthRuleSpec(
        name="overheated-chip",
        title="The chip is overheated",
        level=FaultLevel.RESET_WHEN_IDLE,
        source="our choice, ten degrees above the note",
        condition=Condition(
            metric=Metric.TEMPERATURE, op=RuleOperator.AT_LEAST, value=100, lasting=_MINUTE
        ),
    ),
    HealthRuleSpec(
        name="hot-memory",
        title="The memory of the card runs hot",
        level=FaultLevel.NOTE,
        source="our choice; put in what the maker's tools print as the memory's greatest working temperature",
        condition=Condition(
            metric=Metric.MEMORY_TEMPERATURE, op=RuleOperator.AT_LEAST, value=95, lasting=_MINUTE
        ),
    ),
    HealthRuleSpec(
        name="overheated-memory",
        title="The memory of the card is overheated",
        level=FaultLevel.RESET_WHEN_IDLE,
        source="our choice, ten degrees above the note",
        condition=Condition(
            metric=Metric.MEMORY_TEMPERATURE, op=RuleOperator.AT_LEAST, value=105, lasting=_MINUTE
        ),
    ),
    HealthRuleSpec(
        name="ecc-uncorrected",
        title="Uncorrectable memory errors grow",
        level=FaultLevel.RESET_NOW,
        source="NVIDIA, Xid Errors: a double bit error (48) is answered by draining the card and resetting it",
        condition=Condition(
            metric=Metric.ECC_UNCORRECTED, how=How.CHANGE, op=RuleOperator.ABOVE, value=0
        ),
    ),
    HealthRuleSpec(
        name="ecc-corrected",
        title="Many memory errors are corrected",
        level=FaultLevel.NOTE,
        source=f"{_DCGM}: ten single bit errors a minute, a provisional limit there too",
        condition=Condition(
            metric=Metric.ECC_CORRECTED,
            how=How.RATE,
            op=RuleOperator.ABOVE,
            value=10,
            lasting=5 * _MINUTE,
        ),
    ),
    HealthRuleSpec(
        name="link-errors",
        title="Links between cards have errors",
        level=FaultLevel.NOTE,
        source=f"{_DCGM}: checksum errors matter from 100 a second on",
        condition=Condition(
            metric=Metric.LINK_ERRORS,
            how=How.RATE,
            op=RuleOperator.AT_LEAST,
            value=6000,
            within=5 * _MINUTE,
            lasting=_MINUTE,
        ),
    ),
    HealthRuleSpec(
        name="network-errors",
        title="The card's network port has errors",
        level=FaultLevel.NOTE,
        source="our choice: 100 a second, as between cards",
        condition=Condition(
            metric=Metric.NETWORK_ERRORS,
            how=How.RATE,
            op=RuleOperator.AT_LEAST,
            value=6000,
            within=5 * _MINUTE,
            lasting=_MINUTE,
        ),
    ),
    HealthRuleSpec(
        name="unhealthy",
        title="The maker's tools call the card unhealthy",
        level=FaultLevel.RESET_WHEN_IDLE,
        source="Ascend npu-exporter, health_status 0: no code says why, so running work goes on and it is tested",
        condition=Condition(
            metric=Metric.HEALTH, op=RuleOperator.IS, value=0, lasting=timedelta(seconds=30)
        ),
    ),
)
