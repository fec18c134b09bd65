"""vLLM, vLLM Ascend, SGLang, MindIE and msModelSlim: what they refuse, and what a rendering never has."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from controlplane.adapters.engines.mindie import MindieEngine
from controlplane.domain.serving.model_kinds import ModelKind, Operation
from controlplane.ports.adapter_registry import all_chips, engine_by_name
from controlplane.ports.engines import (
    ArgumentVerification,
    Engine,
    EngineTask,
    ModelFacts,
    RenderRefused,
)
from controlplane.ports.launches import LaunchPlacement
from tests.unit.engines.serving_requests import (
    ACROSS_NODES,
    COMPRESSED,
    ENGINES,
    FOUR_BITS,
    KEY,
    MODELSLIM,
    PLAIN,
    SPEECH,
    command_of,
    findings,
    quantized,
    rendered,
)
from tests.unit.engines.training_requests import QWEN3_8B

HOME = {
    "mindie": "ascend-910b3",
    "sglang": "nvidia-h800",
    "vllm": "nvidia-h800",
    "vllm_ascend": "ascend-910b3",
    "xllm": "ascend-910b3",
}


def test_sglang_refuses_copies_on_several_nodes_which_its_own_check_refuses() -> None:
    """``server_args.py``: "multi-node data parallel is not supported unless dp attention!"."""
    spec = {"model_name": "assistant", "parallel": {"data": 2, "tensor": 4}}
    with pytest.raises(ValueError, match=r"set parallel\.data to 1"):
        rendered("sglang", spec, chip=HOME["sglang"], nodes=2)
    alone = {"model_name": "assistant", "parallel": {"data": 2}}
    assert "--dp-size" in rendered("sglang", alone, chip=HOME["sglang"]).roles[0].argv


@pytest.mark.parametrize(("fraction", "given"), [(None, False), (0.9, False), (0.8, True)])
def test_sglang_chooses_its_static_memory_unless_the_spec_differs(
    fraction: float | None, given: bool
) -> None:
    spec = {"model_name": "assistant"} | ({"memory_fraction": fraction} if fraction else {})
    (role,) = rendered("sglang", spec, chip=HOME["sglang"]).roles
    assert ("--mem-fraction-static" in role.argv) is given


def test_sglang_takes_no_name_with_a_colon_and_the_others_do() -> None:
    spec = {"model_name": "team/assistant:v2"}
    assert "must not contain ':'" in findings("sglang", spec)["model_name"]
    assert "model_name" not in findings("vllm", spec)


@pytest.mark.parametrize("name", [*ENGINES, "msmodelslim"])
def test_each_is_an_engine_that_comes_as_an_image(name: str) -> None:
    found: Engine = engine_by_name(name)
    assert isinstance(found, Engine)
    assert found.environment() is None
    assert found.profile().sources


@pytest.mark.parametrize("name", ENGINES)
def test_each_maps_the_figures_that_a_chart_of_serving_needs(name: str) -> None:
    assert {
        "requests_running",
        "requests_waiting",
        "requests_ok",
        "requests_failed",
        "prompt_tokens",
        "output_tokens",
        "time_to_first_token",
        "latency",
        "kv_cache_usage",
    } <= set(engine_by_name(name).profile().metrics)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"memory_fraction": 1.5}, "memory_fraction", "must be ≥ 0.1, ≤ 0.98, got 1.5"),
        ({"concurrency": 0}, "concurrency", "must be ≥ 1, ≤ 65536, got 0"),
        ({"kv_precision": "fp4"}, "kv_precision", "must be one of auto, fp8, got 'fp4'"),
        ({"parallel": {"tensor": 3}}, "parallel.tensor", "must divide the 32 heads, got 3"),
        ({"parallel": {"tensor": 0}}, "parallel.tensor", "must be ≥ 1, ≤ 64, got 0"),
        ({"context_length": 100_000}, "context_length", "≤ 40960, the context length of qwen3-8b"),
        ({"model_name": "--port"}, "model_name", "begin with a letter or digit, got '--port'"),
        ({"model_name": "a b"}, "model_name", "got 'a b'"),
        ({"engine_version": "9.9"}, "engine_version", "got '9.9'"),
        ({"engine_version": "latest; rm"}, "engine_version", "got 'latest; rm'"),
        ({"temperature": 1}, "temperature", "unknown field temperature; known are"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(
    name: str, spec: dict[str, Any], field: str, message: str
) -> None:
    if (name, field) == ("xllm", "context_length"):
        message = "xLLM serves the context length in the config.json of the model"
    assert message in findings(name, spec, chip=HOME[name])[field]


def test_an_unknown_version_is_told_which_are_known() -> None:
    found = findings("vllm", {"engine_version": "0.8.0"})
    assert found["engine_version"] == (
        "engine_version must be a version of vLLM >=0.23,<0.34, for example 0.23.0, got '0.8.0'"
    )


@pytest.mark.parametrize(
    ("name", "chip", "model", "message"),
    [
        (
            "vllm",
            "nvidia-h800",
            MODELSLIM,
            "vLLM does not support; it supports awq, compressed-tensors",
        ),
        ("mindie", "ascend-910b3", COMPRESSED, "MindIE does not support; it supports modelslim"),
        (
            "vllm_ascend",
            "ascend-910b3",
            FOUR_BITS,
            "supports compressed-tensors weights in w8a8 only",
        ),
        ("sglang", "ascend-910b3", COMPRESSED, "supports ModelSlim weights only"),
        ("sglang", "nvidia-h800", MODELSLIM, "for Ascend, not for NVIDIA H800"),
    ],
)
def test_a_scheme_that_the_engine_cannot_load_is_refused(
    name: str, chip: str, model: ModelFacts, message: str
) -> None:
    said = findings(name, {}, chip=chip, model=model)["model"]
    assert message in said
    assert model.name in said


def test_ascends_flag_is_given_for_modelslims_weights_only() -> None:
    def steps(model: ModelFacts) -> str:
        return rendered("vllm_ascend", {}, chip="ascend-910b3", model=model).files["steps.json"]

    assert '"--quantization",\n        "ascend"' in steps(MODELSLIM)
    assert "--quantization" not in steps(COMPRESSED)
    assert "--quantization" not in steps(PLAIN)


def test_a_model_that_does_not_answer_is_refused() -> None:
    model = replace(PLAIN, name="din", architecture="DIN")
    assert (
        "vLLM serves models of the kinds embedding, reranker, text, transcription"
        in (findings("vllm", {}, model=model)["model"])
    )
    embedder = replace(PLAIN, name="bge-m3", architecture="XLMRobertaModel")
    assert (
        "MindIE serves models of the kinds text"
        in (findings("mindie", {}, chip="ascend-910b3", model=embedder)["model"])
    )


def argv_of(name: str, spec: Mapping[str, Any], model: ModelFacts) -> tuple[str, ...]:
    return (
        rendered(name, {"model_name": "assistant", **spec}, chip="nvidia-h800", model=model)
        .roles[0]
        .argv
    )


def test_an_embedding_model_is_told_by_its_files_and_pooled() -> None:
    model = replace(PLAIN, files=frozenset({"config.json", "modules.json"}))
    assert findings("vllm", {}, model=model) == {}
    assert argv_of("vllm", {}, model)[-2:] == ("--runner", "pooling")
    assert "--is-embedding" in argv_of("sglang", {}, model)


def test_qwen3_reranker_is_served_with_its_prompt_where_it_is_documented() -> None:
    """As ``docs.vllm.ai`` starts it; other engines say why not."""
    model = replace(PLAIN, name="ranking v1", catalog_key="qwen3-reranker-8b")
    for name, chip in (("vllm", "nvidia-h800"), ("vllm_ascend", "ascend-910b3")):
        launch = rendered(name, {"model_name": "assistant"}, chip=chip, model=model)
        argv = command_of(launch)
        overrides = json.loads(argv[argv.index("--hf-overrides") + 1])
        assert overrides == {
            "architectures": ["Qwen3ForSequenceClassification"],
            "classifier_from_token": ["no", "yes"],
            "is_original_qwen3_reranker": True,
        }
        assert "--enable-auto-tool-choice" not in argv
        assert argv[argv.index("--chat-template") + 1] == "{work}/score_template.jinja"
    template = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(
        launch.files["score_template.jinja"]
    )
    messages = [{"role": "query", "content": "Q"}, {"role": "document", "content": "D"}]
    assert template.render(messages=messages) == (
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the "
        'Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
        "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n"
        "<Query>: Q\n<Document>: D<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    refused = {
        "sglang": "rendered for vLLM only",
        "xllm": "serves models of the kinds embedding, text",
        "transformers": "without the files of sentence-transformers",
    }
    for name, reason in refused.items():
        assert reason in findings(name, {}, model=model)["model"], name
    other = replace(model, architecture="LlamaForCausalLM")
    assert "only Qwen3ForCausalLM" in findings("vllm", {}, model=other)["model"]
    module = replace(model, files=frozenset({"modules.json", "1_LogitScore/config.json"}))
    assert findings("transformers", {}, chip="cpu", model=module) == {}


def test_vllm_ascend_refuses_the_model_that_its_documentation_marks_as_not_supported() -> None:
    whisper = replace(PLAIN, name="whisper", architecture="WhisperForConditionalGeneration")
    assert findings("vllm", {}, model=whisper) == {}
    refused = findings("vllm_ascend", {}, chip="ascend-910b3", model=whisper)
    assert "names it as not supported" in refused["model"]
    asr = replace(whisper, architecture="Qwen3ASRForConditionalGeneration")
    assert findings("vllm_ascend", {}, chip="ascend-910b3", model=asr) == {}


def arguments_of_kind(name: str, model: ModelFacts, *, chip: str, **changes: Any) -> list[str]:
    """What the kind of the model adds to the command of a text model without parsers."""

    def argv(facts: ModelFacts, **spec: Any) -> list[str]:
        spec = {"model_name": "m", **spec}
        return command_of(rendered(name, spec, chip=chip, model=facts, **changes))

    own = argv(model)
    for argument in argv(PLAIN, tool_call_parser="off"):
        assert argument in own, "the rest of the command is that of any model"
        own.remove(argument)
    return own


def test_a_model_of_transcription_has_neither_parsers_nor_pooling() -> None:
    whisper = replace(
        PLAIN,
        architecture="WhisperForConditionalGeneration",
        context_length=448,
        catalog_key="whisper-large-v3",
    )
    asr = replace(whisper, architecture="Qwen3ASRForConditionalGeneration", catalog_key="")
    served = (
        ("vllm", "nvidia-h800", (whisper, asr)),
        ("sglang", "nvidia-h800", (whisper, asr)),
        ("vllm_ascend", "ascend-910b3", (asr,)),
    )
    for name, chip, models in served:
        for model in models:
            assert findings(name, {}, chip=chip, model=model) == {}, name
            assert arguments_of_kind(name, model, chip=chip) == [], name
            operations = engine_by_name(name).profile().operations[ModelKind.TRANSCRIPTION]
            assert Operation.TRANSCRIPTIONS in operations
    assert (
        Operation.TRANSLATIONS
        not in (engine_by_name("sglang").profile().operations[ModelKind.TRANSCRIPTION])
    )
    refused = findings("sglang", {}, chip="ascend-910b3", model=asr)
    assert "names no model of transcription" in refused["model"]
    for name in ("mindie", "xllm"):
        refused = findings(name, {}, chip="ascend-910b3", model=asr)
        assert "serves models of the kinds" in refused["model"]


def test_a_reranker_is_pooled_by_vllm_and_is_an_encoder_for_sglang() -> None:
    """As SGLang's documentation starts it: an encoder needs its whole input, with attention to both sides."""
    whole = ["--disable-radix-cache", "--chunked-prefill-size", "-1", "--is-embedding"]
    model = replace(
        PLAIN, architecture="XLMRobertaForSequenceClassification", catalog_key="bge-reranker-v2-m3"
    )
    for name, chip, added in (
        ("vllm", "nvidia-h800", ["--runner", "pooling"]),
        ("vllm_ascend", "ascend-910b3", ["--runner", "pooling"]),
        ("sglang", "nvidia-h800", ["--attention-backend", "triton", *whole]),
        ("sglang", "ascend-910b3", whole),
    ):
        assert findings(name, {}, chip=chip, model=model) == {}, name
        assert arguments_of_kind(name, model, chip=chip) == added, name
        assert engine_by_name(name).profile().operations[ModelKind.RERANKER] == {Operation.RERANK}
    encoder = replace(model, architecture="XLMRobertaModel", catalog_key="bge-m3")
    added = ["--attention-backend", "triton", *whole]
    assert arguments_of_kind("sglang", encoder, chip="nvidia-h800") == added
    assert (
        findings("sglang", {"prefix_cache": "off", "chunked_prefill": "off"}, model=encoder) == {}
    )
    for field in ("prefix_cache", "chunked_prefill"):
        refused = findings("sglang", {field: "on"}, model=encoder)
        assert "every input of an encoder as a whole" in refused[field]
    classifier = replace(model, architecture="Qwen3ForSequenceClassification")
    refused = findings("sglang", {}, model=classifier)
    assert (
        "rerankers of the architectures BertForSequenceClassification, XLMRoberta"
        in refused["model"]
    )
    assert findings("vllm", {}, model=classifier) == {}
    causal = replace(PLAIN, catalog_key="qwen3-reranker-0.6b")
    added = arguments_of_kind("vllm", causal, chip="nvidia-h800")
    assert added[::2] == ["--runner", "--hf-overrides", "--chat-template"]
    assert added[1] == "pooling"


