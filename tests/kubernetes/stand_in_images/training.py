"""Images of the engines that train."""

from __future__ import annotations

from tests.kubernetes.images import PATH, File
from tests.kubernetes.stand_in_images.rules import (
    PACKAGES,
    TORCH_ACCOUNT,
    Rule,
    StandInImage,
    account_rule,
    cann_base,
    device_group_rule,
    gang_rule,
    home_rule,
    libraries_rule,
    output_rule,
)

_LLAMAFACTORY = "hiyouga/LLaMA-Factory v0.9.5"
_MS_SWIFT = "modelscope/ms-swift v4.3.0"
_MINDSPEED_LLM = "Ascend/MindSpeed-LLM 26.0.0"


def llamafactory() -> StandInImage:
    program = "llamafactory-cli"
    return StandInImage(
        engine="llamafactory",
        chip="nvidia-h800",
        programs={f"/opt/conda/bin/{program}": program, "/opt/conda/bin/torchrun": "torchrun"},
        environment={"PATH": f"/opt/conda/bin:{PATH}"},
        rules=(
            account_rule("llamafactory", program, source=TORCH_ACCOUNT),
            home_rule(
                "llamafactory",
                program,
                folder=".triton/autotune",
                source=f"{_LLAMAFACTORY}, docker/docker-cuda/Dockerfile: the image runs as root and has "
                "DeepSpeed, which keeps measurements of Triton below HOME",
            ),
            gang_rule(
                "llamafactory",
                program,
                source=f"{_LLAMAFACTORY}, src/llamafactory/launcher.py: torchrun gets the five variables, and "
                "starts for a single card only with FORCE_TORCHRUN",
                FORCE_TORCHRUN="1",
            ),
            Rule(
                name="llamafactory-arguments",
                program=program,
                kind="without",
                value=" ",
                changed=".",
                source=f"{_LLAMAFACTORY}, src/llamafactory/launcher.py: arguments are joined to one text, "
                "which is split at white space",
            ),
            Rule(
                name="llamafactory-datasets",
                program=program,
                kind="readable",
                value="data/dataset_info.json",
                changed="/app/data/dataset_info.json",
                source=f"{_LLAMAFACTORY}, src/llamafactory/data/parser.py: dataset_info.json is in dataset_dir, "
                "which is relative to the working directory",
            ),
            output_rule(
                "llamafactory",
                program,
                source=f"{_LLAMAFACTORY}, src/llamafactory/train/tuner.py: export writes the whole model to "
                "export_dir",
            ),
        ),
    )


def ms_swift() -> StandInImage:
    environment, files = cann_base("9.0.0", python="3.11.15")
    cache = "/mnt/workspace/.cache/modelscope/hub"
    return StandInImage(
        engine="ms_swift",
        chip="ascend-910b3",
        programs={
            "/usr/local/python3.11.15/bin/swift": "swift",
            f"{PACKAGES}/torch/distributed/run.py": "torchrun",
        },
        environment={**environment, "MODELSCOPE_CACHE": cache},
        files={
            **files,
            f"{PACKAGES}/torch/__init__.py": File(),
            f"{PACKAGES}/torch/distributed/__init__.py": File(),
        },
        rules=(
            device_group_rule("ms-swift", "swift"),
            libraries_rule("ms-swift", "swift"),
            Rule(
                name="ms-swift-cache",
                program="swift",
                kind="writable",
                value="{MODELSCOPE_CACHE}",
                changed=cache,
                source="modelscope/modelscope at 25ed4a5, docker/ascend/Dockerfile.ascend: the image sets "
                f"MODELSCOPE_CACHE to {cache}; {_MS_SWIFT}, swift/dataset/loader.py: rows are cached there",
            ),
            gang_rule(
                "ms-swift",
                "swift",
                source=f"{_MS_SWIFT}, swift/cli/main.py: python -m torch.distributed.run gets the five variables",
            ),
            output_rule(
                "ms-swift",
                "swift",
                source=f"{_MS_SWIFT}, swift/pipelines/export/merge_lora.py: the whole model is written to "
                "output_dir",
            ),
        ),
    )


def mindspeed_llm() -> StandInImage:
    program, home = "posttrain_gpt.py", "/workspace/MindSpeed-LLM"
    environment, files = cann_base("9.0.0", python="3.11.15")
    programs = {
        f"{home}/{name}": name for name in (program, "preprocess_data.py", "convert_ckpt_v2.py")
    }
    return StandInImage(
        engine="mindspeed_llm",
        chip="ascend-910b3",
        programs={**programs, "/usr/local/python3.11.15/bin/torchrun": "torchrun"},
        environment=environment,
        files={**files, f"{home}/megatron/core/datasets/Makefile": File()},
        rules=(
            device_group_rule("mindspeed-llm", program),
            libraries_rule("mindspeed-llm", program),
            Rule(
                name="mindspeed-llm-helpers",
                program=program,
                kind="writable",
                value="{program}/megatron/core/datasets",
                changed=f"{home}/megatron/core/datasets",
                source="NVIDIA/Megatron-LM at 00caa53, megatron/core/datasets/utils.py: training runs make in "
                "this folder; Ascend/MindSpeed-LLM at c77308a, docker/Dockerfile: the image is built without "
                "it",
            ),
            Rule(
                name="mindspeed-llm-preprocessing",
                program=program,
                kind="readable",
                value="preprocess_data.py",
                changed="{NINEFOLD_WORK}/preprocess_data.py",
                source=f"{_MINDSPEED_LLM}, mindspeed_llm/core/datasets/dataset_preprocess.py: rows are "
                "converted by preprocess_data.py of the working directory",
            ),
            home_rule(
                "mindspeed-llm",
                program,
                folder=".cache/torch_extensions",
                source="Ascend/MindSpeed 26.0.0_core_r0.12.1, mindspeed/op_builder/builder.py: operators are "
                "compiled by torch.utils.cpp_extension, into a folder below HOME",
            ),
            Rule(
                name="mindspeed-llm-arguments",
                program=program,
                kind="options",
                value={
                    "--distributed-backend": "nccl",
                    "--tokenizer-type": "PretrainedFromHF",
                    "--stage": "sft",
                    "--data-path": r"/.+\.jsonl",
                    "--output-prefix": "/.+",
                },
                changed={"--distributed-backend": "hccl"},
                source=f"{_MINDSPEED_LLM}, examples/mcore: the backend is nccl on Ascend, too",
            ),
            output_rule(
                "mindspeed-llm",
                "convert_ckpt_v2.py",
                source=f"{_MINDSPEED_LLM}, mindspeed_llm/tasks/checkpoint/convert_mg2hf.py: writes "
                "safetensors, and copies the configuration of --hf-cfg-dir",
            ),
        ),
    )
