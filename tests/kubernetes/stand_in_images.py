"""Images with stand-ins for the programs of the engines, and the rules of the real images.

Each image has the name that the engine's plug-in renders, variables of the real Dockerfile, ``stand_in.py`` at the
paths of the real programs, and rules. A rule is a fact about the real image or program that decides whether a
rendered command works there; ``source`` says where the fact was read. Its ``changed`` value is one that pods of
this product do not satisfy: a test starts one more pod with it, which has to fail.

Devices, libraries and the folders of an Ascend driver, which nodes mount into containers, have no stand-in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from controlplane.ports.adapter_registry import all_chips, engine_by_name, image_template
from controlplane.ports.engines import ModelFacts
from tests.kubernetes.images import PATH, File, Image, write_images
from tests.unit.engines.serving_requests import IMAGES as IMAGE_PIPELINE
from tests.unit.engines.serving_requests import KINDS
from tests.unit.engines.training_requests import QWEN3_8B

#: Folders of this machine that the pods mount: Python, a shell and their libraries. Not ``/usr``, which would hide
#: the programs of the images in ``/usr/local``.
MOUNTED = ("/usr/bin", "/usr/lib", "/bin", "/lib", "/lib64")
#: Packages of the images, where this machine's Python looks for them.
_PACKAGES = f"/usr/local/lib/{Path('/usr/bin/python3').resolve().name}/dist-packages"
_STAND_IN = Path(__file__).with_name("stand_in.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A fact about an image that its pods have to satisfy."""

    name: str
    #: The program that checks it, by its name in ``stand_in.py``.
    program: str
    #: The check, by its name in ``stand_in.py``.
    kind: str
    value: Any
    #: A value that pods do not satisfy.
    changed: Any
    #: Repository, version and file, and what they say.
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StandInImage:
    """The image of one engine for one chip."""

    engine: str
    chip: str
    #: Path in the image → name of the program in ``stand_in.py``.
    programs: Mapping[str, str]
    rules: tuple[Rule, ...]
    #: Variables of the real Dockerfile.
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Other files, by path.
    files: Mapping[str, File] = field(default_factory=dict)
    #: The model that is trained or served.
    model: ModelFacts = QWEN3_8B
    #: Cards of the pod.
    cards: int = 2

    @property
    def image(self) -> str:
        """The name of the image, as the plug-in renders it."""
        found = all_chips()[self.chip]
        profile = engine_by_name(self.engine).profile()
        template = image_template(profile, engine=self.engine, chip=found)
        return template.replace("{version}", profile.default_version)

    def contents(self) -> dict[str, File]:
        """Every file of the image, by path."""
        folders = (*MOUNTED, "/tmp", "/proc", "/dev", "/sys")
        rules = json.dumps([asdict(rule) for rule in self.rules])
        return {
            **dict.fromkeys(folders, File(folder=True)),
            **{path: _program(name) for path, name in self.programs.items()},
            **self.files,
            "/stand-in/stand_in.py": File(text=_STAND_IN.read_text(encoding="utf-8")),
            "/stand-in/rules.json": File(text=rules),
        }


def write(path: Path) -> None:
    """An archive with all images, as ``ctr images import`` takes it."""
    write_images(
        path,
        [
            Image(
                name=each.image,
                files=each.contents(),
                environment={"PATH": PATH, **each.environment},
            )
            for each in IMAGES
        ],
    )


def _program(name: str) -> File:
    """A script that runs the stand-in under that name."""
    lines = (
        "#!/usr/bin/python3",
        "import sys",
        "sys.path.insert(0, '/stand-in')",
        "import stand_in",
        f"sys.exit(stand_in.main({name!r}, sys.argv[1:]))",
    )
    return File(text="\n".join(lines) + "\n", mode=0o755)


# -- CANN, the base of the images for Ascend --

_CANN_SOURCE = (
    "Ascend/cann-container-image at c5a67b3, tools/template/ubuntu.Dockerfile.j2: the image sets PYTHONPATH to "
    "the packages of CANN, which PYTHONPATH of a pod replaces and set_env.sh adds again"
)
_DEVICE_GROUP_SOURCE = (
    "Ascend NPU driver and firmware installation guide: the group HwHiAiUser has the number 1000 on nodes with "
    "containers, and /dev/davinci* belongs to it with mode 660"
)
_MINDIE = "Ascend/MindIE-LLM at 8b4871a"
_MINDIE_GUIDE = f"{_MINDIE}, docs/zh/user_guide/quick_start/quick_start.md"
_DEVICES_SOURCE = f"{_MINDIE_GUIDE}: visible devices are numbered from 0"
_KERNEL_META_SOURCE = (
    f"{_MINDIE_GUIDE}: operators write folders kernel_meta into the working directory"
)