@pytest.mark.parametrize("chip", ["nvidia-h800", "ascend-910b3"])
def test_a_model_of_speech_runs_in_the_stages_that_vllm_omni_configures(chip: str) -> None:
    """An argument would replace the value of both stages, which share a card."""
    card = (LaunchPlacement(node="n0", cards=(0,)),)

    def argv(**spec: Any) -> list[str]:
        launch = rendered(
            "vllm_omni", {"model_name": "m", **spec}, chip=chip, model=SPEECH, placements=card
        )
        assert launch.secrets["VLLM_API_KEY"] == KEY
        return command_of(launch)

    command = ["vllm", "serve", "{inputs}/model", "--omni", "--served-model-name", "m"]
    command += ["--host", "0.0.0.0", "--port", "{port:http}"]
    assert argv() == command
    assert argv(precision="float16", concurrency=8, graphs="off") == [
        *command,
        *("--dtype", "float16", "--max-num-seqs", "8", "--enforce-eager"),
    ]
    profile = engine_by_name("vllm_omni").profile()
    assert profile.operations[ModelKind.SPEECH] == {Operation.SPEECH}
    assert findings("vllm_omni", {}, chip=chip, model=SPEECH) == {}
    for field, spec in (
        ("memory_fraction", {"memory_fraction": 0.5}),
        ("parallel.tensor", {"parallel": {"tensor": 2}}),
        ("tool_call_parser", {"tool_call_parser": "hermes"}),
    ):
        assert set(findings("vllm_omni", spec, chip=chip, model=SPEECH)) == {field}
    with pytest.raises(ValueError, match="uses one card of a replica for speech, got 4"):
        rendered("vllm_omni", {"model_name": "m"}, chip=chip, model=SPEECH)
    assert "serves models of the kinds" in findings("vllm", {}, model=SPEECH)["model"]


