"""Images of the engines that serve."""

from __future__ import annotations

from tests.kubernetes.images import File
from tests.kubernetes.stand_in_images.rules import (
    DEVICES_SOURCE,
    MINDIE,
    PACKAGES,
    TORCH_ACCOUNT,
    Rule,
    StandInImage,
    account_rule,
    cann_base,
    device_group_rule,
    home_rule,
    kernel_meta_rule,
    key_rule,
    libraries_rule,
    script,
)
from tests.unit.engines.serving_requests import IMAGES as IMAGE_PIPELINE
from tests.unit.engines.serving_requests import KINDS

_VLLM = "vllm-project/vllm 0.23.0"
_VLLM_NONROOT = "vllm-project/vllm at 2cfa5c3, docker/entrypoints/vllm-nonroot-entrypoint.sh"
_VLLM_KEY = f"{_VLLM}, vllm/entrypoints/openai/api_server.py: without --api-key it is VLLM_API_KEY"
_SGLANG = "sgl-project/sglang 0.5.23"


def vllm() -> StandInImage:
    return StandInImage(
        engine="vllm",
        chip="nvidia-h800",
        programs={"/usr/local/bin/vllm": "vllm"},
        rules=(
            account_rule(
                "vllm",
                "vllm",
                source=f"{_VLLM_NONROOT}: without USER, getpass.getuser() raises KeyError for an account that "
                "/etc/passwd does not name",
            ),
            home_rule(
                "vllm",
                "vllm",
                folder=".cache/huggingface",
                source=f"{_VLLM_NONROOT}: caches of Hugging Face, Triton, Inductor and Numba are below HOME",
            ),
            Rule(
                name="vllm-cache",
                program="vllm",
                kind="writable",
                value="{VLLM_CACHE_ROOT}",
                changed="/vllm-workspace/cache",
                source=f"{_VLLM}, vllm/envs.py: compiled graphs are written to VLLM_CACHE_ROOT",
            ),
            Rule(
                name="vllm-arguments",
                program="vllm",
                kind="options",
                value={"": "serve", "--host": r"0\.0\.0\.0", "--port": "8000"},
                changed={"": "bench"},
                source=f"{_VLLM}, vllm/entrypoints/cli/main.py: the first argument is the command",
            ),
            Rule(
                name="vllm-model",
                program="vllm",
                kind="readable",
                value="{1}/config.json",
                changed="{1}/params.json",
                source=f"{_VLLM}, vllm/entrypoints/cli/serve.py and vllm/transformers_utils/config.py: the "
                "argument after serve is the model, whose config.json is read",
            ),
            key_rule(
                "vllm", "vllm", name="VLLM_API_KEY", changed="NINEFOLD_INPUTS", source=_VLLM_KEY
            ),
            Rule(
                name="vllm-shared-memory",
                program="vllm",
                kind="shared_memory",
                value=1 << 28,
                changed=1 << 50,
                source=f"{_VLLM}, vllm/distributed/device_communicators/shm_broadcast.py: the queue to the "
                "workers has 10 chunks of up to 24 MiB in shared memory, of which containers have 64 MiB by "
                "default",
            ),
        ),
    )


def vllm_ascend() -> StandInImage:
    environment, files = cann_base("9.1.0", python="3.12.13")
    return StandInImage(
        engine="vllm_ascend",
        chip="ascend-910b3",
        programs={"/usr/local/python3.12.13/bin/vllm": "vllm"},
        environment=environment,
        files=files,
        rules=(
            device_group_rule("vllm-ascend", "vllm"),
            libraries_rule("vllm-ascend", "vllm"),
            kernel_meta_rule("vllm-ascend", "vllm", installation="/workspace"),
            key_rule(
                "vllm-ascend",
                "vllm",
                name="VLLM_API_KEY",
                changed="NINEFOLD_INPUTS",
                source=_VLLM_KEY,
            ),
            Rule(
                name="vllm-ascend-devices",
                program="vllm",
                kind="variables",
                value={"ASCEND_RT_VISIBLE_DEVICES": "0,1"},
                changed={"ASCEND_RT_VISIBLE_DEVICES": "2,3"},
                source=DEVICES_SOURCE,
            ),
        ),
    )