def _cann(version: str, *, python: str) -> tuple[dict[str, str], dict[str, File]]:
    """Variables and files of ``quay.io/ascend/cann``."""
    home = f"/usr/local/Ascend/cann-{version}"
    packages = f"{home}/python/site-packages:{home}/opp/built-in/op_impl/ai_core/tbe"
    atb = "/usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_1"
    environment = {
        "PATH": f"/usr/local/python{python}/bin:{PATH}",
        "PYTHONPATH": packages,
        "ASCEND_HOME_PATH": home,
        "ATB_HOME_PATH": atb,
    }
    toolkit = (
        f"export ASCEND_TOOLKIT_HOME={home}",
        f"export ASCEND_HOME_PATH={home}",
        f"export PYTHONPATH={packages}:$PYTHONPATH",
    )
    return environment, {
        "/usr/local/Ascend/ascend-toolkit/set_env.sh": _script(*toolkit),
        "/usr/local/Ascend/nnal/atb/set_env.sh": _script(f"export ATB_HOME_PATH={atb}"),
    }


def _script(*lines: str) -> File:
    return File(text="\n".join(lines) + "\n", mode=0o555)


def _libraries(engine_name: str, program: str) -> Rule:
    return Rule(
        name=f"{engine_name}-libraries",
        program=program,
        kind="variables",
        value={
            "ASCEND_HOME_PATH": r"/usr/local/Ascend/cann-.+",
            "PYTHONPATH": r".*/cann-[^:]+/python/site-packages:.*ninefold_runtime\.zip",
        },
        changed={"PYTHONPATH": r"[^:]*ninefold_runtime\.zip"},
        source=_CANN_SOURCE,
    )


def _device_group(engine_name: str, program: str) -> Rule:
    return Rule(
        name=f"{engine_name}-device-group",
        program=program,
        kind="group",
        value=1000,
        changed=1001,
        source=_DEVICE_GROUP_SOURCE,
    )


def _kernel_meta(engine_name: str, program: str, *, installation: str) -> Rule:
    return Rule(
        name=f"{engine_name}-kernel-meta",
        program=program,
        kind="writable",
        value=".",
        changed=installation,
        source=_KERNEL_META_SOURCE,
    )


# -- Rules that several images share --


def _account(engine_name: str, program: str, *, source: str) -> Rule:
    return Rule(
        name=f"{engine_name}-account",
        program=program,
        kind="account",
        value=r"[a-z-]+",
        changed="root",
        source=source,
    )


def _home(engine_name: str, program: str, *, folder: str, source: str) -> Rule:
    return Rule(
        name=f"{engine_name}-home",
        program=program,
        kind="writable",
        value=f"{{HOME}}/{folder}",
        changed=f"/{folder}",
        source=source,
    )


def _key(engine_name: str, program: str, *, name: str, changed: str, source: str) -> Rule:
    return Rule(
        name=f"{engine_name}-key",
        program=program,
        kind="hidden",
        value=name,
        changed=changed,
        source=source,
    )


def _gang(engine_name: str, program: str, *, source: str, **more: str) -> Rule:
    names = {
        "NNODES": "1",
        "NODE_RANK": "0",
        "NPROC_PER_NODE": "2",
        "MASTER_ADDR": r"127\.0\.0\.1",
        "MASTER_PORT": r"\d+",
    }
    return Rule(
        name=f"{engine_name}-gang",
        program=program,
        kind="variables",
        value=names | more,
        changed=names | {"NPROC_PER_NODE": "8"},
        source=source,
    )


def _output(engine_name: str, program: str, *, source: str) -> Rule:
    return Rule(
        name=f"{engine_name}-output",
        program=program,
        kind="output",
        value="model-00001-of-00001.safetensors",
        changed="adapter_model.safetensors",
        source=source,
    )