def test_tool_calls_are_parsed_as_the_family_of_the_model_writes_them() -> None:
    tools = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
    assert argv_of("vllm", {}, PLAIN)[-3:] == tools
    assert argv_of("sglang", {}, PLAIN)[-2:] == ("--tool-call-parser", "qwen25")
    newer = replace(PLAIN, name="assistant v1", architecture="Qwen3_5MoeForConditionalGeneration")
    assert argv_of("vllm", {}, newer)[-1] == "qwen3_coder"
    renamed = replace(newer, name="kimi-coder v1")
    assert argv_of("vllm", {}, renamed) == argv_of("vllm", {}, newer), "a name decides nothing"
    assert "--tool-call-parser" not in argv_of("vllm", {"tool_call_parser": "off"}, PLAIN)
    spec = {"tool_call_parser": "xlam", "reasoning_parser": "auto"}
    assert argv_of("vllm", spec, PLAIN)[-4:] == (
        "--tool-call-parser",
        "xlam",
        "--reasoning-parser",
        "qwen3",
    )


def test_extra_arguments_are_passed_but_for_those_of_the_product() -> None:
    spec = {"extra_args": ["--max-num-batched-tokens=8192"]}
    for name in ("vllm", "sglang"):
        assert argv_of(name, spec, PLAIN)[-1] == "--max-num-batched-tokens=8192"
        for argument in ("--api_key=x", "--api-k=x", "--trust-remote", "--port"):
            refused = findings(name, {"extra_args": [argument]})
            assert "cannot be set here" in refused["extra_args"]
    assert "configuration file" in findings("mindie", spec, chip="ascend-910b3")["extra_args"]


