"""What LLaMA-Factory's parsers make of YAML files: a JSON list on stdin gives a JSON list on stdout.

An entry is ``[FOLDER, FILE]``. ``use_cpu`` is the one argument that the rendering does not hold: this machine has
no accelerator.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

# The versions beside it are the test's, within what it declares for transformers.
os.environ["DISABLE_VERSION_CHECK"] = "1"
# Its package for data imports what reads sound and pictures; the parser of dataset_info.json needs none of it.
data_package = ModuleType("llamafactory.data")
data_package.__path__ = [str(Path(import_module("llamafactory").__path__[0]) / "data")]
sys.modules["llamafactory.data"] = data_package
get_dataset_list = import_module("llamafactory.data.parser").get_dataset_list
parser = import_module("llamafactory.hparams.parser")


def parsed(folder: str, path: str) -> dict[str, Any]:
    os.chdir(folder)
    if path == "merge.yaml":
        sys.argv = ["llamafactory-cli", path]
        model, *_ = parser.get_infer_args(parser.read_args())
        return {"export_dir": model.export_dir, "adapter": model.adapter_name_or_path}
    sys.argv = ["llamafactory-cli", path, "use_cpu=true"]
    model, data, training, finetuning, _ = parser.get_train_args(parser.read_args())
    datasets = get_dataset_list([*data.dataset, *(data.eval_dataset or [])], data.dataset_dir)
    return {
        "stage": finetuning.stage,
        "type": finetuning.finetuning_type,
        "bits": model.quantization_bit,
        "flash": str(model.flash_attn),
        "learning_rate": training.learning_rate,
        "optim": str(training.optim.value),
        "schedule": str(training.lr_scheduler_type.value),
        "warmup": training.warmup_ratio,
        "layers": getattr(finetuning, "lora_target", None),
        "deepspeed": hasattr(training, "deepspeed"),
        "rows": [each.dataset_name for each in datasets],
        "ranking": [each.ranking for each in datasets],
    }


sys.stdout.write(json.dumps([parsed(*each) for each in json.load(sys.stdin)]))
