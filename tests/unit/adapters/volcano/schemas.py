"""Volcano's own CRDs, where a copy of them lies beside the project: unknown fields are errors."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

#: Those that we make objects of.
FILES = (
    "batch.volcano.sh_jobs",
    "bus.volcano.sh_commands",
    "scheduling.volcano.sh_podgroups",
    "scheduling.volcano.sh_queues",
    "topology.volcano.sh_hypernodes",
)
FOLDER = Path(__file__).resolve().parents[5] / "shared" / "crds"


@cache
def _checker() -> tuple[Any, Any]:
    pytest.importorskip("jsonschema")
    spec = importlib.util.spec_from_file_location("crdcheck", FOLDER / "crdcheck.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    schemas = {}
    for file in FILES:
        text = (FOLDER / "volcano" / f"{file}.yaml").read_text("utf-8")
        # Its own reader does the same in pure Python, which takes seconds.
        spec = yaml.load(text, Loader=yaml.CSafeLoader)["spec"]
        for version in spec["versions"]:
            key = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            schemas[key] = (version["schema"]["openAPIV3Schema"], spec["scope"])
    return module, schemas


def assert_valid(manifests: Iterable[Mapping[str, Any]]) -> None:
    """Every object of a kind of Volcano fits its schema; at least one has to be of such a kind."""
    if not (FOLDER / "crdcheck.py").is_file():
        pytest.skip("Volcano's CRDs do not lie beside the project")
    module, schemas = _checker()
    found = {
        f"{one['kind']} {one['metadata']['name']}": module.check(one, schemas) for one in manifests
    }
    known = {name: errors for name, errors in found.items() if errors is not None}
    assert known
    assert {name: errors for name, errors in known.items() if errors} == {}