def sglang() -> StandInImage:
    program = "sglang.launch_server"
    return StandInImage(
        engine="sglang",
        chip="nvidia-h800",
        programs={"/sgl-workspace/sglang/python/sglang/launch_server.py": program},
        files={
            "/sgl-workspace/sglang/python/sglang/__init__.py": File(),
            # The image has an editable installation.
            f"{PACKAGES}/sglang.pth": File(text="/sgl-workspace/sglang/python\n"),
        },
        rules=(
            account_rule("sglang", program, source=TORCH_ACCOUNT),
            home_rule(
                "sglang",
                program,
                folder=".cache/flashinfer",
                source="sgl-project/sglang at 004740a, docker/Dockerfile: the image runs as root and has "
                "FlashInfer, which compiles kernels into a folder below HOME",
            ),
            Rule(
                name="sglang-arguments",
                program=program,
                kind="options",
                value={
                    "--model-path": "/.+/model",
                    "--host": r"0\.0\.0\.0",
                    "--port": "8000",
                    "--tp-size": "2",
                    "--api-key": ".+",
                },
                changed={"--host": r"127\.0\.0\.1"},
                source=f"{_SGLANG}, python/sglang/srt/arg_groups/fields/serving.py: without options the host is "
                "127.0.0.1 and no key is required",
            ),
            key_rule(
                "sglang",
                program,
                name="--api-key",
                changed="--model-path",
                source=f"{_SGLANG}, python/sglang/srt/arg_groups/fields/serving.py: the key is an option only",
            ),
        ),
    )


_VLLM_OMNI = "vllm-project/vllm-omni 0.28.0"
_VLLM_OMNI_IMAGE = "vllm-project/vllm-omni at 11a683c, docker/Dockerfile.cuda"


def vllm_omni() -> StandInImage:
    return StandInImage(
        engine="vllm_omni",
        chip="nvidia-h800",
        model=IMAGE_PIPELINE,
        # The image is that of vLLM with one more package.
        programs={"/usr/local/bin/vllm": "vllm"},
        environment={
            "HOME": "/tmp",
            "VLLM_CACHE_ROOT": "/tmp/vllm",
            "TORCHINDUCTOR_CACHE_DIR": "/tmp/torchinductor",
        },
        rules=(
            account_rule("vllm-omni", "vllm", source=TORCH_ACCOUNT),
            Rule(
                name="vllm-omni-compiler-cache",
                program="vllm",
                kind="writable",
                value="{TORCHINDUCTOR_CACHE_DIR}",
                changed="/app/vllm-omni",
                source=f"{_VLLM_OMNI_IMAGE}: compiled kernels are below /tmp, for accounts without a home; "
                "/app belongs to root",
            ),
            Rule(
                name="vllm-omni-cache",
                program="vllm",
                kind="writable",
                value="{VLLM_CACHE_ROOT}",
                changed="/app/vllm",
                source=f"{_VLLM_OMNI_IMAGE}: VLLM_CACHE_ROOT is a writable folder",
            ),
            Rule(
                name="vllm-omni-arguments",
                program="vllm",
                kind="options",
                value={
                    "": "serve",
                    "--omni": "--.+",
                    "--host": r"0\.0\.0\.0",
                    "--port": "8000",
                    "--tensor-parallel-size": "2",
                },
                changed={"--omni": "true"},
                source=f"{_VLLM_OMNI}, vllm_omni/entrypoints/cli/main.py: without the argument --omni, which has "
                "no value, vllm is vLLM's own",
            ),
            Rule(
                name="vllm-omni-model",
                program="vllm",
                kind="readable",
                value="{1}/model_index.json",
                changed="{1}/config.yaml",
                source=f"{_VLLM_OMNI}, vllm_omni/config/config_factory.py: the argument after serve is the model; "
                "a pipeline is known by its model_index.json",
            ),
            key_rule(
                "vllm-omni",
                "vllm",
                name="VLLM_API_KEY",
                changed="NINEFOLD_INPUTS",
                source=_VLLM_KEY,
            ),
            Rule(
                name="vllm-omni-shared-memory",
                program="vllm",
                kind="shared_memory",
                value=1 << 28,
                changed=1 << 50,
                source=f"{_VLLM_OMNI}, vllm_omni/diffusion/executor/multiproc_executor.py: requests go to the "
                "workers by vLLM's queue in shared memory, of which containers have 64 MiB by default, and "
                "images come back by segments of it",
            ),
        ),
    )


_TEI = "huggingface/text-embeddings-inference 1.9.3 at 0d124dc"