_TORCH_ACCOUNT = (
    "pytorch/pytorch at 9a48faa, torch/_inductor/runtime/cache_dir_utils.py: getpass.getuser() names the "
    "folder of compiled kernels; it fails where neither a variable nor /etc/passwd names the account"
)
_VLLM = "vllm-project/vllm 0.23.0"
_VLLM_NONROOT = "vllm-project/vllm at 2cfa5c3, docker/entrypoints/vllm-nonroot-entrypoint.sh"
_VLLM_KEY = f"{_VLLM}, vllm/entrypoints/openai/api_server.py: without --api-key it is VLLM_API_KEY"
_SGLANG = "sgl-project/sglang 0.5.23"
_LLAMAFACTORY = "hiyouga/LLaMA-Factory v0.9.5"
_MS_SWIFT = "modelscope/ms-swift v4.3.0"
_MINDSPEED_LLM = "Ascend/MindSpeed-LLM 26.0.0"

# -- The images --


def _vllm() -> StandInImage:
    return StandInImage(
        engine="vllm",
        chip="nvidia-h800",
        programs={"/usr/local/bin/vllm": "vllm"},
        rules=(
            _account(
                "vllm",
                "vllm",
                source=f"{_VLLM_NONROOT}: without USER, getpass.getuser() raises KeyError for an account that "
                "/etc/passwd does not name",
            ),
            _home(
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
            _key("vllm", "vllm", name="VLLM_API_KEY", changed="NINEFOLD_INPUTS", source=_VLLM_KEY),
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


def _vllm_ascend() -> StandInImage:
    environment, files = _cann("9.1.0", python="3.12.13")
    return StandInImage(
        engine="vllm_ascend",
        chip="ascend-910b3",
        programs={"/usr/local/python3.12.13/bin/vllm": "vllm"},
        environment=environment,
        files=files,
        rules=(
            _device_group("vllm-ascend", "vllm"),
            _libraries("vllm-ascend", "vllm"),
            _kernel_meta("vllm-ascend", "vllm", installation="/workspace"),
            _key(
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
                source=_DEVICES_SOURCE,
            ),
        ),
    )


def _sglang() -> StandInImage:
    program = "sglang.launch_server"
    return StandInImage(
        engine="sglang",
        chip="nvidia-h800",
        programs={"/sgl-workspace/sglang/python/sglang/launch_server.py": program},
        files={
            "/sgl-workspace/sglang/python/sglang/__init__.py": File(),
            # The image has an editable installation.
            f"{_PACKAGES}/sglang.pth": File(text="/sgl-workspace/sglang/python\n"),
        },
        rules=(
            _account("sglang", program, source=_TORCH_ACCOUNT),
            _home(
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
            _key(
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


def _vllm_omni() -> StandInImage:
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
            _account("vllm-omni", "vllm", source=_TORCH_ACCOUNT),
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
            _key(
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


def _tei() -> StandInImage:
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
            _key(
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


def _xllm() -> StandInImage:
    environment, files = _cann("9.0.0", python="3.11.14")
    return StandInImage(
        engine="xllm",
        chip="ascend-910b3",
        programs={"/usr/local/bin/xllm": "xllm"},
        environment=environment,
        files=files,
        rules=(
            _device_group("xllm", "xllm"),
            _libraries("xllm", "xllm"),
            _kernel_meta("xllm", "xllm", installation="/usr/local/bin"),
            Rule(
                name="xllm-devices",
                program="xllm",
                kind="variables",
                value={"ASCEND_RT_VISIBLE_DEVICES": "0,1"},
                changed={"ASCEND_RT_VISIBLE_DEVICES": "2,3"},
                source=_DEVICES_SOURCE,
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


def _mindie() -> StandInImage:
    program, home = "mindieservice_daemon", "/usr/local/Ascend/mindie/latest/mindie-service"
    environment, files = _cann("8.5.1", python="3.11.14")
    atb_models = "/usr/local/Ascend/atb-models"
    scripts = {
        f"{atb_models}/set_env.sh": _script(f"export ATB_SPEED_HOME_PATH={atb_models}"),
        "/usr/local/Ascend/mindie/set_env.sh": _script(
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
            _device_group("mindie", program),
            _libraries("mindie", program),
            _kernel_meta("mindie", program, installation=home),
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
                source=f"{_MINDIE}, scripts/set_env.sh: sets MINDIE_LOG_TO_STDOUT to 0 and changes the mode of "
                "the installation; docs/zh/user_guide/user_manual/environment_variable.md: metrics are off by "
                "default",
            ),
            Rule(
                name="mindie-configuration",
                program=program,
                kind="private",
                value={"{MIES_CONFIG_JSON_PATH}": "640"},
                changed={"{NINEFOLD_WORK}/config.json": "640"},
                source=f"{_MINDIE}, src/utils/common_util.cpp and src/utils/log/file_utils.cpp: the configuration "
                "belongs to the account of the process and has mode 640 at most",
            ),
            Rule(
                name="mindie-inputs",
                program=program,
                kind="inputs_owner",
                value={"MINDIE_CHECK_INPUTFILES_PERMISSION": "0"},
                changed={"MINDIE_CHECK_INPUTFILES_PERMISSION": "1"},
                source=f"{_MINDIE}, src/utils/safe_path.cpp: weights and their config.json belong to the "
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
                source=f"{_MINDIE}, src/utils/common_util.cpp: an address is an IP address, and 0.0.0.0 needs "
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
                source=f"{_MINDIE}, src/server/conf/config.json: TLS is on by default, with certificates that the "
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
                source=f"{_DEVICES_SOURCE}, and worldSize is their number",
            ),
        ),
    )


def _llamafactory() -> StandInImage:
    program = "llamafactory-cli"
    return StandInImage(
        engine="llamafactory",
        chip="nvidia-h800",
        programs={f"/opt/conda/bin/{program}": program, "/opt/conda/bin/torchrun": "torchrun"},
        environment={"PATH": f"/opt/conda/bin:{PATH}"},
        rules=(
            _account("llamafactory", program, source=_TORCH_ACCOUNT),
            _home(
                "llamafactory",
                program,
                folder=".triton/autotune",
                source=f"{_LLAMAFACTORY}, docker/docker-cuda/Dockerfile: the image runs as root and has "
                "DeepSpeed, which keeps measurements of Triton below HOME",
            ),
            _gang(
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
            _output(
                "llamafactory",
                program,
                source=f"{_LLAMAFACTORY}, src/llamafactory/train/tuner.py: export writes the whole model to "
                "export_dir",
            ),
        ),
    )


def _ms_swift() -> StandInImage:
    environment, files = _cann("9.0.0", python="3.11.15")
    cache = "/mnt/workspace/.cache/modelscope/hub"
    return StandInImage(
        engine="ms_swift",
        chip="ascend-910b3",
        programs={
            "/usr/local/python3.11.15/bin/swift": "swift",
            f"{_PACKAGES}/torch/distributed/run.py": "torchrun",
        },
        environment={**environment, "MODELSCOPE_CACHE": cache},
        files={
            **files,
            f"{_PACKAGES}/torch/__init__.py": File(),
            f"{_PACKAGES}/torch/distributed/__init__.py": File(),
        },
        rules=(
            _device_group("ms-swift", "swift"),
            _libraries("ms-swift", "swift"),
            Rule(
                name="ms-swift-cache",
                program="swift",
                kind="writable",
                value="{MODELSCOPE_CACHE}",
                changed=cache,
                source="modelscope/modelscope at 25ed4a5, docker/ascend/Dockerfile.ascend: the image sets "
                f"MODELSCOPE_CACHE to {cache}; {_MS_SWIFT}, swift/dataset/loader.py: rows are cached there",
            ),
            _gang(
                "ms-swift",
                "swift",
                source=f"{_MS_SWIFT}, swift/cli/main.py: python -m torch.distributed.run gets the five variables",
            ),
            _output(
                "ms-swift",
                "swift",
                source=f"{_MS_SWIFT}, swift/pipelines/export/merge_lora.py: the whole model is written to "
                "output_dir",
            ),
        ),
    )


def _mindspeed_llm() -> StandInImage:
    program, home = "posttrain_gpt.py", "/workspace/MindSpeed-LLM"
    environment, files = _cann("9.0.0", python="3.11.15")
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
            _device_group("mindspeed-llm", program),
            _libraries("mindspeed-llm", program),
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
            _home(
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
            _output(
                "mindspeed-llm",
                "convert_ckpt_v2.py",
                source=f"{_MINDSPEED_LLM}, mindspeed_llm/tasks/checkpoint/convert_mg2hf.py: writes "
                "safetensors, and copies the configuration of --hf-cfg-dir",
            ),
        ),
    )


IMAGES = (
    _vllm(),
    _vllm_ascend(),
    _sglang(),
    _mindie(),
    _llamafactory(),
    _ms_swift(),
    _mindspeed_llm(),
    _vllm_omni(),
    _tei(),
    _xllm(),
)
