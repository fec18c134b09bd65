"""What goes wrong on a real day: processes die, the broker loses everything, the product is restarted."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import tarfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.main_job import MODEL
from tests.e2e.product import Product, processes, running_product
from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until

pytestmark = pytest.mark.product

ENDED = ("succeeded", "failed", "cancelled")
#: Writes a line each half second and leaves a file behind; goes on where it was told to.
PATIENT = """
import os, pathlib, sys, time
for number in range(int(sys.argv[1])):
    print("tick", number, flush=True)
    time.sleep(0.5)
pathlib.Path(os.environ["NINEFOLD_OUTPUTS"], "result.txt").write_text("done")
"""


def submit_script(
    client: RestClient,
    folder: Path,
    *,
    text: str = PATIENT,
    arguments: tuple[str, ...] = ("20",),
    max_retries: int = 3,
) -> str:
    """A script job; its uid."""
    archive = folder / "code.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        content = text.encode()
        entry = tarfile.TarInfo("main.py")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    code = client.upload("code", file=archive)
    job = client.post(
        "jobs",
        {
            "kind": "script",
            "name": "patient",
            "code": code["uid"],
            "spec": {"argv": ["python", "main.py", *arguments]},
            "retry_policy": {"max_retries": max_retries},
        },
    )
    uid: str = job["uid"]
    return uid


def running(client: RestClient, uid: str) -> None:
    """Wait until its program has written something."""
    wait_until(
        lambda: client.text(f"jobs/{uid}/log"),
        lambda text: "tick 1" in text,
        within=300,
        what="a job that runs",
    )


def ended(client: RestClient, uid: str, *, within: float = 120) -> dict[str, Any]:
    job: dict[str, Any] = wait_until(
        lambda: client.get(f"jobs/{uid}"),
        lambda seen: seen["state"] in ENDED,
        within=within,
        what="the end of the job",
    )
    return job


def kill(product: Product, *fragments: str) -> None:
    """Kill -9 what has those words on its command line, once it is there."""
    victims = wait_until(
        lambda: processes(product, *fragments), bool, within=60, what=f"a process of {fragments}"
    )
    for victim in victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()


def attempts_of(client: RestClient, uid: str) -> list[dict[str, Any]]:
    answer = client.get(f"jobs/{uid}/attempts")
    found: list[dict[str, Any]] = answer["results"] if isinstance(answer, dict) else answer
    return found


def test_a_job_outlives_a_restart_of_the_whole_product(
    product: Product, client: RestClient, tmp_path: Path
) -> None:
    uid = submit_script(client, tmp_path, arguments=("60",))
    running(client, uid)
    record = json.loads((product.home / "run" / "supervisor.json").read_text())
    supervisor = record["pid"]
    os.kill(supervisor, signal.SIGTERM)
    wait_until(
        (product.home / "run" / "supervisor.json").exists,
        lambda there: not there,
        within=60,
        what="the end of the product",
    )
    product.launcher("up", "--detach")
    assert ended(client, uid)["state"] == "succeeded"
    assert len(attempts_of(client, uid)) == 1
    assert "tick 59" in client.text(f"jobs/{uid}/log")


def test_a_job_ends_right_although_workers_are_killed_and_the_broker_is_emptied(
    product: Product, client: RestClient, tmp_path: Path
) -> None:
    uid = submit_script(client, tmp_path, arguments=("16",))
    for _ in range(3):
        kill(product, "celery", "worker")
        for message in (product.home / "broker").glob("*.msg"):
            message.unlink(missing_ok=True)
    assert ended(client, uid)["state"] == "succeeded"
    assert len(attempts_of(client, uid)) == 1


def test_without_retries_a_killed_program_fails_and_a_retry_by_hand_succeeds(
    product: Product, client: RestClient, tmp_path: Path
) -> None:
    uid = submit_script(client, tmp_path, max_retries=0)
    running(client, uid)
    kill(product, "main.py")
    failed = ended(client, uid)
    assert failed["state"] == "failed"
    assert "tick" in attempts_of(client, uid)[-1]["log_tail"]
    client.post(f"jobs/{uid}/retry")
    wait_until(
        lambda: client.get(f"jobs/{uid}")["state"],
        lambda state: state == "succeeded",
        within=120,
        what="the success of the retry",
    )
    assert [attempt["state"] for attempt in attempts_of(client, uid)] in (
        ["failed", "succeeded"],
        ["succeeded", "failed"],
    )


def test_a_cancelled_job_leaves_no_process_behind(
    product: Product, client: RestClient, tmp_path: Path
) -> None:
    uid = submit_script(client, tmp_path, arguments=("600",))
    running(client, uid)
    client.post(f"jobs/{uid}/cancel")
    assert ended(client, uid)["state"] == "cancelled"
    assert not processes(product, "main.py", "600")


@pytest.mark.browser
def test_a_live_page_goes_on_by_itself_after_the_web_process_was_killed(
    product: Product, client: RestClient, browser: Browser, tmp_path: Path
) -> None:
    uid = submit_script(client, tmp_path, arguments=("40",))
    running(client, uid)
    context = browser.new_context(base_url=product.web, locale="en")
    page = context.new_page()
    page.goto(f"/login?next=/jobs/{uid}")
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(product.password)
    page.keyboard.press("Enter")
    expect(page.locator("#job-state [data-state=running]")).to_be_visible()
    kill(product, "config.web_server")
    expect(page.locator("#job-state [data-state=succeeded]")).to_be_visible(timeout=300_000)
    context.close()


def test_a_job_without_a_free_card_waits_and_says_why(
    product: Product, client: RestClient, tmp_path: Path
) -> None:
    job = client.post(
        "jobs",
        {
            "kind": "script",
            "name": "too large",
            "cards": 64,
            "spec": {"argv": ["python", "-c", "print()"]},
        },
    )
    waiting = wait_until(
        lambda: attempts_of(client, job["uid"])[0],
        lambda attempt: "the largest node has 4" in attempt["message"]["message"],
        within=30,
        what="a reason with numbers",
    )
    assert waiting["state"] == "pending"
    client.post(f"jobs/{job['uid']}/cancel")
    assert ended(client, job["uid"])["state"] == "cancelled"


def test_a_second_up_shows_the_running_product(product: Product) -> None:
    said = product.launcher("up", "--detach")
    assert product.web in said
    assert "is running since" in said


def test_no_secret_of_the_product_is_within_reach_of_a_job(
    product: Product, client: RestClient, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("jobs have an account of their own only where the product runs as root")
    curious = (
        "import os, pathlib\n"
        f"home = pathlib.Path({str(product.home)!r})\n"
        "for name in ('secrets', 'pg', 'run', 'artifacts', 'broker'):\n"
        "    try:\n"
        "        print('ENTERED', name, list((home / name).iterdir()))\n"
        "    except PermissionError:\n"
        "        print('refused', name)\n"
        "print(sorted(name for name in os.environ if name.endswith('_TOKEN') or 'DATABASE' in name))\n"
    )
    uid = submit_script(client, tmp_path, text=curious)
    assert ended(client, uid, within=300)["state"] == "succeeded"
    log = client.text(f"jobs/{uid}/log")
    assert "ENTERED" not in log
    assert log.count("refused") == 5
    assert "[]" in log


def test_down_stops_the_jobs_as_well(tmp_path: Path) -> None:
    with running_product() as other:
        client = other.client()
        uid = submit_script(client, tmp_path, arguments=("600",))
        running(client, uid)
        other.launcher("down")
        assert not processes(other, "main.py")


def sample_model(client: RestClient) -> str:
    """The uid of the tiny model, once its job has built it."""
    versions = wait_until(
        lambda: client.get("model-versions", model=MODEL)["results"],
        bool,
        within=600,
        what="the sample model",
    )
    uid: str = versions[0]["uid"]
    return uid


@pytest.mark.engine
def test_a_killed_trainer_is_retried_from_its_checkpoint(
    product: Product, client: RestClient
) -> None:
    sample = Path(str(files("ninefold_runtime.samples") / "data" / "addresses.jsonl"))
    dataset = client.upload("datasets", file=sample, name="addresses-for-a-killed-trainer")
    job = client.post(
        "jobs",
        {
            "kind": "finetune",
            "name": "killed once",
            "model_version": sample_model(client),
            "dataset_version": dataset["uid"],
            "output_name": "killed-once",
            "spec": {
                "max_steps": 120,
                "checkpoint_every_steps": 20,
                "log_every_steps": 5,
                "validation_split": None,
            },
        },
    )
    uid = job["uid"]
    wait_until(
        lambda: client.get(f"jobs/{uid}/curve")["points"],
        lambda points: bool(points) and points[-1]["step"] >= 45,
        within=400,
        what="a checkpoint to go on from",
    )
    kill(product, "ninefold_runtime", "finetune")
    after = ended(client, uid, within=400)
    assert after["state"] == "succeeded", after["state_reason"]
    first, second = sorted(attempts_of(client, uid), key=lambda attempt: int(attempt["number"]))
    assert (first["exit_code"], first["exit_cause"]) == (137, "killed")
    assert (second["continues"], second["retries"], second["retry_cause"]) == (
        first["uid"],
        1,
        "killed",
    )
    assert second["progress"]["step"] == 120
    versions = client.get("model-versions", model="killed-once")["results"]
    assert [version["number"] for version in versions] == [1]
    assert "going on from the checkpoint at step 4" in client.text(f"jobs/{uid}/log")


@pytest.mark.engine
def test_a_deployment_whose_process_dies_is_restarted_and_shows_it(
    product: Product, client: RestClient
) -> None:
    created = client.post("deployments", {"name": "mortal", "model_version": sample_model(client)})
    address = f"deployments/{created['uid']}"

    def becomes(state: str) -> dict[str, Any]:
        found: dict[str, Any] = wait_until(
            lambda: client.get(address),
            lambda seen: seen["state"] == state,
            within=200,
            what=f"a {state} deployment",
        )
        return found

    becomes("ready")
    kill(product, "ninefold_runtime", "serve")
    assert "consecutive crashes: 1" in becomes("degraded")["state_reason"]["message"]
    replica = becomes("ready")["revisions"][0]["backends"][0]["replicas"][0]
    assert replica["crashes"] == 1
    client.post(f"{address}/stop")
    becomes("stopped")
    client.delete(address)
