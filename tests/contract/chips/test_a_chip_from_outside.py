"""A chip that somebody else packaged is a chip like any other, with no change inside the product.

The package lies in ``tests/plugins``. It is built into a wheel and unpacked into a folder of its own, as an
installer would do, and that folder is put on the path.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django import forms
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Team, User
from apps.fleet import services as fleet
from apps.fleet.models import Cluster
from apps.jobs.services import JobRequest, job_request_check, job_submit
from apps.jobs.web.forms import ScriptForm
from apps.quotas.models import Claim, Queue
from apps.serving.web.forms import DeploymentForm
from controlplane.adapters.engines import container_commands
from controlplane.domain.common.accelerators import Dtype
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.health.faults import FaultLevel
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.telemetry.metrics import Metric
from controlplane.ports import adapter_registry
from controlplane.ports.chips import discover_cards
from controlplane.ports.clusters import ObservedCard, ObservedNode
from controlplane.ports.engines import EngineTask, RenderRequest
from controlplane.ports.expositions import ExpositionReader
from controlplane.ports.launches import LaunchPlacement
from tests import factories

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "tests" / "plugins" / "ninefold-osprey"
NAME = "osprey-2"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
LABELS = {"osprey.example/product": "OSP2", "osprey.example/board": "quad"}


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package was installed into."""
    work = tmp_path_factory.mktemp("osprey")
    source, target = work / "source", work / "target"
    shutil.copytree(PACKAGE, source)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(work / "wheel")]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    (wheel,) = (work / "wheel").iterdir()
    zipfile.ZipFile(wheel).extractall(target)
    return target


@pytest.fixture
def outside(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(installed))
    adapter_registry.chip_plugins.cache_clear()
    adapter_registry.all_chips.cache_clear()
    yield installed
    monkeypatch.undo()
    sys.modules.pop("ninefold_osprey", None)
    adapter_registry.chip_plugins.cache_clear()
    adapter_registry.all_chips.cache_clear()


@pytest.fixture
def fleet_with_it(outside: Path, db: None) -> Cluster:
    """A cluster with one node of eight of these cards."""
    cluster = fleet.cluster_ensure(name="aviary", kind="local")
    node = ObservedNode(
        name="perch",
        capacity=Resources(cpu=Millicpu(64_000), memory=Bytes(512 * GIB)),
        cards=tuple(ObservedCard(index=index, chip=NAME) for index in range(8)),
        labels=LABELS,
    )
    fleet.inventory_record(cluster=cluster, nodes=[node], isolation="", at=timezone.now())
    return cluster


def test_a_fresh_process_knows_it_once_it_is_installed(installed: Path) -> None:
    program = (
        "import json; from controlplane.ports import adapter_registry; "
        "print(json.dumps([adapter_registry.chip_by_name('OSP2').name, sorted(adapter_registry.chip_plugins())]))"
    )
    path = os.pathsep.join([str(ROOT / "platform"), str(ROOT), str(installed)])
    known = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    name, vendors = json.loads(known.stdout)
    assert name == NAME
    assert "osprey" in vendors


def test_without_the_package_nobody_knows_it() -> None:
    assert adapter_registry.chip_by_name(NAME) is None


def test_what_is_sized_by_it_has_its_figures(outside: Path) -> None:
    chip = adapter_registry.all_chips()[NAME]
    assert chip.memory == 96 * GIB
    assert chip.memory_bandwidth == 2.4e12
    assert chip.peak_rates[Dtype.BFLOAT16] == 500e12
    assert adapter_registry.all_chips()["osprey-1"].peak_rates == {}


def test_a_spec_rendered_for_it_differs_in_what_the_chip_gives(outside: Path) -> None:
    engine = adapter_registry.engine_by_name("transformers")
    chip = adapter_registry.all_chips()[NAME]
    assert engine.unsupported_reason(EngineTask.SCRIPT, chip) == ""
    launch = engine.render(
        RenderRequest(
            task=EngineTask.SCRIPT,
            name="attempt-1",
            spec=engine.normalise(EngineTask.SCRIPT, {"argv": ["true"]}),
            chip=chip,
            placements=(LaunchPlacement(node="perch", cards=(2, 3)),),
            inputs=(),
        )
    )
    environment = launch.roles[0].environment
    assert environment["OSPREY_RT_DEVICES"] == "2,3"
    assert environment["OSPREY_LOG_LEVEL"] == "warning"


def test_engines_run_on_it_in_the_images_that_its_maker_names(outside: Path) -> None:
    engine = adapter_registry.engine_by_name("llamafactory")
    image = adapter_registry.image_template(
        engine.profile(), engine="llamafactory", chip=adapter_registry.all_chips()[NAME]
    )
    assert image == "registry.osprey.example/llamafactory:osprey"


def test_engines_are_told_the_scripts_of_its_images(outside: Path) -> None:
    shared, _differing = container_commands.chip_variables(
        adapter_registry.all_chips()[NAME], (LaunchPlacement(node="perch", cards=(0,)),)
    )
    assert shared["NINEFOLD_SET_ENV"] == "/opt/osprey/environment.sh"


