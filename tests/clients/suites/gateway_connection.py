"""The gateway under test, for suites that run in the environment of the clients."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

_GIVEN: dict[str, Any] = json.loads(Path(os.environ["NINEFOLD_TEST_GATEWAY"]).read_text())

#: Without a path.
URL: str = _GIVEN["url"]
BASE_URL = f"{URL}/v1"
KEY: str = _GIVEN["key"]
#: What the models of tests/engine/build_served_models.py answer, by their kind.
EXPECTED: dict[str, Any] = _GIVEN["expected"]
#: A file of audio.
TONE = Path(_GIVEN["tone"])
#: What the engine of ``ANY`` answers as speech.
SOUND = base64.b64decode(_GIVEN["sound"])
#: Where a suite leaves the image that it got, whose pixels the test compares.
IMAGE = Path(_GIVEN["image"])
#: Seconds that a client waits for an answer; generous, for busy machines.
WITHIN = 300.0

#: Routes: one for each kind of model on the product's own server, and one with all operations, whose engine
#: answers ``hello``.
TEXT, VISION, EMBEDDING, RERANKING, TRANSCRIPTION, IMAGES, ANY = (
    "text",
    "vision",
    "embedding",
    "reranking",
    "transcription",
    "images",
    "any",
)
ORDER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "level": {"enum": ["low", "high"]},
        "count": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["level", "count"],
    "additionalProperties": False,
}


def assert_order(value: Any) -> None:
    """That the value matches :data:`ORDER_SCHEMA`."""
    assert value.keys() == {"level", "count"}
    assert value["level"] in ("low", "high")
    assert 0 <= value["count"] <= 99
