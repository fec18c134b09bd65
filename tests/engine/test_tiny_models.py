"""The tiny models: the same bytes each time, and a tokenizer that loses nothing."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from controlplane.domain.registry.versions import NATIVE_MODEL_TYPES
from ninefold_runtime.samples import tiny_models
from tests.engine.conftest import LIMIT_SECONDS, build_tiny_model, runtime_environment

TEXTS = [
    "青海省_1,西宁市_3A,城北区_3A,三其村_4B, _5A-1,可以发圆通吗 谢谢_UNK",
    "Hello  world, 龘 é 😀\n x_y\t!",
]
ROUND_TRIP = """
import json, sys
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
found = []
for text in json.loads(sys.argv[2]):
    ids = tokenizer.encode(text, add_special_tokens=False)
    found.append([len(ids), tokenizer.decode(ids)])
print(json.dumps(found))
"""


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _python(engine_python: Path, work: Path, *arguments: str) -> str:
    finished = subprocess.run(
        [str(engine_python), *arguments],
        env=runtime_environment(work, work),
        check=True,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    return finished.stdout


@pytest.mark.parametrize("name", tiny_models.NAMES)
def test_building_twice_gives_the_same_files(
    engine_python: Path, built_models: Path, tmp_path: Path, name: str
) -> None:
    build_tiny_model(engine_python, name, folder=tmp_path / name)
    again = _digests(tmp_path / name)
    assert "config.json" in again
    assert again == _digests(built_models / name)


@pytest.mark.parametrize("name", tiny_models.NAMES)
def test_text_survives_the_tokenizer_and_a_chinese_character_is_one_token(
    engine_python: Path, built_models: Path, tmp_path: Path, name: str
) -> None:
    out = _python(
        engine_python, tmp_path, "-c", ROUND_TRIP, str(built_models / name), json.dumps(TEXTS)
    )
    (address_tokens, address), (_, other) = json.loads(out)
    assert [address, other] == TEXTS
    letters = len(TEXTS[0]) - sum(
        len(label) - 1 for label in ("_1", "_3A", "_3A", "_4B", "_5A-1", "_UNK")
    )
    assert address_tokens == letters


def test_what_is_imported_without_its_code_is_known_to_transformers(engine_python: Path) -> None:
    known = "from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES as names"
    completed = subprocess.run(
        [str(engine_python), "-c", f"import json; {known}; print(json.dumps(sorted(names)))"],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=True,
    )
    assert set(json.loads(completed.stdout.splitlines()[-1])) >= NATIVE_MODEL_TYPES