def tei() -> StandInImage:
    return StandInImage(
        engine="tei",
        chip="nvidia-h800",
        model=KINDS["encoder"],
        cards=1,
        programs={"/entrypoint.sh": "tei"},
        environment={
            # Of its base image, nvidia/cuda.
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
            "HUGGINGFACE_HUB_CACHE": "/data",
            "PORT": "80",
        },
        rules=(
            Rule(
                name="tei-driver",
                program="tei",
                kind="variables",
                value={"NVIDIA_DRIVER_CAPABILITIES": ".*(utility|all).*"},
                changed={"NVIDIA_DRIVER_CAPABILITIES": "graphics"},
                source=f"{_TEI}, cuda-all-entrypoint.sh: ends without nvidia-smi, by which it chooses the program "
                "for the card; NVIDIA Container Toolkit, user guide, driver capabilities: utility is required "
                "for nvidia-smi",
            ),
            Rule(
                name="tei-arguments",
                program="tei",
                kind="options",
                value={
                    "--hostname": r"0\.0\.0\.0",
                    "--port": "8000",
                    "--prometheus-port": r"(?!8000)\d+",
                    "--auto-truncate": "false",
                },
                changed={"--port": "80"},
                source=f"{_TEI}, router/src/main.rs: without arguments the address is the variable HOSTNAME, "
                "which Kubernetes sets to the name of the pod, and the port the variable PORT; "
                "Dockerfile-cuda-all: PORT is 80",
            ),
            Rule(
                name="tei-model",
                program="tei",
                kind="readable",
                value="{--model-id}/config.json",
                changed="{--model-id}/model/config.json",
                source=f"{_TEI}, router/src/lib.rs: a model that is no folder is downloaded",
            ),
            Rule(
                name="tei-tokenizer",
                program="tei",
                kind="readable",
                value="{--model-id}/tokenizer.json",
                changed="{--model-id}/sentencepiece.bpe.model",
                source=f"{_TEI}, router/src/lib.rs: only the file of a fast tokenizer is read",
            ),
            key_rule(
                "tei",
                "tei",
                name="API_KEY",
                changed="NINEFOLD_INPUTS",
                source=f"{_TEI}, router/src/main.rs: without --api-key it is API_KEY",
            ),
        ),
    )


_XLLM = "jd-opensource/xllm at 87e8d6e (0.10.0)"
_XLLM_START = f"{_XLLM}, docs/en/getting_started/launch_xllm.md"


def xllm() -> StandInImage:
    environment, files = cann_base("9.0.0", python="3.11.14")
    return StandInImage(
        engine="xllm",
        chip="ascend-910b3",
        programs={"/usr/local/bin/xllm": "xllm"},
        environment=environment,
        files=files,
        rules=(
            device_group_rule("xllm", "xllm"),
            libraries_rule("xllm", "xllm"),
            kernel_meta_rule("xllm", "xllm", installation="/usr/local/bin"),
            Rule(
                name="xllm-devices",
                program="xllm",
                kind="variables",
                value={"ASCEND_RT_VISIBLE_DEVICES": "0,1"},
                changed={"ASCEND_RT_VISIBLE_DEVICES": "2,3"},
                source=DEVICES_SOURCE,
            ),
            Rule(
                name="xllm-processes",
                program="xllm",
                kind="options",
                value={
                    "--nnodes": "2",
                    "--node_rank": "[01]",
                    "--devices": "npu:[01]",
                    "--master_node_addr": r"127\.0\.0\.1:\d+",
                    "--port": "800[01]",
                },
                changed={"--nnodes": "1"},
                source=f"{_XLLM_START}: each card has a process, which is a node of nnodes, with its own rank, "
                "device and port",
            ),
            Rule(
                name="xllm-options",
                program="xllm",
                kind="options",
                value={"--block_size": "128", "--model_id": "assistant"},
                changed={"--model_id": "model"},
                source=f"{_XLLM}, xllm/xllm.cpp: without model_id the name is that of the model's folder; "
                "docs/en/getting_started/launch_xllm.md: the block size of an NPU is 128",
            ),
            Rule(
                name="xllm-model",
                program="xllm",
                kind="readable",
                value="{--model}/config.json",
                changed="{--model}/params.json",
                source=f"{_XLLM}, xllm/xllm.cpp and xllm/core/framework/hf_model_loader.cpp: the folder must "
                "exist and has a config.json",
            ),
        ),
    )


