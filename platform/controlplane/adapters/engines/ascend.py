"""Which of Ascend's chips run which build of an image: makers of engines build for generations, not for chips."""

from __future__ import annotations

_A2 = (
    "ascend-910b1",
    "ascend-910b2",
    "ascend-910b2c",
    "ascend-910b3",
    "ascend-910b4",
    "ascend-910b4-1",
)
_A3 = ("ascend-910c",)
_INFERENCE = ("ascend-310p", "ascend-310p-duo")


def images(*, a2: str, a3: str, inference: str = "") -> dict[str, str]:
    """The image of each chip, for ``EngineProfile.images``; ``inference`` is that of the 310P, if there is one."""
    builds = ((_A2, a2), (_A3, a3), (_INFERENCE, inference))
    return {chip: image for chips, image in builds if image for chip in chips}
