"""What ms-swift's parsers make of arguments: a JSON list on stdin gives a JSON list on stdout.

An entry is ``[FOLDER, COMMAND, ARGUMENT…]``; ``["families", [MODEL_TYPE, TEMPLATE], …]`` asks which of these are
no words of its own. ``use_cpu`` is the one argument that the rendering does not hold: this machine has no
accelerator.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from swift.arguments import (
    ExportArguments,
    PretrainArguments,
    RLHFArguments,
    SftArguments,
)
from swift.cli.main import ROUTE_MAPPING, parse_yaml_args
from swift.model import MODEL_MAPPING
from swift.template import TEMPLATE_MAPPING
from swift.utils import parse_args

KINDS = {
    "sft": SftArguments,
    "pt": PretrainArguments,
    "rlhf": RLHFArguments,
    "export": ExportArguments,
}


def unknown(pairs: list[list[str]]) -> list[list[str]]:
    return [
        pair for pair in pairs if pair[0] not in MODEL_MAPPING or pair[1] not in TEMPLATE_MAPPING
    ]


def parsed(folder: str, command: str, *arguments: str) -> dict[str, Any]:
    assert command in ROUTE_MAPPING
    os.chdir(folder)
    argv = list(arguments)
    parse_yaml_args(argv)
    if command != "export":
        argv += ["--use_cpu", "true"]
    read, rest = parse_args(KINDS[command], argv)
    return {
        "rest": rest,
        "type": read.tuner_type,
        "bits": read.quant_bits,
        "model_type": read.model_type,
        "template": read.template,
        "learning_rate": getattr(read, "learning_rate", None),
        "optim": getattr(read, "optim", None),
        "output": read.output_dir,
        "rewards": getattr(read, "reward_funcs", None),
        "rlhf": getattr(read, "rlhf_type", None),
        "layers": getattr(read, "target_modules", None),
        "columns": read.columns,
        "deepspeed": hasattr(read, "deepspeed"),
        "merge": getattr(read, "merge_lora", None),
    }


asked = json.load(sys.stdin)
answers = [unknown(each[1:]) if each[0] == "families" else parsed(*each) for each in asked]
sys.stdout.write(json.dumps(answers, default=str))