def mindie() -> StandInImage:
    program, home = "mindieservice_daemon", "/usr/local/Ascend/mindie/latest/mindie-service"
    environment, files = cann_base("8.5.1", python="3.11.14")
    atb_models = "/usr/local/Ascend/atb-models"
    scripts = {
        f"{atb_models}/set_env.sh": script(f"export ATB_SPEED_HOME_PATH={atb_models}"),
        "/usr/local/Ascend/mindie/set_env.sh": script(
            f"chmod u+w {home}",
            f"export MIES_INSTALL_PATH={home}",
            "export MINDIE_LOG_TO_STDOUT=0",
        ),
        # Of gpustack/runner, in place of the daemon.
        f"{home}/bin/mindieservice_daemon": File(
            text='#!/bin/bash\ncd "$(dirname "$0")/.." && ./bin/mindieservice_daemon_\n', mode=0o755
        ),
        f"{home}/conf/config.json": File(text="{}"),
        # With the mode that MindIE's installer gives it, without docker/engines/mindie.
        "/stand-in/published/config.json": File(text="{}", mode=0o640),
    }
    return StandInImage(
        engine="mindie",
        chip="ascend-910b3",
        programs={f"{home}/bin/mindieservice_daemon_": program},
        environment=environment,
        files={**files, **scripts},
        rules=(
            device_group_rule("mindie", program),
            libraries_rule("mindie", program),
            kernel_meta_rule("mindie", program, installation=home),
            Rule(
                name="mindie-installation",
                program=program,
                kind="readable",
                value="{MIES_INSTALL_PATH}/conf/config.json",
                changed="/stand-in/published/config.json",
                source="Ascend/MindIE-Motor at 5dfb024, build/service/install.sh: modes of the installation "
                "are 440, 550, 640 and 750; gpustack/runner at 04a1aa2, pack/cann/Dockerfile: it belongs to "
                "root",
            ),
            Rule(
                name="mindie-environment",
                program=program,
                kind="variables",
                value={
                    "MIES_INSTALL_PATH": home,
                    "ATB_SPEED_HOME_PATH": atb_models,
                    "MIES_SERVICE_MONITOR_MODE": "1",
                    "MINDIE_LOG_TO_STDOUT": "1",
                },
                changed={"MINDIE_LOG_TO_STDOUT": "0"},
                source=f"{MINDIE}, scripts/set_env.sh: sets MINDIE_LOG_TO_STDOUT to 0 and changes the mode of "
                "the installation; docs/zh/user_guide/user_manual/environment_variable.md: metrics are off by "
                "default",
            ),
            Rule(
                name="mindie-configuration",
                program=program,
                kind="private",
                value={"{MIES_CONFIG_JSON_PATH}": "640"},
                changed={"{NINEFOLD_WORK}/config.json": "640"},
                source=f"{MINDIE}, src/utils/common_util.cpp and src/utils/log/file_utils.cpp: the configuration "
                "belongs to the account of the process and has mode 640 at most",
            ),
            Rule(
                name="mindie-inputs",
                program=program,
                kind="inputs_owner",
                value={"MINDIE_CHECK_INPUTFILES_PERMISSION": "0"},
                changed={"MINDIE_CHECK_INPUTFILES_PERMISSION": "1"},
                source=f"{MINDIE}, src/utils/safe_path.cpp: weights and their config.json belong to the "
                "account of the process, unless MINDIE_CHECK_INPUTFILES_PERMISSION is 0",
            ),
            Rule(
                name="mindie-address",
                program=program,
                kind="settings",
                value={
                    "ServerConfig.ipAddress": r"0\.0\.0\.0",
                    "ServerConfig.managementIpAddress": r"0\.0\.0\.0",
                    "ServerConfig.allowAllZeroIpListening": "True",
                },
                changed={"ServerConfig.allowAllZeroIpListening": "False"},
                source=f"{MINDIE}, src/utils/common_util.cpp: an address is an IP address, and 0.0.0.0 needs "
                "allowAllZeroIpListening",
            ),
            Rule(
                name="mindie-tls",
                program=program,
                kind="settings",
                value={
                    "ServerConfig.httpsEnabled": "False",
                    "ServerConfig.interCommTLSEnabled": "False",
                    "BackendConfig.interNodeTLSEnabled": "False",
                },
                changed={"ServerConfig.httpsEnabled": "True"},
                source=f"{MINDIE}, src/server/conf/config.json: TLS is on by default, with certificates that the "
                "image does not have",
            ),
            Rule(
                name="mindie-devices",
                program=program,
                kind="settings",
                value={
                    "BackendConfig.npuDeviceIds": r"\[\[0, 1\]\]",
                    "BackendConfig.ModelDeployConfig.ModelConfig.0.worldSize": "2",
                },
                changed={"BackendConfig.npuDeviceIds": r"\[\[0, 1, 2, 3\]\]"},
                source=f"{DEVICES_SOURCE}, and worldSize is their number",
            ),
        ),
    )
