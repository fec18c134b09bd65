"""Datasets in each format, and models of several generations."""

from __future__ import annotations

import csv
import io
import json
import random
import struct
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Team, User
from apps.models.models import CatalogModel, DatasetVersion, HubImport, ModelLine, ModelVersion
from apps.models.selectors.catalog import published_catalog
from apps.models.services import datasets, job_outputs
from apps.models.services.catalog import catalog_load
from apps.models.services.model_versions import model_version_fail_import
from tests import factories
from tests.e2e.demo.clock import ago, before
from tests.e2e.demo.reasons import sample_reason
from tests.e2e.demo.users import Users

_PROVINCES = (
    "浙江省丽水市龙泉市",
    "青海省西宁市城北区",
    "江苏省苏州市吴江区",
    "四川省成都市武侯区",
)
_STREETS = ("广田村", "三其村", "松陵镇中山北路", "天府大道中段", "永安社区", "人民东路")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    #: Of Maps; three versions, this is the newest.
    addresses: DatasetVersion
    chats: DatasetVersion
    #: Of Search.
    queries: DatasetVersion
    #: Everybody's.
    base: ModelVersion
    other_base: ModelVersion
    #: Of an entry of the catalog, with a configuration that says something else than it.
    catalogued: ModelVersion
    importing: ModelVersion
    arriving: ModelVersion
    refused: ModelVersion


def registry(users: Users) -> Registry:
    maps: dict[str, Any] = {"actor": users.ada, "team": users.maps}
    for count, days in ((240, 150), (900, 64)):
        with ago(days=days):
            _upload(**maps, name="addresses", body=_instructions(count), suffix="jsonl")
    with ago(days=9):
        addresses = _upload(**maps, name="addresses", body=_instructions(1600), suffix="jsonl")
        chats = _upload(**maps, name="support-chats", body=_conversations(320), suffix="json")
    with ago(days=4):
        _upload(**maps, name="street-names", body=_spreadsheet(480), suffix="csv")
    with ago(days=40):
        queries = _upload(
            actor=users.noor,
            team=users.search,
            name="query-rewrites",
            body=_instructions(200, seed=8),
            suffix="jsonl",
        )
    catalog_load(catalog=published_catalog(), at=timezone.now())
    with ago(days=180):
        base = _shared(users, "ninefold-tiny-qwen2", "attempt-of-the-first-base")
        other = _shared(users, "ninefold-tiny-llama", "attempt-of-the-other-base")
    catalogued = _catalogued(users)
    importing, refused = _imports(users)
    arriving = _arrival(users)
    return Registry(
        addresses=addresses,
        chats=chats,
        queries=queries,
        base=base,
        other_base=other,
        catalogued=catalogued,
        importing=importing,
        arriving=arriving,
        refused=refused,
    )


def _upload(*, actor: User, team: Team, name: str, body: str, suffix: str) -> DatasetVersion:
    return datasets.dataset_upload(
        actor=actor,
        team=team,
        name=name,
        stream=io.BytesIO(body.encode()),
        filename=f"{name}.{suffix}",
        description=f"{name.replace('-', ' ').capitalize()}, as collected by {team}",
    )


def _address(chance: random.Random) -> tuple[str, str]:
    province, street = chance.choice(_PROVINCES), chance.choice(_STREETS)
    number, room = chance.randint(1, 999), chance.randint(101, 2305)
    long = chance.random() < 0.2
    where = f"{province}{street}{number}号" + (f"幢{room}室，送货前请先打电话" if long else "")
    return where, f"{province[:3]}_1,{province[3:6]}_2,{province[6:]}_3,{street}_4,{number}号_5"


def _instructions(count: int, *, seed: int = 7) -> str:
    chance = random.Random(seed)
    lines = []
    for _ in range(count):
        where, parsed = _address(chance)
        lines.append(json.dumps({"instruction": where, "output": parsed}, ensure_ascii=False))
    return "\n".join(dict.fromkeys(lines))


def _conversations(count: int) -> str:
    chance = random.Random(11)
    rows = []
    for number in range(count):
        where, parsed = _address(chance)
        rows.append(
            {
                "messages": [
                    {"role": "user", "content": f"订单 {number} 的地址怎么拆分？{where}"},
                    {"role": "assistant", "content": parsed},
                ]
            }
        )
    return json.dumps(rows, ensure_ascii=False)


