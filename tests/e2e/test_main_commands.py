"""The commands of docs/cli.md, run as they are printed by a client that is installed alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import pytest

from tests.documented_examples import COMMAND_LINE, fenced_blocks
from tests.e2e.product import ROOT, Product

pytestmark = [pytest.mark.product, pytest.mark.engine]

#: A guard against hanging, in seconds.
WITHIN = 600.0
#: A training that takes moments instead of the minutes of the page.
LONG, SHORT = "{max_steps: 200}", "{max_steps: 2, batch_size: 2}"
PROGRAM = """
import os, pathlib, sys
pathlib.Path(os.environ["NINEFOLD_OUTPUTS"], "level.txt").write_text(os.environ["LEVEL"])
print("arguments", *sys.argv[1:])
"""


def shorter(text: str) -> str:
    """Return commands or documents of the page with a short training."""
    assert LONG in text
    return text.replace(LONG, SHORT)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new virtual environment with the wheel of the client alone."""
    work = tmp_path_factory.mktemp("client")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    subprocess.run([*build, work], cwd=ROOT / "client", check=True, capture_output=True)
    (wheel,) = work.glob("ninefold_client-*.whl")
    uv, python = Path(sys.executable).with_name("uv"), work / "venv" / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", python.parents[1]], check=True)
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", python, wheel]
    subprocess.run(install, check=True, timeout=WITHIN)
    alone = subprocess.run([python, "-c", "import django"], check=False, capture_output=True)
    assert alone.returncode, "the server is installed beside the client"
    return python.parent


@pytest.fixture
def environment(programs: Path, tmp_path: Path) -> Mapping[str, str]:
    """A home of its own, and nothing of Ninefold in the variables."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NINEFOLD_", "PYTHON", "XDG_"))
    }
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    # Below a checkout, as the page has it; what the commands write stays here.
    (tmp_path / "platform").symlink_to(ROOT / "platform")
    return {**inherited, "HOME": str(tmp_path), "PATH": path}


@pytest.fixture
def run(product: Product, environment: Mapping[str, str], tmp_path: Path) -> Callable[..., str]:
    """Run a text of commands in a shell, up to the first failure; return what they printed."""

    def run_commands(commands: str, *, folder: Path = tmp_path) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN,
            check=False,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}"
        return done.stdout

    return run_commands


def sign_in(commands: str, *, product: Product, environment: Mapping[str, str]) -> str:
    """Run ``ninefold login``, and approve its code as a person does in a browser; return what it printed."""
    with subprocess.Popen(
        ["bash", "-euc", commands],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        announced = re.fullmatch(r"Open (\S+) and compare the code (\S+)\.\n", first)
        if announced is None:
            pytest.fail(first + process.stdout.read())
        page, code = announced.groups()
        with httpx.Client(base_url=product.web, follow_redirects=True, timeout=60) as browser:
            form = {"username": "admin", "password": product.password}
            shown = browser.post("/login", data={**form, **_token(browser.get(page))})
            shown = browser.get(page)
            assert code in shown.text
            decision = {"user_code": code, "decision": "approve", **_token(shown)}
            headers = {"Referer": page}
            assert browser.post("/device", data=decision, headers=headers).status_code == 200
        printed: str = process.stdout.read()
        assert process.wait(timeout=WITHIN) == 0, printed
    return printed


def _token(page: httpx.Response) -> dict[str, str]:
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    assert found is not None, page.text
    return {"csrfmiddlewaretoken": found.group(1)}


def test_the_commands_of_the_page_lead_to_an_answered_chat(
    run: Callable[..., str], product: Product, environment: Mapping[str, str], tmp_path: Path
) -> None:
    install, login, models, tune, deploy, chat = fenced_blocks(
        COMMAND_LINE, "From installation to an answered chat"
    )
    assert install.startswith("pip install ./client\n")
    signed_in = sign_in(
        login.replace("http://127.0.0.1:8000", product.web),
        product=product,
        environment=environment,
    )
    assert f"Signed in to {product.web} as admin" in signed_in
    assert "administrator" in signed_in
    configuration = tmp_path / ".config" / "ninefold" / "config.yaml"
    assert configuration.stat().st_mode & 0o777 == 0o600

    assert "ninefold-tiny-qwen2" in run(models)
    assert "uploading config.json" in run(shorter(tune))
    assert "job/addresses" in run("ninefold get jobs addresses -o name")
    assert "SUCCEEDED" in run("ninefold events addresses").upper()
    assert "ready" in run(deploy)
    assert "parcels" in run("ninefold watch deployments parcels --count 1")
    assert run(chat.replace(" -m ", " --max-tokens 8 -m ")).strip()

    (program,) = fenced_blocks(COMMAND_LINE, "Programs")
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "train.py").write_text(PROGRAM)
    assert "arguments --fast" in run(program, folder=tmp_path / "program")

    heading = "The same by documents"
    (documents,) = fenced_blocks(COMMAND_LINE, heading, language="yaml")
    (by_documents,) = fenced_blocks(COMMAND_LINE, heading)
    # The names of the page are those of the steps before.
    run("ninefold delete deployments parcels --yes")
    run("ninefold delete datasets addresses --yes")
    (tmp_path / "address-parser.yaml").write_text(shorter(documents))
    applied = run(by_documents.replace(" -m ", " --max-tokens 8 -m "))
    for name in ("Dataset/addresses", "Job/tune-addresses", "Deployment/parcels"):
        assert f"{name} (new)" in applied
        assert f"{name} created" in applied
    again = run("ninefold apply -f address-parser.yaml --dry-run")
    assert again.count(" unchanged (dry run)") == 3, again
    assert run("ninefold logs deployment/parcels --tail 200").strip()
    assert "become_ready" in run("ninefold events deployment/parcels")

    assert "default" in run("ninefold quota")
    refused = run("! ninefold delete deployments parcels")
    assert "Confirm with --yes" in refused
    run("ninefold delete deployments parcels --yes")
    assert "parcels" not in run("ninefold get deployments -o name")
    run("ninefold delete datasets addresses --yes")
    assert "Removed context default" in run("ninefold logout")
    assert "ninefold login" in run("! ninefold whoami")
