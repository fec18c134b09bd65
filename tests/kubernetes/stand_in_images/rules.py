"""What stand-ins for images are made of: rules, files, and the rules that several images share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from controlplane.ports.adapter_registry import all_chips, engine_by_name, image_template
from controlplane.ports.engines import ModelFacts
from tests.kubernetes.images import PATH, File
from tests.unit.engines.training_requests import QWEN3_8B

#: Folders of this machine that the pods mount: Python, a shell and their libraries. Not ``/usr``, which would hide
#: the programs of the images in ``/usr/local``.
MOUNTED = ("/usr/bin", "/usr/lib", "/bin", "/lib", "/lib64")
#: Packages of the images, where this machine's Python looks for them.
PACKAGES = f"/usr/local/lib/{Path('/usr/bin/python3').resolve().name}/dist-packages"
_STAND_IN = Path(__file__).parents[1] / "stand_in.py"


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
MINDIE = "Ascend/MindIE-LLM at 8b4871a"
MINDIE_GUIDE = f"{MINDIE}, docs/zh/user_guide/quick_start/quick_start.md"
DEVICES_SOURCE = f"{MINDIE_GUIDE}: visible devices are numbered from 0"
_KERNEL_META_SOURCE = (
    f"{MINDIE_GUIDE}: operators write folders kernel_meta into the working directory"
)


def cann_base(version: str, *, python: str) -> tuple[dict[str, str], dict[str, File]]:
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
        "/usr/local/Ascend/ascend-toolkit/set_env.sh": script(*toolkit),
        "/usr/local/Ascend/nnal/atb/set_env.sh": script(f"export ATB_HOME_PATH={atb}"),
    }


def script(*lines: str) -> File:
    return File(text="\n".join(lines) + "\n", mode=0o555)


def libraries_rule(engine_name: str, program: str) -> Rule:
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


def device_group_rule(engine_name: str, program: str) -> Rule:
    return Rule(
        name=f"{engine_name}-device-group",
        program=program,
        kind="group",
        value=1000,
        changed=1001,
        source=_DEVICE_GROUP_SOURCE,
    )


def kernel_meta_rule(engine_name: str, program: str, *, installation: str) -> Rule:
    return Rule(
        name=f"{engine_name}-kernel-meta",
        program=program,
        kind="writable",
        value=".",
        changed=installation,
        source=_KERNEL_META_SOURCE,
    )


# -- Rules that several images share --


def account_rule(engine_name: str, program: str, *, source: str) -> Rule:
    return Rule(
        name=f"{engine_name}-account",
        program=program,
        kind="account",
        value=r"[a-z-]+",
        changed="root",
        source=source,
    )


def home_rule(engine_name: str, program: str, *, folder: str, source: str) -> Rule:
    return Rule(
        name=f"{engine_name}-home",
        program=program,
        kind="writable",
        value=f"{{HOME}}/{folder}",
        changed=f"/{folder}",
        source=source,
    )


def key_rule(engine_name: str, program: str, *, name: str, changed: str, source: str) -> Rule:
    return Rule(
        name=f"{engine_name}-key",
        program=program,
        kind="hidden",
        value=name,
        changed=changed,
        source=source,
    )


def gang_rule(engine_name: str, program: str, *, source: str, **more: str) -> Rule:
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


def output_rule(engine_name: str, program: str, *, source: str) -> Rule:
    return Rule(
        name=f"{engine_name}-output",
        program=program,
        kind="output",
        value="model-00001-of-00001.safetensors",
        changed="adapter_model.safetensors",
        source=source,
    )


TORCH_ACCOUNT = (
    "pytorch/pytorch at 9a48faa, torch/_inductor/runtime/cache_dir_utils.py: getpass.getuser() names the "
    "folder of compiled kernels; it fails where neither a variable nor /etc/passwd names the account"
)
