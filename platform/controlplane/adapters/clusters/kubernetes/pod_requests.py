"""What pods ask of their node, as the cluster's own scheduler counts it: pure, dicts in, amounts out.

::

    containers     ▆▆▆▆ + ▆▆         run together: added up
    init           ▆▆▆▆▆▆▆           run one after the other, before: the largest counts
    sidecars       ▆                 init containers that stay: beside what comes after them, and beside containers
    overhead       ▆                 of the pod's sandbox: on top

A pod that has ended asks for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from controlplane.domain.common.resources import Bytes, Millicpu, Resources

Amounts = Mapping[str, Decimal]

_ENDED = ("Succeeded", "Failed")
_NONE = Decimal(0)
_PARSED: Callable[[str], Decimal] = parse_quantity


@lru_cache(maxsize=4096)
def parse_amount(text: str) -> Decimal:
    """``1500m`` → 1.5, ``2Gi`` → 2147483648; what cannot be read is nothing."""
    try:
        return _PARSED(text)
    except ValueError:
        return _NONE


def pod_requests(pod: Mapping[str, Any]) -> Amounts:
    """By resource, for as long as the pod has not ended."""
    if (pod.get("status") or {}).get("phase") in _ENDED:
        return {}
    spec = pod.get("spec") or {}
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in spec.get("initContainers") or ():
        requested = _add_amounts(sidecars, _container_requests(container))
        most = _max_amounts(most, requested)
        if container.get("restartPolicy") == "Always":
            sidecars = requested
    together = sidecars
    for container in spec.get("containers") or ():
        together = _add_amounts(together, _container_requests(container))
    # Newer releases let a pod ask as a whole; that goes before what its containers ask.
    stated = {**_max_amounts(most, together), **_container_requests(spec)}
    return _add_amounts(stated, _parse_amounts(spec.get("overhead") or {}))


def total_requests(pods: Iterable[Mapping[str, Any]]) -> Amounts:
    """The sum over those that have not ended."""
    total: Amounts = {}
    for pod in pods:
        total = _add_amounts(total, pod_requests(pod))
    return total


def cpu_and_memory(amounts: Amounts) -> Resources:
    """CPU and memory, none below 0; of a fraction of the smallest unit nothing is left."""
    return Resources(
        cpu=Millicpu(max(0, int(amounts.get("cpu", _NONE) * 1000))),
        memory=Bytes(max(0, int(amounts.get("memory", _NONE)))),
    )


def _container_requests(holder: Mapping[str, Any]) -> Amounts:
    """A limit without a request counts as a request."""
    resources = holder.get("resources") or {}
    return _parse_amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _parse_amounts(texts: Mapping[str, Any]) -> Amounts:
    return {name: parse_amount(str(text)) for name, text in texts.items()}


def _add_amounts(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, _NONE) + other.get(name, _NONE) for name in {**one, **other}}


def _max_amounts(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, _NONE), other.get(name, _NONE)) for name in {**one, **other}}
