"""Packages as their makers published them, kept below ``var/published``, and what their own parsers read.

The engine's Python has torch and the like already; what else a parser imports is listed here, or is none of
its business (``readers/read_serving.py``).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]
_CACHE = PROJECT / "var" / "published"
_READERS = Path(__file__).parent / "readers"
_LIMIT_SECONDS = 600.0

#: transformers is one that both declare to work with, tokenizers the one that it asks for.
_TRANSFORMERS = ("transformers==5.6.0", "tokenizers==0.22.2")
LLAMAFACTORY = (
    "llamafactory==0.9.5",
    "omegaconf==2.3.0",
    "antlr4-python3-runtime==4.9.3",
    *_TRANSFORMERS,
)
_OF_SWIFT = (
    *("addict==2.4.0", "aiohappyeyeballs==2.7.1", "aiohttp==3.14.5", "aiosignal==1.4.0"),
    *("attrs==26.1.0", "cffi==2.1.1", "cryptography==50.0.2", "einops==0.8.2"),
    *("frozenlist==1.8.0", "json_repair==0.64.5", "matplotlib==3.11.2", "modelscope==1.40.2"),
    *("modelscope_hub==0.5.1", "multidict==7.2.1", "peft==0.20.0", "pillow==13.0.0"),
    *("charset_normalizer==3.5.2", "propcache==0.5.4", "pycparser==3.12", "requests==2.34.2"),
    *("scipy==1.17.1", "tiktoken==0.14.0", "trl==0.29.1", "urllib3==2.8.0", "yarl==1.25.1"),
    *_TRANSFORMERS,
)
#: The oldest and the newest that the engine takes; the image for Ascend holds the first.
MS_SWIFT = {version: (f"ms-swift=={version}", *_OF_SWIFT) for version in ("4.3.0", "4.6.0")}


def installed(requirements: Sequence[str]) -> Path:
    """The folder to put on ``PYTHONPATH``; the test is skipped where no registry can be reached."""
    digest = hashlib.sha256(" ".join(requirements).encode()).hexdigest()[:12]
    return _cached(
        f"{requirements[0].replace('==', '-')}-{digest}",
        requirements,
        pip=["install", "--no-deps", "--target"],
    )


def modules(requirement: str) -> Path:
    """As ``installed``, with the modules only: the compiled libraries would be gigabytes."""
    return _cached(
        f"{requirement.replace('==', '-')}-modules",
        [requirement],
        pip=["download", "--no-deps", "--only-binary=:all:", "--python-version=3.11", "--dest"],
        settle=_unpack_modules,
    )


def _unpack_modules(folder: Path) -> None:
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if _is_read(name)])
    wheel.unlink()


def _is_read(name: str) -> bool:
    # Arguments are made of classes of msgspec, which is compiled, and small.
    return name.endswith((".py", ".json", "METADATA")) or name.startswith("msgspec/")


def _cached(
    name: str,
    requirements: Sequence[str],
    *,
    pip: Sequence[str],
    settle: Callable[[Path], None] = lambda folder: None,
) -> Path:
    """The folder of that name, which pip fills and ``settle`` puts in order the first time."""
    folder = _CACHE / name
    if folder.is_dir():
        return folder
    staging = folder.with_name(f".{name}.{os.getpid()}")
    finished = subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", *pip, str(staging), *requirements],
        capture_output=True,
        text=True,
        timeout=_LIMIT_SECONDS,
        check=False,
    )
    if finished.returncode:
        shutil.rmtree(staging, ignore_errors=True)
        pytest.skip(f"{requirements[0]} cannot be had: {finished.stderr.strip()[-300:]}")
    settle(staging)
    staging.rename(folder)
    return folder


def read(
    python: Path, reader: str, *options: str, packages: Sequence[Path], asked: Sequence[Any]
) -> list[Any]:
    """What a reader made of each thing asked; a parser that refuses fails the test with its own words."""
    with TemporaryDirectory() as home:
        finished = subprocess.run(
            [str(python), str(_READERS / f"{reader}.py"), *options],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "HOME": home,
                "HF_HUB_OFFLINE": "1",
                "PYTHONPATH": os.pathsep.join(map(str, packages)),
            },
        )
    assert finished.returncode == 0, finished.stderr[-3000:]
    answers: list[Any] = json.loads(finished.stdout.strip().splitlines()[-1])
    return answers
