"""What the exporter of a node of the drill prints."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from tests.drill.faults import Node

_MEMORY_MIB = 65_536


def exposition(node: Node, codes: Mapping[int, str], *, draws: Random) -> str:
    """Metrics of a busy day; ``codes`` are the current error codes by card index."""
    printed = _DCGM if node.vendor == "nvidia" else _NPU
    lines = []
    for index in range(node.cards):
        busy = draws.random() < 0.85
        used = draws.randrange(2_000, _MEMORY_MIB) if busy else 512
        code = codes.get(index, "0")
        values = {
            "utilization": draws.randrange(40, 101) if busy else 0,
            "used": used,
            "free": _MEMORY_MIB - used,
            "total": _MEMORY_MIB,
            # Below the temperature at which the vendor reports an error.
            "temperature": draws.randrange(38, 84),
            "power": draws.randrange(90, 650),
            "code": int(code, 16) if node.vendor == "ascend" else int(code),
        }
        lines += [line.format(node=node.name, index=index, **values) for line in printed]
    return "\n".join(lines) + "\n"


_LABELS = '{{gpu="{index}",UUID="GPU-{node}-{index}",Hostname="{node}"}}'
_DCGM = (
    f"DCGM_FI_DEV_GPU_UTIL{_LABELS} {{utilization}}",
    f"DCGM_FI_DEV_FB_USED{_LABELS} {{used}}",
    f"DCGM_FI_DEV_FB_FREE{_LABELS} {{free}}",
    f"DCGM_FI_DEV_GPU_TEMP{_LABELS} {{temperature}}",
    f"DCGM_FI_DEV_POWER_USAGE{_LABELS} {{power}}",
    f"DCGM_FI_DEV_XID_ERRORS{_LABELS} {{code}}",
)
_IDS = '{{id="{index}",vdie_id="DIE-{node}-{index}"}}'
_NPU = (
    f"npu_chip_info_utilization{_IDS} {{utilization}}",
    f"npu_chip_info_hbm_used_memory{_IDS} {{used}}",
    f"npu_chip_info_hbm_total_memory{_IDS} {{total}}",
    f"npu_chip_info_temperature{_IDS} {{temperature}}",
    f"npu_chip_info_power{_IDS} {{power}}",
    f"npu_chip_info_error_code{_IDS} {{code}}",
)
