"""What is said of chips becomes chips of the fleet, and the cards of a fine-tune are divided."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from apps.fleet import services as fleet
from apps.jobs import services
from apps.jobs.models import Job
from apps.jobs.services import JobRequest, SpecRefused
from apps.jobs.services.resource_resolution import default_engine_for_task, expand_chip_names
from apps.quotas.models import Claim
from apps.quotas.selectors import snapshots
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.quotas.claims import GangShape
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import ObservedCard, ObservedNode
from controlplane.ports.engines import EngineTask
from tests.integration.company import Company

QWEN2_7B = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000.0,
    "torch_dtype": "bfloat16",
}
REAL_ENGINE, REAL_NAMES = adapter_registry.engine_by_name, adapter_registry.engine_names


@pytest.fixture(autouse=True)
def real_engines(company: Company, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    """The installed engines, and a model of 7.6 billion parameters."""
    monkeypatch.setattr(adapter_registry, "engine_by_name", REAL_ENGINE)
    monkeypatch.setattr(adapter_registry, "engine_names", REAL_NAMES)
    company.model.config = QWEN2_7B
    company.model.parameters = 7_615_616_512
    company.model.context_length = 32768
    company.model.save()


def give(company: Company, *, chip: str, nodes: int = 1, cards: int = 8) -> None:
    """The fleet has so many more nodes."""
    cluster = fleet.cluster_ensure(name=f"with-{chip}", kind="fake")
    observed = [
        ObservedNode(
            name=f"{chip}-{number}",
            cards=tuple(
                ObservedCard(index=index, chip=chip, memory=Bytes(64 * GIB))
                for index in range(cards)
            ),
            capacity=Resources(cpu=Millicpu(96_000), memory=Bytes(768 * GIB)),
        )
        for number in range(nodes)
    ]
    fleet.inventory_record(cluster=cluster, nodes=observed, isolation="", at=company.at)


def asked(company: Company, **changes: Any) -> JobRequest:
    return JobRequest(
        **{
            "kind": JobKind.FINETUNE,
            "name": "tune",
            "spec": {},
            "queue": company.queue,
            "engine": "ms_swift",
            "model_version": company.model,
            "dataset_version": company.dataset,
            "output_name": "parser",
            "chips": ("any",),
            "cards": 8,
            **changes,
        }
    )


def submitted(company: Company, **changes: Any) -> Job:
    return services.job_submit(
        actor=company.engineer, team=company.team, request=asked(company, **changes)
    )


def refused(company: Company, **changes: Any) -> dict[str, str]:
    with pytest.raises(SpecRefused) as refusal:
        submitted(company, **changes)
    assert not Job.objects.exists()
    return {finding.field: finding.message for finding in refusal.value.findings}


def test_any_resolves_to_equal_chips_with_cpus_last(company: Company) -> None:
    give(company, chip="nvidia-h800")
    give(company, chip="ascend-910b3", nodes=2)
    job = submitted(company, spec={"method": "lora"})
    assert job.asked_chips == ["any"]
    assert job.chips == ["ascend-910b3", "nvidia-h800"]
    assert equally_good(job) == 2
    job = submitted(company, engine="transformers", cards=1, spec={"method": "lora"})
    assert job.chips == ["nvidia-h800", "cpu"]
    assert equally_good(job) == 1


def test_chips_by_their_names_are_in_order_of_preference(company: Company) -> None:
    give(company, chip="nvidia-h800")
    give(company, chip="ascend-910b3", nodes=2)
    job = submitted(company, chips=("nvidia-h800", "npu"))
    assert job.chips == ["nvidia-h800", "ascend-910b3"]
    assert equally_good(job) == 1


def equally_good(job: Job) -> int:
    """As the scheduler reads it, both from the row and from the model."""
    claim = Claim.objects.get(owner_uid=job.attempts.get().uid)
    (read,) = (view for view in snapshots.scheduling_snapshot().claims if view.uid == claim.uid)
    assert read.equal_chips == snapshots.claim_snapshot_of(claim).equal_chips
    return read.equal_chips


def test_an_engine_whose_environment_lacks_the_chips_torch_says_what_is_needed(
    company: Company,
) -> None:
    give(company, chip="ascend-910b3")
    wrong = refused(company, engine="transformers", chips=("ascend-910b3",), cards=1)
    assert wrong["chips"] == (
        "transformers does not support finetune on ascend-910b3: the "
        "software environment of the engine has PyTorch for CPU and CUDA only; Ascend 910B3 "
        "requires torch_npu"
    )


def test_any_chip_leaves_out_those_on_which_the_engine_does_not_run(company: Company) -> None:
    give(company, chip="nvidia-h800")
    give(company, chip="ascend-910b3", nodes=2)
    spec = {"max_steps": 100}
    assert submitted(company, engine="mindspeed_llm", spec=spec).chips == ["ascend-910b3"]


@pytest.mark.parametrize(("kind", "chip"), [("gpu", "nvidia-h800"), ("npu", "ascend-910b3")])
def test_a_chip_kind_resolves_to_chips_of_the_fleet(company: Company, kind: str, chip: str) -> None:
    give(company, chip="nvidia-h800")
    give(company, chip="ascend-910b3")
    job = submitted(company, chips=(kind,))
    assert (job.chips, job.asked_chips) == ([chip], [kind])


def test_a_chip_name_resolves_to_that_chip_only(company: Company) -> None:
    job = submitted(company, chips=("ascend-910b3",))
    assert (job.chips, job.asked_chips) == (["ascend-910b3"], None)


def test_a_chip_kind_that_the_fleet_lacks_is_refused_with_the_available_chips(
    company: Company,
) -> None:
    wrong = refused(company, chips=("npu",))
    assert wrong == {"chips": "the fleet has no cards of the chip group 'npu'; it has cpu"}


def test_any_chip_that_the_engine_cannot_use_is_refused_with_the_reason(company: Company) -> None:
    wrong = refused(company, chips=("any",))
    assert wrong["chips"].startswith(
        "ms_swift does not support finetune on any chip of the group 'any' (cpu: "
    )


def test_a_chip_on_which_the_engine_does_not_run_is_refused(company: Company) -> None:
    wrong = refused(company, engine="mindspeed_llm", chips=("nvidia-h800",))
    assert wrong["chips"].startswith("mindspeed_llm does not support finetune on nvidia-h800: ")


def test_a_slice_profile_resolves_to_slices_of_the_fleet_and_other_groups_to_none(
    company: Company,
) -> None:
    give(company, chip="nvidia-h800-mig-1g-10gb")
    give(company, chip="nvidia-a100-80gb-mig-1g-10gb", cards=14)
    free = {"nvidia-h800-mig-1g-10gb": 8, "nvidia-a100-80gb-mig-1g-10gb": 14, "nvidia-h800": 2}
    engine = adapter_registry.engine_by_name("transformers")

    def meant(*names: str) -> tuple[list[str], list[str]]:
        chips, wrong = expand_chip_names(names, engine=engine, task=EngineTask.SCRIPT, free=free)
        return [chip.name for chip in chips], [finding.message for finding in wrong]

    assert meant("mig-1g.10gb") == (["nvidia-a100-80gb-mig-1g-10gb", "nvidia-h800-mig-1g-10gb"], [])
    assert meant("nvidia-h800-mig-1g.10gb") == (["nvidia-h800-mig-1g-10gb"], [])
    assert meant("gpu") == meant("any") == (["nvidia-h800"], [])
    chips, (message,) = meant("vir02")
    assert chips == []
    assert "the fleet has no cards of the chip group 'vir02'" in message


def test_an_unknown_chip_is_refused_with_those_that_are_known(company: Company) -> None:
    wrong = refused(company, chips=("abacus",))
    assert wrong["chips"].startswith("unknown chip 'abacus'; choose one of any, gpu, npu, cpu, ")


def test_the_plan_is_proposed_and_stored_in_the_spec(company: Company) -> None:
    """7.6 billion parameters with their optimizer take 122 GB, so copies have to share."""
    job = submitted(company, chips=("nvidia-h800",))
    plan = job.spec["parallel"]
    assert plan["tensor"] * plan["pipeline"] * plan["context"] * plan["data"] == 8
    assert plan["zero_stage"] >= 1
    shape = GangShape.from_json(job.shape)
    assert (shape.roles[0].replicas, shape.roles[0].cards) == (1, 8)


def test_a_plan_is_for_all_chips_that_are_acceptable(company: Company) -> None:
    job = submitted(company, chips=("nvidia-h800", "ascend-910b3"))
    assert job.spec["parallel"]["data"] == 8


def test_more_cards_than_a_node_has_are_whole_nodes(company: Company) -> None:
    job = submitted(company, chips=("ascend-910b3",), cards=16)
    shape = GangShape.from_json(job.shape)
    assert (shape.roles[0].replicas, shape.roles[0].cards) == (2, 8)
    assert "cards" in refused_again(company, chips=("ascend-910b3",), cards=12)


def refused_again(company: Company, **changes: Any) -> dict[str, str]:
    resolved = services.job_request_resolve(asked(company, **changes))
    return {finding.field: finding.message for finding in resolved.findings}


def test_a_requested_plan_is_unchanged(company: Company) -> None:
    job = submitted(company, chips=("nvidia-h800",), spec={"parallel": {"zero_stage": 3}})
    assert job.spec["parallel"]["zero_stage"] == 3
    assert job.spec["parallel"]["data"] == 8


def test_a_plan_that_does_not_multiply_out_is_refused(company: Company) -> None:
    wrong = refused(company, chips=("nvidia-h800",), spec={"parallel": {"data": 3}})
    assert wrong["parallel"].endswith("is 3, but the number of cards is 8; parallel.data must be 8")


def test_numbers_of_cards_that_cannot_be_allocated_are_refused(company: Company) -> None:
    wrong = refused(company, chips=("ascend-910c",), cards=3)
    assert wrong["cards"].startswith("3 cards of ascend-910c cannot be allocated on one node")


def test_an_engine_of_one_process_cannot_share_a_model(company: Company) -> None:
    wrong = refused(company, engine="transformers", chips=("nvidia-h800",), cards=2)
    assert "this engine runs one process on one node" in wrong["cards"]


def test_weights_that_do_not_fit_are_refused_with_a_sufficient_number_of_cards(
    company: Company,
) -> None:
    wrong = refused(company, engine="ms_swift", chips=("nvidia-l4",), cards=1)
    assert wrong["cards"].startswith("the weights alone require ")
    assert "of 1 cards of NVIDIA L4, which have 22.5 GiB of memory; " in wrong["cards"]
    assert wrong["cards"].endswith("cards would be enough with batch_size 1 and recompute on")


def test_frozen_weights_count_in_their_own_precision(company: Company) -> None:
    lora = {"chips": ("nvidia-l4",), "cards": 1}
    for precision, fits in (("bfloat16", True), ("float32", False)):
        found = refused_again(company, **lora, spec={"method": "lora", "precision": precision})
        assert ("cards" not in found) is fits, (precision, found)


def test_qlora_is_refused_on_ascend_with_the_reason(company: Company) -> None:
    for engine in ("llamafactory", "ms_swift"):
        wrong = refused_again(
            company, engine=engine, chips=("ascend-910b3",), cards=1, spec={"method": "qlora"}
        )
        assert "bitsandbytes" in wrong["method"]
        assert "Ascend 910B3" in wrong["method"]


def test_an_unknown_engine_version_is_refused(company: Company) -> None:
    spec = {"engine_version": "0.0.1"}
    wrong = refused_again(company, chips=("nvidia-h800",), spec=spec)
    assert "0.0.1" in wrong["engine_version"]


@pytest.mark.parametrize(
    ("objective", "message"),
    [("dpo", "dpo requires examples with prompt, chosen and rejected")],
)
def test_an_objective_needs_rows_of_its_kind(
    company: Company, objective: str, message: str
) -> None:
    wrong = refused_again(company, chips=("nvidia-h800",), spec={"objective": objective})
    assert message in wrong["dataset_version"]


def test_batches_of_rewards_hold_whole_groups(company: Company) -> None:
    spec = {"objective": "grpo", "batch_size": 4, "grpo": {"generations": 8}}
    wrong = refused_again(company, engine="transformers", chips=("cpu",), cards=1, spec=spec)
    assert (
        "must be a multiple of grpo.generations, which is 8, got 4 × 1 = 4" in wrong["batch_size"]
    )


def test_the_learning_rate_of_sft_is_not_used_for_dpo(company: Company) -> None:
    company.model.parameters = 1_000_000
    company.model.save()
    for objective, rate in (("sft", 2e-3), ("grpo", 1e-6)):
        resolved = services.job_request_resolve(
            asked(
                company,
                engine="transformers",
                chips=("cpu",),
                cards=1,
                spec={"objective": objective},
            )
        )
        assert resolved.spec is not None, resolved.findings
        assert resolved.spec["learning_rate"] == rate


def test_one_spec_on_two_chips_changes_no_field(company: Company) -> None:
    chips = (
        adapter_registry.all_chips()["nvidia-h800"],
        adapter_registry.all_chips()["ascend-910b3"],
    )
    for engine in ("llamafactory", "ms_swift"):
        request = asked(company, engine=engine, cards=8, spec={"method": "lora"})
        found = services.compare_launches_of_request(request, chips=chips)
        assert found.findings == ((), ()), engine
        assert found.changed_fields == ()
        assert found.differences
        assert {difference.part for difference in found.differences} <= {"image", "environment"}


def test_a_refused_rendering_has_a_reason(company: Company) -> None:
    chips = (
        adapter_registry.all_chips()["nvidia-h800"],
        adapter_registry.all_chips()["ascend-910b3"],
    )
    request = asked(company, spec={"method": "qlora"})
    found = services.compare_launches_of_request(request, chips=chips)
    assert found.launches[0] is not None
    assert found.launches[1] is None
    assert [finding.field for finding in found.findings[1]] == ["method"]


def test_an_engine_that_comes_as_an_image_is_refused_where_nothing_starts_containers(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(company, chip="nvidia-h800")
    request = asked(company, engine="ms_swift", chips=("nvidia-h800",), cards=8)
    assert not any(
        "comes as an image" in finding.message for finding in services.job_request_check(request)
    )
    monkeypatch.setattr(FakeCluster, "runs_images", False)
    messages = {finding.field: finding.message for finding in services.job_request_check(request)}
    assert "ms-swift requires a container image" in messages["engine"]
    assert "(with-nvidia-h800)" in messages["engine"]


@pytest.mark.parametrize(
    ("task", "chip", "engine"),
    [
        (EngineTask.FINETUNE, "cpu", "transformers"),
        (EngineTask.FINETUNE, "any", "transformers"),
        (EngineTask.FINETUNE, "ascend-910b3", "llamafactory"),
        (EngineTask.FINETUNE, "npu", "llamafactory"),
        (EngineTask.QUANTIZE, "cpu", "llm_compressor"),
        (EngineTask.SERVE, "hygon-k100-ai", "vllm"),
        (EngineTask.FINETUNE, "no-such-chip", "transformers"),
    ],
)
def test_the_default_engine_depends_on_the_kind_and_the_first_chip(
    task: EngineTask, chip: str, engine: str
) -> None:
    assert default_engine_for_task(task, chips=(chip,)) == engine


def test_the_default_engine_runs_on_a_chip_if_any_engine_does() -> None:
    engines = [adapter_registry.engine_by_name(name) for name in adapter_registry.engine_names()]
    for task in EngineTask:
        for name, chip in adapter_registry.all_chips().items():
            able = [
                each
                for each in engines
                if task in each.tasks and not each.unsupported_reason(task, chip)
            ]
            assert (
                adapter_registry.engine_by_name(default_engine_for_task(task, chips=(name,)))
                in able
                or not able
            )
