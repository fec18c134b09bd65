"""MindIE's ``config.json`` as its documentation describes it: checked against the documented fields, not run.

MindIE is on no registry, and its daemon needs the drivers of the cards. Fields, types, ranges and which of them
are required are those of MindIE-LLM at 8b4871a (2026-04): ``service_parameter_configuration.md`` below
``docs/zh/user_guide/user_manual`` and, where that names no range or another one, the checks of the daemon in
``src/config_manager``. Names of parsers are in ``docs/zh/user_guide/feature/function_call.md``. Fields that the
published default has and the documentation lacks are marked.
"""

# Names of fields are MindIE's.
# ruff: noqa: N815

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal, Self

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from apps.models.selectors.catalog import catalog_model_facts, published_catalog
from controlplane.adapters.engines.container_commands import bundled_text
from controlplane.domain.serving.model_kinds import ModelKind
from controlplane.ports.launches import Launch
from tests.unit.engines.serving_requests import CHIPS, MODELSLIM, PLAIN, SPECS, findings, rendered

Port = Annotated[int, Field(ge=1024, le=65_535)]
Unsigned = Annotated[int, Field(ge=0, le=2**32 - 1)]
Milliseconds = Annotated[int, Field(ge=0, le=1000)]
#: Names of files; at most three.
Files = Annotated[list[str], Field(min_length=1, max_length=3)]
MAX_INPUT_TOKENS = 4_194_304


