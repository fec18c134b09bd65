"""DeepSpeed's configuration file for a ZeRO stage (https://www.deepspeed.ai/docs/config-json/).

``auto`` is filled in by the engine from its own arguments.
"""

from __future__ import annotations

import json
from typing import Any

from controlplane.adapters.engines.trainers import Order

#: Relative to ``{work}``.
FILE = "deepspeed.json"
#: DeepSpeed's names of number formats.
_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def wanted(order: Order) -> bool:
    """Whether the plan or the communication needs DeepSpeed; plain data parallelism does not."""
    return order.plan.zero_stage > 0 or order.spec["communication_dtype"] != "auto"


def configuration(order: Order) -> str:
    """The text of the file."""
    stage = order.plan.zero_stage
    zero: dict[str, Any] = {
        "stage": stage,
        "overlap_comm": False,
        "contiguous_gradients": True,
    }
    if stage == 3:
        zero |= {
            "reduce_bucket_size": "auto",
            "stage3_prefetch_bucket_size": "auto",
            "stage3_param_persistence_threshold": "auto",
            "stage3_gather_16bit_weights_on_model_save": True,
        }
    else:
        zero |= {"allgather_partitions": True, "reduce_scatter": True}
    content: dict[str, Any] = {
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "zero_allow_untested_optimizer": True,
        "fp16": {"enabled": "auto", "loss_scale": 0},
        "bf16": {"enabled": "auto"},
        "zero_optimization": zero,
    }
    dtype = order.spec["communication_dtype"]
    if dtype != "auto":
        content["communication_data_type"] = _DTYPES[dtype]
    return json.dumps(content, indent=2) + "\n"