def _spreadsheet(count: int) -> str:
    chance = random.Random(5)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(("instruction", "output"))
    for number in range(count):
        where, _parsed = _address(chance)
        writer.writerow((f"{number}: {where}", chance.choice(_STREETS)))
    return out.getvalue()


def model_files(*, million: int = 494) -> list[factories.File]:
    """A model whose header is real; only its header is stored, its size is what it would be."""
    config = {"architectures": ["Qwen2ForCausalLM"], "max_position_embeddings": 32768}
    shape = [million * 1000, 1000]
    size = 2 * shape[0] * shape[1]
    names = {"w": {"dtype": "BF16", "shape": shape, "data_offsets": [0, size]}}
    header = json.dumps(names).encode()
    path, digest, stored = factories.stored(
        "model.safetensors", struct.pack("<Q", len(header)) + header
    )
    tokenizer = factories.stored("tokenizer.json", b'{"version": "1.0"}')
    return [
        factories.stored("config.json", json.dumps(config).encode()),
        (path, digest, stored + size),
        tokenizer,
    ]


@transaction.atomic
def version(
    *,
    origin: job_outputs.OutputOrigin,
    name: str,
    base: ModelVersion | None,
    dataset: DatasetVersion | None,
    loss: float,
    million: int = 494,
) -> ModelVersion:
    """What a job made."""
    return job_outputs.model_version_register(
        origin=origin,
        name=name,
        files=model_files(million=million),
        base=base,
        dataset_version=dataset,
        metrics={"loss": loss, "eval_loss": round(loss * 1.08, 4)} if loss else {},
    )


def _shared(users: Users, name: str, attempt_uid: str) -> ModelVersion:
    origin = job_outputs.OutputOrigin(
        team=users.maps, actor=users.admin, job_uid="", attempt_uid=attempt_uid, shared=True
    )
    return version(origin=origin, name=name, base=None, dataset=None, loss=0.0)


def _imports(users: Users) -> tuple[ModelVersion, ModelVersion]:
    """One that is being copied and one that was refused."""
    line = ModelLine.objects.create(
        team=users.maps, name="qwen2.5-7b-instruct", description="From the shared drive"
    )
    values = {"line": line, "created_by": users.ada, "architecture": "Qwen2ForCausalLM"}
    with ago(hours=30):
        refused = ModelVersion.objects.create(
            **values, number=1, source_path="/models/qwen2.5-7b-instruct-old"
        )
        model_version_fail_import(
            version=refused,
            reason=sample_reason(
                "model_version.file.not_safetensors", path="model-00002-of-00004.safetensors"
            ),
            at=before(hours=30),
        )
    with ago(minutes=3):
        importing = ModelVersion.objects.create(
            **values, number=2, source_path="/models/qwen2.5-7b-instruct"
        )
    return importing, refused


def _arrival(users: Users) -> ModelVersion:
    """One that comes from a hub, with a third of it here and a line that broke a moment ago."""
    size, third = 3_554_214_752, 1_190_000_000
    with ago(minutes=6):
        line = ModelLine.objects.create(team=users.maps, name="qwen3-1.7b")
        arriving = ModelVersion.objects.create(line=line, number=1, created_by=users.ada)
    HubImport.objects.create(
        version=arriving,
        hub="modelscope",
        address="https://modelscope.cn",
        repository="Qwen/Qwen3-1.7B",
        revision="master",
        commit="master",
        files=[{"path": "model.safetensors", "size": size, "sha256": "0" * 64, "git_sha1": ""}],
        size=size,
        received=third,
        speed=11_400_000.0,
        failures=1,
        error=sample_reason("egress.response.interrupted", error="Connection reset by peer"),
        retry_at=timezone.now() + timedelta(days=1),
    )
    return arriving


@transaction.atomic
def _catalogued(users: Users) -> ModelVersion:
    with ago(days=12):
        version = factories.model_version(
            actor=users.ada, team=users.maps, name="qwen-for-long-texts"
        )
    version.catalog_model = CatalogModel.objects.get(key="qwen2.5-7b-instruct")
    version.parameters = 7_615_616_512
    version.context_length = 131_072
    version.config = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "num_hidden_layers": 28,
        "hidden_size": 3584,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "intermediate_size": 18944,
        "vocab_size": 152064,
        "max_position_embeddings": 131072,
        "torch_dtype": "float16",
    }
    version.save(update_fields=["catalog_model", "parameters", "context_length", "config"])
    return version