class Documented(BaseModel):
    """Neither other fields nor values of other types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class HealthCheck(Documented):
    npuUsageThreshold: Annotated[int, Field(ge=0, le=100)] = 10


class Server(Documented):
    ipAddress: str
    managementIpAddress: str | None = None
    port: Port
    managementPort: Port | None = None
    metricsPort: Port
    allowAllZeroIpListening: bool
    maxLinkNum: Annotated[int, Field(ge=1, le=4096)]
    httpsEnabled: bool
    fullTextEnabled: bool = False
    tlsCaPath: str = ""
    tlsCaFile: Files | None = None
    tlsCert: str = ""
    tlsPk: str = ""
    tlsCrlPath: str = ""
    tlsCrlFiles: Files | None = None
    managementTlsCaFile: Files | None = None
    managementTlsCert: str = ""
    managementTlsPk: str = ""
    managementTlsCrlPath: str = ""
    managementTlsCrlFiles: Files | None = None
    metricsTlsCaFile: Files | None = None
    metricsTlsCert: str = ""
    metricsTlsPk: str = ""
    metricsTlsCrlPath: str = ""
    metricsTlsCrlFiles: Files | None = None
    inferMode: Literal["standard", "dmi"]
    interCommTLSEnabled: bool = True
    interCommPort: Port = 1121
    interCommTlsCaPath: str = ""
    interCommTlsCaFiles: Files | None = None
    interCommTlsCert: str = ""
    interCommPk: str = ""
    interCommTlsCrlPath: str = ""
    interCommTlsCrlFiles: Files | None = None
    openAiSupport: str = "vllm"
    tokenTimeout: Annotated[int, Field(ge=1, le=3600)]
    e2eTimeout: Annotated[int, Field(ge=1, le=65_535)]
    maxRequestLength: Annotated[int, Field(ge=1, le=100)] = 40
    distDPServerEnabled: bool
    HealthCheckConfig: HealthCheck | None = None
    # In the published default only: the division of layers among servers at the edge and in the cloud.
    layerwiseDisaggregated: Literal[False] = False
    layerwiseDisaggregatedRoleType: str = ""
    layerwiseDisaggregatedMasterIpAddress: str = ""
    layerwiseDisaggregatedSlaveIpAddress: list[str] = []
    layerwiseDisaggregatedDataPort: Port | None = None
    layerwiseDisaggregatedCrtlPort: list[Port] = []

    @model_validator(mode="after")
    def addresses_are_allowed(self) -> Self:
        for address in (self.ipAddress, self.managementIpAddress or self.ipAddress):
            if ip_address(address).is_unspecified and not self.allowAllZeroIpListening:
                raise ValueError(f"{address} needs allowAllZeroIpListening")
        return self

    @model_validator(mode="after")
    def certificates_are_named(self) -> Self:
        if self.httpsEnabled and not (self.tlsCaPath and self.tlsCaFile and self.tlsCert):
            raise ValueError("httpsEnabled needs tlsCaPath, tlsCaFile and tlsCert")
        return self


#: Registered names of parsers of tool calls.
TOOL_CALL_PARSERS = [
    "chatglm2_6b",
    "chatglm_v2_6b",
    "chatglm_v2",
    "chatglm2",
    "chatglm3_6b",
    "chatglm_v3_6b",
    "chatglm_v3",
    "chatglm3",
    "chatglm4_9b",
    "chatglm_v4_9b",
    "glm_4",
    "glm_4_9b",
    "deepseek_v2",
    "deepseek_v3",
    "deepseekv2",
    "deepseekv3",
    "deepseek_v31",
    "deepseekv31",
    "llama",
    "llama3",
    "llama3_1",
    "qwen1_5",
    "qwen_1_5",
    "qwen2",
    "qwen_2",
    "qwen1_5_or_2",
    "qwen_1_5_or_2",
    "qwen2_5",
    "qwen_2_5",
    "qwen3",
    "qwen3_moe",
    "hermes",
]


class ToolCallOptions(Documented):
    tool_call_parser: Annotated[str, Field(pattern=rf"^({'|'.join(TOOL_CALL_PARSERS)})?$")] = ""


class ModelOptions(Documented):
    """Of a type of model; beside them are options of parallelism that a replica does not set."""

    enable_reasoning: bool = False
    tool_call_options: ToolCallOptions | None = None


class Models(Documented):
    chatglm: ModelOptions | None = None
    deepseekv2: ModelOptions | None = None
    deepseek_v32: ModelOptions | None = None
    llama: ModelOptions | None = None
    qwen2: ModelOptions | None = None
    qwen3: ModelOptions | None = None
    qwen3_moe: ModelOptions | None = None
    # In the published default only.
    layerwiseDisaggregatedMasterDeviceNum: Unsigned | None = None
    layerwiseDisaggregatedSlaveDeviceNum: Unsigned | None = None


class ServedModel(Documented):
    modelInstanceType: Literal["Standard", "StandardMock"] = "Standard"
    modelName: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$", max_length=256)
    ]
    modelWeightPath: Annotated[str, Field(min_length=1, max_length=4096)]
    worldSize: Annotated[int, Field(ge=1)]
    cpuMemSize: Unsigned
    npuMemSize: Annotated[int, Field(ge=-1, le=2**31 - 1)]
    backendType: Literal["atb", "torch"]
    trustRemoteCode: bool
    kv_trans_timeout: int = 10
    kv_link_timeout: int = 1080
    models: Models | None = None
    # In the published default only.
    async_scheduler_wait_time: int = 120

    @model_validator(mode="after")
    def memory_is_automatic_or_some(self) -> Self:
        if self.npuMemSize == 0:
            raise ValueError("npuMemSize must be -1 or above 0")
        return self


class ModelDeployment(Documented):
    maxSeqLen: Annotated[int, Field(ge=1, le=2**32 - 1)]
    maxInputTokenLen: Annotated[int, Field(ge=1, le=MAX_INPUT_TOKENS)]
    truncation: Literal[-1, 0, 1] | bool = 0
    #: One for the template ``Standard``.
    ModelConfig: Annotated[list[ServedModel], Field(min_length=1, max_length=1)]


class Schedule(Documented):
    templateType: Literal["Standard", "Mix"]
    templateName: Literal["Standard_LLM"]
    cacheBlockSize: Annotated[int, Field(ge=1, le=128)]
    maxPrefillBatchSize: Unsigned
    maxPrefillTokens: Annotated[int, Field(ge=1, le=MAX_INPUT_TOKENS)]
    prefillTimeMsPerReq: Milliseconds
    prefillPolicyType: Literal[0]
    decodeTimeMsPerReq: Milliseconds
    decodePolicyType: Literal[0]
    maxBatchSize: Annotated[int, Field(ge=1, le=819_200)]
    maxIterTimes: Annotated[int, Field(ge=1)]
    maxPreemptCount: Unsigned
    supportSelectBatch: bool
    maxQueueDelayMicroseconds: Annotated[int, Field(ge=500, le=1_000_000)]
    maxFirstTokenWaitTime: Annotated[int, Field(ge=0, le=3_600_000)] = 2500
    maxN: Annotated[int, Field(ge=1, le=8192)] | None = None

    @model_validator(mode="after")
    def nothing_exceeds_the_batch(self) -> Self:
        for name in ("maxPrefillBatchSize", "maxPreemptCount", "maxN"):
            if (getattr(self, name) or 0) > self.maxBatchSize:
                raise ValueError(f"{name} must be at most maxBatchSize")
        return self


class KvPoolConfig(Documented):
    """In the published default and in the checks of the daemon only."""

    backend: Literal["", "unifiedcache", "mooncake", "memcache"] = ""
    configPath: Annotated[str, Field(max_length=500)] = ""


class Backend(Documented):
    backendName: Literal["mindieservice_llm_engine"]
    modelInstanceNumber: Annotated[int, Field(ge=1, le=10)]
    npuDeviceIds: list[list[Annotated[int, Field(ge=0)]]]
    tokenizerProcessNumber: Annotated[int, Field(ge=1, le=32)]
    #: Optional in the documentation, but the daemon ends without them.
    multiNodesInferEnabled: bool
    interNodeTLSEnabled: bool
    multiNodesInferPort: Port = 1120
    interNodeTlsCaPath: str = ""
    interNodeTlsCaFiles: Files | None = None
    interNodeTlsCert: str = ""
    interNodeTlsPk: str = ""
    interNodeTlsCrlPath: str = ""
    interNodeTlsCrlFiles: Files | None = None
    kvPoolConfig: KvPoolConfig | None = None
    ModelDeployConfig: ModelDeployment
    ScheduleConfig: Schedule

    @model_validator(mode="after")
    def cards_are_those_of_the_model(self) -> Self:
        (model,) = self.ModelDeployConfig.ModelConfig
        if len(self.npuDeviceIds) != self.modelInstanceNumber:
            raise ValueError("npuDeviceIds must have one list for each instance")
        if any(len(set(cards)) != model.worldSize for cards in self.npuDeviceIds):
            raise ValueError("each list of npuDeviceIds must have worldSize different cards")
        return self

    @model_validator(mode="after")
    def schedule_is_that_of_the_model(self) -> Self:
        deploy, schedule = self.ModelDeployConfig, self.ScheduleConfig
        if schedule.maxIterTimes > deploy.maxSeqLen:
            raise ValueError("maxIterTimes must be at most maxSeqLen")
        if schedule.maxPrefillTokens < deploy.maxInputTokenLen and schedule.templateType != "Mix":
            raise ValueError("maxPrefillTokens must be at least maxInputTokenLen")
        if schedule.maxPreemptCount and not deploy.ModelConfig[0].cpuMemSize:
            raise ValueError("maxPreemptCount needs cpuMemSize")
        return self


class Log(Documented):
    dynamicLogLevel: str = ""
    dynamicLogLevelValidHours: Annotated[int, Field(ge=1, le=168)]
    dynamicLogLevelValidTime: str = ""


class MindieConfiguration(Documented):
    Version: Literal["1.0.0"]
    ServerConfig: Server
    BackendConfig: Backend
    LogConfig: Log
    EnableDynamicAdjustTimeoutConfig: bool = False

    @model_validator(mode="after")
    def ports_differ(self) -> Self:
        if self.ServerConfig.port == self.BackendConfig.multiNodesInferPort:
            raise ValueError("port must not be multiNodesInferPort")
        return self


def configuration(launch: Launch) -> Any:
    """The file with the ports that a cluster fills in."""
    text = launch.files["config.json"]
    for number, name in enumerate(("http", "management", "metrics"), start=8000):
        text = text.replace(f"{{port:{name}}}", str(number))
    return json.loads(text)


#: Beside those of all engines: the least and the most that the fields of a spec allow.
BOUNDS: tuple[Mapping[str, Any], ...] = (
    {"model_name": "m", "context_length": 128, "concurrency": 1, "memory_fraction": 0.1},
    {"model_name": "a-b_c.d", "concurrency": 2000, "memory_fraction": 0.98},
    {"model_name": "m", "concurrency": 65_536},
    {"model_name": "m", "tool_call_parser": "hermes", "reasoning_parser": "auto"},
)


def launches() -> Iterator[Launch]:
    """Every spec on every chip that takes it, and a model of each family in the catalog with its parsers."""
    for chip in CHIPS:
        for model in (PLAIN, MODELSLIM):
            for spec in (*SPECS.values(), *BOUNDS):
                if not findings("mindie", spec, chip=chip, model=model):
                    yield rendered("mindie", spec, chip=chip, model=model)
        for entry in published_catalog().entries.values():
            model = catalog_model_facts(entry)
            if model.kind is not ModelKind.TEXT:
                continue
            for spec in ({"model_name": "m"}, {"model_name": "m", "reasoning_parser": "auto"}):
                if not findings("mindie", spec, chip=chip, model=model):
                    yield rendered("mindie", spec, chip=chip, model=model)


def test_every_configuration_has_the_documented_fields_and_values() -> None:
    read = [MindieConfiguration.model_validate(configuration(launch)) for launch in launches()]
    deploy = [each.BackendConfig.ModelDeployConfig for each in read]
    types = {
        name
        for each in deploy
        if (models := each.ModelConfig[0].models) is not None
        for name in models.model_fields_set
    }
    assert types >= {"deepseekv2", "qwen3", "qwen3_moe"}
    assert {each.BackendConfig.ScheduleConfig.maxBatchSize for each in read} >= {1, 2000, 65_536}
    assert {each.maxSeqLen for each in deploy} >= {128, 8192}


def test_a_context_of_ten_million_tokens_has_the_longest_documented_input() -> None:
    spec = {"context_length": 10_485_760}
    read = configuration(rendered("mindie", spec, chip="ascend-910c"))
    backend = MindieConfiguration.model_validate(read).BackendConfig
    assert backend.ModelDeployConfig.maxSeqLen == 10_485_760
    assert backend.ModelDeployConfig.maxInputTokenLen == MAX_INPUT_TOKENS


def test_the_published_default_has_the_documented_fields_and_values() -> None:
    MindieConfiguration.model_validate(json.loads(bundled_text("mindie_config.json")))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("ServerConfig.port", 80, "greater than or equal to 1024"),
        ("ServerConfig.port", 1120, "port must not be multiNodesInferPort"),
        ("ServerConfig.port", "8000", "valid integer"),
        ("ServerConfig.maxLinkNum", 4097, "less than or equal to 4096"),
        ("ServerConfig.allowAllZeroIpListening", False, "needs allowAllZeroIpListening"),
        ("ServerConfig.tokenTimeOut", 600, "Extra inputs are not permitted"),
        ("ServerConfig.distDPServerEnabled", None, "Field required"),
        ("BackendConfig.npuDeviceIds", [[0, 1, 2, 2]], "worldSize different cards"),
        ("BackendConfig.npuDeviceIds", [[0], [1]], "one list for each instance"),
        ("BackendConfig.ModelDeployConfig.ModelConfig.0.modelName", "Qwen/Qwen3", "match pattern"),
        ("BackendConfig.ModelDeployConfig.ModelConfig.0.npuMemSize", 0, "-1 or above 0"),
        ("BackendConfig.ModelDeployConfig.ModelConfig.0.models", {"gpt_oss": {}}, "Extra inputs"),
        ("BackendConfig.ModelDeployConfig.maxInputTokenLen", 4_194_305, "4194304"),
        ("BackendConfig.ScheduleConfig.maxPrefillTokens", 1, "at least maxInputTokenLen"),
        ("BackendConfig.ScheduleConfig.maxPrefillBatchSize", 201, "at most maxBatchSize"),
        ("BackendConfig.ScheduleConfig.maxIterTimes", 10_000_000, "at most maxSeqLen"),
        ("BackendConfig.ScheduleConfig.maxPreemptCount", 1, "needs cpuMemSize"),
    ],
)
def test_what_the_documentation_does_not_allow_is_noticed(
    path: str, value: object, message: str
) -> None:
    """None removes the field."""
    whole = copy.deepcopy(configuration(rendered("mindie", {}, chip="ascend-910b3")))
    *parents, last = path.split(".")
    place = whole
    for each in parents:
        place = place[int(each)] if each.isdigit() else place[each]
    if value is None:
        del place[last]
    else:
        place[last] = value
    with pytest.raises(ValidationError, match=re.escape(message)):
        MindieConfiguration.model_validate(whole)


def test_what_mindie_does_not_start_with_is_refused() -> None:
    for name in ("Qwen/Qwen3-8B", "team:assistant", "assistant-", "assistant."):
        wrong = findings("mindie", {"model_name": name}, chip="ascend-910b3")
        assert list(wrong) == ["model_name"], name
        assert "end with a letter or digit" in wrong["model_name"]
    many = {"concurrency": 2001}
    assert findings("mindie", many, chip="ascend-910b3") == {}
    wrong = findings("mindie", many, chip="ascend-310p")
    assert wrong == {
        "concurrency": "concurrency must be at most 2000 with MindIE on Ascend 310P "
        "(Atlas 300I Pro), got 2001"
    }
    assert findings("mindie", {"parallel": "t"}, chip="ascend-310p") == {
        "parallel": "parallel must be an object, got 't'"
    }
