"""All images, and the archive of them."""

from __future__ import annotations

from pathlib import Path

from tests.kubernetes.images import PATH, Image, write_images
from tests.kubernetes.stand_in_images import serving, training

IMAGES = (
    serving.vllm(),
    serving.vllm_ascend(),
    serving.sglang(),
    serving.mindie(),
    training.llamafactory(),
    training.ms_swift(),
    training.mindspeed_llm(),
    serving.vllm_omni(),
    serving.tei(),
    serving.xllm(),
)


def write(path: Path) -> None:
    """An archive with all images, as ``ctr images import`` takes it."""
    write_images(
        path,
        [
            Image(
                name=each.image,
                files=each.contents(),
                environment={"PATH": PATH, **each.environment},
            )
            for each in IMAGES
        ],
    )
