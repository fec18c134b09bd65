"""LoRA adapters beside their base model on the product's server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.engine.conftest import LIMIT_SECONDS, build_tiny_model, runtime_environment
from tests.engine.servers import MODEL, Server, running_server

BUILDER = Path(__file__).parent / "build_lora_adapters.py"


@pytest.fixture(scope="module")
def base(engine_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "ninefold-tiny-qwen2"
    build_tiny_model(engine_python, folder.name, folder=folder)
    return folder


@pytest.fixture(scope="module")
def adapters(engine_python: Path, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the adapters, and ``expected.json``."""
    folder = tmp_path_factory.mktemp("adapters")
    built = subprocess.run(
        [str(engine_python), str(BUILDER), str(base), str(folder)],
        env=runtime_environment(folder, folder),
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def expected(adapters: Path) -> Any:
    return json.loads((adapters / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def server(
    engine_python: Path, base: Path, adapters: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folders = {name: adapters / name for name in ("formal", "casual")}
    with running_server(
        engine_python, base, folder=tmp_path_factory.mktemp("serving"), adapters=folders
    ) as server:
        yield server


def test_each_name_answers_as_the_model_with_that_adapter_merged(
    server: Server, expected: Any
) -> None:
    """In turns, so that an adapter that stays applied would be seen."""
    answers = expected["answers"]
    assert len({each["text"] for each in answers.values()}) == 3
    with server.client() as client:
        for name in ("formal", "", "casual", "formal", ""):
            answer = client.completions.create(
                model=name or MODEL,
                prompt=expected["prompt"],
                max_tokens=expected["tokens"],
                temperature=0,
                logprobs=1,
            )
            known = answers[name]
            assert answer.model == (name or MODEL)
            assert answer.choices[0].text == known["text"], name
            logprobs = answer.choices[0].logprobs
            assert logprobs is not None
            assert logprobs.token_logprobs is not None
            assert logprobs.token_logprobs[0] == pytest.approx(known["logprob"], abs=1e-3)


def test_adapters_are_models_of_the_server(server: Server) -> None:
    with server.client() as client:
        listed = {each.id: each.model_dump()["parent"] for each in client.models.list()}
        assert listed == {MODEL: None, "formal": MODEL, "casual": MODEL}
        assert client.models.retrieve("casual").id == "casual"
        with pytest.raises(openai.NotFoundError):
            client.completions.create(model="other", prompt="西宁")


@pytest.mark.full
def test_an_adapter_of_another_model_ends_the_server_with_the_reason(
    engine_python: Path, base: Path, adapters: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    config = json.loads((adapters / "formal" / "adapter_config.json").read_text("utf-8"))
    (broken / "adapter_config.json").write_text(json.dumps(config | {"r": 3}), "utf-8")
    weights = (adapters / "formal" / "adapter_model.safetensors").read_bytes()
    (broken / "adapter_model.safetensors").write_bytes(weights)
    with (
        pytest.raises(pytest.fail.Exception, match="the LoRA adapter broken cannot be loaded"),
        running_server(
            engine_python, base, folder=tmp_path / "serving", adapters={"broken": broken}
        ),
    ):
        pass