def test_a_mixture_may_share_its_experts_and_another_model_may_not() -> None:
    spec = {"parallel": {"tensor": 4, "expert": "on"}}
    assert "has no experts" in findings("vllm", spec)["parallel.expert"]


@pytest.mark.parametrize("name", ENGINES)
def test_the_key_is_in_no_argument_file_or_variable(name: str) -> None:
    launch = rendered(name, {"model_name": "assistant"}, chip=HOME[name])
    assert launch.secrets["NINEFOLD_ENGINE_KEY"] == KEY
    (role,) = launch.roles
    shown = [*role.argv, *role.environment.values(), *launch.files.values()]
    assert not any(KEY in text for text in shown)


def test_vllm_finds_the_key_where_it_looks_for_it() -> None:
    for name in ("vllm", "vllm_ascend"):
        assert rendered(name, {}, chip=HOME[name]).secrets["VLLM_API_KEY"] == KEY


def test_an_engine_without_a_key_says_so() -> None:
    assert any(
        "Does not require an API key" in remark for remark in MindieEngine().profile().remarks
    )


@pytest.mark.parametrize(
    ("spec", "cards", "message"),
    [
        (
            {"tensor": 2, "pipeline": 1},
            4,
            "is 2; it must equal the number of cards of a replica, 4",
        ),
        (
            {"pipeline": 3},
            4,
            "pipeline 3 × data 1 is 3, which does not divide the number of cards of a replica, 4",
        ),
    ],
)
def test_a_plan_that_does_not_multiply_out_is_not_rendered(
    spec: dict[str, Any], cards: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        rendered("vllm", {"parallel": spec}, chip="nvidia-h800")


def test_what_cannot_span_nodes_says_why() -> None:
    with pytest.raises(ValueError, match=r"must run on one node, got 2: .*rank table"):
        rendered("mindie", {}, chip="ascend-910b3", nodes=2)
    embedding = replace(PLAIN, files=frozenset({"modules.json"}))
    with pytest.raises(ValueError, match="only models that generate text are served across nodes"):
        rendered("vllm", {}, chip="nvidia-h800", nodes=2, model=embedding)


@pytest.mark.parametrize(("name", "chip"), ACROSS_NODES)
def test_layers_are_divided_among_the_nodes_unless_the_spec_says_otherwise(
    name: str, chip: str
) -> None:
    """As vLLM and SGLang recommend it: tensor parallel within a node, pipeline parallel across nodes."""

    def degrees(**parallel: int) -> list[str]:
        argv = command_of(rendered(name, {"parallel": parallel}, chip=chip, nodes=2))
        options = ("--tp-size", "--pp-size") if name == "sglang" else ("--tensor-", "--pipeline-")
        return [
            argv[index + 1]
            for option in options
            for index, argument in enumerate(argv)
            if argument.startswith(option)
        ]

    assert degrees() == ["4", "2"]
    assert degrees(tensor=8) == ["8", "1"]
    assert degrees(pipeline=4) == ["2", "4"]
    if name != "sglang":
        assert degrees(data=2) == ["4", "1"]
    launch = rendered(name, {}, chip=chip, nodes=2)
    in_files = [
        path
        for path, text in launch.files.items()
        if path.endswith(".json") and re.search(r"\{(index|port:http)\}", text)
    ]
    assert in_files == [], "a file is the same for every process"


def test_sglang_refuses_stages_of_a_model_that_it_does_not_divide() -> None:
    model = replace(PLAIN, architecture="Qwen3NextForCausalLM")
    with pytest.raises(RenderRefused, match=r"no pipeline parallelism of Qwen3NextForCausalLM"):
        rendered("sglang", {}, chip="nvidia-h800", nodes=2, model=model)
    rendered("sglang", {"parallel": {"tensor": 8}}, chip="nvidia-h800", nodes=2, model=model)
    wrong = findings("sglang", {"parallel": {"pipeline": 2}}, chip="nvidia-h800", model=model)
    assert list(wrong) == ["parallel.pipeline"]
    across = {"parallel": {"tensor": 16}}
    assert findings("sglang", across, chip="nvidia-h800", model=PLAIN) == {}


def test_mindies_configuration_replaces_every_default_that_would_stop_a_replica() -> None:
    spec = {"model_name": "assistant", "context_length": 16_384, "concurrency": 16}
    launch = rendered("mindie", spec, chip="ascend-910b3")
    text = launch.files["config.json"]
    for name, number in (("http", "1"), ("management", "2"), ("metrics", "3")):
        text = text.replace(f"{{port:{name}}}", number)
    server, backend = (json.loads(text)[key] for key in ("ServerConfig", "BackendConfig"))
    assert not server["httpsEnabled"]
    assert not server["interCommTLSEnabled"]
    assert not backend["interNodeTLSEnabled"]
    assert server["ipAddress"] == server["managementIpAddress"] == "0.0.0.0"
    assert server["allowAllZeroIpListening"]
    assert (server["port"], server["managementPort"], server["metricsPort"]) == (1, 2, 3)
    deploy, schedule = backend["ModelDeployConfig"], backend["ScheduleConfig"]
    assert deploy["maxSeqLen"] == schedule["maxIterTimes"] == 16_384
    assert deploy["maxInputTokenLen"] <= schedule["maxPrefillTokens"]
    assert schedule["maxPrefillBatchSize"] <= schedule["maxBatchSize"] == 16
    (model,) = deploy["ModelConfig"]
    assert (model["modelName"], model["worldSize"]) == ("assistant", 4)
    assert backend["npuDeviceIds"] == [[0, 1, 2, 3]]
    (role,) = launch.roles
    assert role.environment["MIES_SERVICE_MONITOR_MODE"] == "1"
    assert role.environment["MINDIE_CHECK_INPUTFILES_PERMISSION"] == "0"
    assert role.probe is not None
    assert role.probe.port == "management"


def test_mindie_is_told_the_parsers_that_its_documentation_names() -> None:
    def models(model: ModelFacts, **spec: Any) -> Any:
        launch = rendered("mindie", {"model_name": "m", **spec}, chip="ascend-910b3", model=model)
        text = re.sub(r"\{port:\w+\}", "1", launch.files["config.json"])
        deploy = json.loads(text)["BackendConfig"]["ModelDeployConfig"]
        found = deploy["ModelConfig"][0]["models"]
        return {name: value for name, value in found.items() if isinstance(value, dict)}

    deepseek = replace(PLAIN, architecture="DeepseekV3ForCausalLM", catalog_key="deepseek-v3.1")
    parser = {"tool_call_options": {"tool_call_parser": "deepseek_v31"}}
    assert models(PLAIN) == {}
    assert models(PLAIN, reasoning_parser="auto") == {"qwen3": {"enable_reasoning": True}}
    assert models(deepseek) == {"deepseekv2": parser}
    assert models(deepseek, reasoning_parser="auto") == {
        "deepseekv2": parser | {"enable_reasoning": True}
    }
    named = {"tool_call_options": {"tool_call_parser": "hermes"}}
    assert models(PLAIN, tool_call_parser="hermes") == {"qwen3": named}
    other = replace(PLAIN, architecture="MiniMaxM2ForCausalLM")
    for spec, model, message in (
        ({"tool_call_parser": "off"}, PLAIN, "always parses tool calls"),
        ({"reasoning_parser": "qwen3"}, PLAIN, "must be auto, off or empty for MindIE"),
        ({"tool_call_parser": "hermes"}, other, "documents no parsers"),
    ):
        (text,) = findings("mindie", spec, chip="ascend-910b3", model=model).values()
        assert message in text


def test_small_ascend_chips_compute_in_float16_without_graphs() -> None:
    steps = rendered("vllm_ascend", {}, chip="ascend-310p").files["steps.json"]
    assert '"--dtype",\n        "float16"' in steps
    assert "--enforce-eager" in steps
    said = findings("vllm_ascend", {"precision": "bfloat16"}, chip="ascend-310p")
    assert "does not support bfloat16" in said["precision"]


def test_nodes_with_other_cards_are_told_each_its_own() -> None:
    places = (
        LaunchPlacement(node="n0", cards=(0, 1, 2, 3)),
        LaunchPlacement(node="n1", cards=(4, 5, 6, 7)),
    )
    launch = rendered("vllm", {}, chip="nvidia-h800", placements=places)
    plan = json.loads(launch.files["steps.json"])
    variable = all_chips()["nvidia-h800"].visible_devices_variable
    assert [each[variable] for each in plan["replicas"]] == ["0,1,2,3", "4,5,6,7"]


def test_msmodelslim_is_given_its_recipe_and_asks_nothing() -> None:
    launch = quantized({}, chip="ascend-910b3", model=PLAIN)
    steps = json.loads(launch.files["steps.json"])["steps"]
    assert steps[1]["run"][steps[1]["run"].index("--config_path") + 1] == "{work}/recipe.yaml"
    recipe = json.loads(launch.files["recipe.yaml"])
    assert recipe["spec"]["dataset"] == "{work}/calibration.json"
    assert [each["type"] for each in recipe["spec"]["process"]] == ["smooth_quant", "linear_quant"]


@pytest.mark.parametrize("scheme", ["w4a16-awq", "fp8-dynamic"])
def test_msmodelslim_refuses_what_its_makers_have_not_verified(scheme: str) -> None:
    found = engine_by_name("msmodelslim").check(
        EngineTask.QUANTIZE, {"scheme": scheme}, chip=all_chips()["ascend-910b3"], model=QWEN3_8B
    )
    assert [each.field for each in found] == ["scheme"]
    assert f"scheme must not be {scheme!r} here" in found[0].message


def test_msmodelslim_refuses_what_is_quantized_already_and_what_it_cannot_take_apart() -> None:
    def said(model: ModelFacts) -> str:
        found = engine_by_name("msmodelslim").check(EngineTask.QUANTIZE, {}, chip=None, model=model)
        return " ".join(each.message for each in found)

    assert "already quantized (w8a8)" in said(COMPRESSED)
    assert "for which msModelSlim has no adapter; supported are" in said(
        replace(PLAIN, architecture="BloomForCausalLM")
    )


def test_msmodelslim_says_that_nobody_publishes_an_image_and_where_it_never_runs() -> None:
    slim = engine_by_name("msmodelslim")
    assert "none is published" in slim.unsupported_reason(
        EngineTask.QUANTIZE, all_chips()["ascend-910b3"]
    )
    assert "Ascend only" in slim.unsupported_reason(EngineTask.QUANTIZE, all_chips()["nvidia-h800"])
    assert slim.profile().flags is ArgumentVerification.UNVERIFIED