@pytest.mark.parametrize(
    ("name", "task"),
    [("transformers", EngineTask.FINETUNE), ("llm_compressor", EngineTask.QUANTIZE)],
)
def test_an_environment_without_its_torch_is_refused_by_the_packages_name(
    outside: Path, name: str, task: EngineTask
) -> None:
    reason = adapter_registry.engine_by_name(name).unsupported_reason(
        task, adapter_registry.all_chips()[NAME]
    )
    assert reason.endswith("Osprey 2 requires torch_osprey")


def test_its_nodes_are_recognised_with_their_rings(outside: Path) -> None:
    (found,) = discover_cards(
        adapter_registry.chip_plugins().values(),
        labels={**LABELS, "osprey.example/memory": "98304"},
        annotations={},
        allocatable={"osprey.example/npu": "8"},
    )
    assert found.chip == adapter_registry.all_chips()[NAME]
    assert (found.count, found.memory) == (8, 96 * GIB)
    assert found.geometry.rings == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_its_exporter_is_read_and_its_faults_have_levels(outside: Path) -> None:
    profile = adapter_registry.chip_plugins()["osprey"].profile()
    assert profile.exporter is not None
    text = (
        'osprey_busy_ratio{serial="S1"} 0.5\n'
        'osprey_memory_used_mib{serial="S1"} 1024\n'
        'osprey_memory_free_mib{serial="S1"} 3072\n'
        'osprey_power_mw{serial="S1"} 250000\n'
        'osprey_last_fault{serial="S1"} 31\n'
    )
    (reading,) = (
        ExpositionReader(profile.exporter, vendor="osprey").read(text, at=AT, node="n1").readings
    )
    assert reading.serial == "S1"
    assert reading.metrics == {
        Metric.UTILIZATION: 50,
        Metric.MEMORY_USED: GIB,
        Metric.MEMORY_TOTAL: 4 * GIB,
        Metric.POWER: 250,
    }
    assert reading.faults == ("31",)
    assert profile.faults.level("31") is FaultLevel.ISOLATE
    assert profile.faults.level("99", minor=True) is FaultLevel.NOTE


@pytest.fixture
def user(db: None) -> User:
    return factories.user(team=factories.team())


def script(team: Team, queue: Queue, *, cards: int) -> JobRequest:
    return JobRequest(
        kind=JobKind.SCRIPT,
        name="try",
        spec={"argv": ["true"]},
        queue=queue,
        chips=(NAME,),
        cards=cards,
    )


def offered(form: forms.Form) -> set[object]:
    field = form.fields["chip"]
    assert isinstance(field, forms.ChoiceField)
    return {value for value, _label in field.widget.choices}


def test_forms_offer_it_once_the_fleet_has_it(fleet_with_it: Cluster, user: User) -> None:
    assert NAME in offered(ScriptForm(user=user))
    assert NAME in offered(DeploymentForm(user=user))


def test_a_request_that_its_hardware_does_not_give_out_is_refused(
    outside: Path, user: User
) -> None:
    found = job_request_check(script(Team.objects.get(), factories.queue(), cards=3))
    assert [(one.field, one.message) for one in found] == [
        (
            "cards",
            "3 cards of osprey-2 cannot be allocated on one node, which supports 1, 2, 4, 8; request 4",
        )
    ]


def test_jobs_get_cards_of_one_ring(fleet_with_it: Cluster, user: User) -> None:
    team, queue = Team.objects.get(), factories.queue()
    for cards in (2, 4):
        job_submit(actor=user, team=team, request=script(team, queue, cards=cards))
    factories.schedule()

    given = [
        sorted(one.card.index for one in claim.allocations.select_related("card"))
        for claim in Claim.objects.order_by("id")
    ]
    assert given == [[0, 1], [4, 5, 6, 7]]


def test_rings_that_a_cluster_saw_go_before_those_of_the_chip(
    fleet_with_it: Cluster, user: User
) -> None:
    node = ObservedNode(
        name="perch",
        capacity=Resources(cpu=Millicpu(64_000), memory=Bytes(512 * GIB)),
        cards=tuple(ObservedCard(index=index, chip=NAME) for index in range(8)),
        rings=((0, 2, 4, 6), (1, 3, 5, 7)),
    )
    fleet.inventory_record(cluster=fleet_with_it, nodes=[node], isolation="", at=timezone.now())
    team, queue = Team.objects.get(), factories.queue()
    job_submit(actor=user, team=team, request=script(team, queue, cards=4))
    factories.schedule()

    cards = Claim.objects.get().allocations.values_list("card__index", flat=True)
    assert sorted(cards) == [0, 2, 4, 6]


def test_pages_and_rest_show_it(fleet_with_it: Cluster, user: User) -> None:
    client = Client()
    client.force_login(user)

    everything = client.get("/fleet/chips").content.decode()
    page = client.get(f"/fleet/chips/{NAME}").content.decode()
    answer = client.get(f"/api/v1/chips/{NAME}").json()

    assert "Osprey 2" in everything
    assert "Not run on hardware" in page
    for text in (
        "96 GiB",
        "500 TFLOPS",
        "osprey.example/npu",
        "osprey_power_mw",
        "OSPREY_RT_DEVICES=0,1",
    ):
        assert text in page
    assert (answer["vendor"], answer["cards"], answer["run_on_hardware"]) == ("osprey", 8, False)
    assert NAME in {one["name"] for one in client.get("/api/v1/chips").json()}
