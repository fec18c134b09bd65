"""Plug-ins of the vendors that ship with Ninefold, each read from the folder of its name."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from controlplane.adapters.chips.profiles import DataChips

_FOLDER = Path(__file__).resolve().parent

amd = partial(DataChips, _FOLDER / "amd")
ascend = partial(DataChips, _FOLDER / "ascend")
biren = partial(DataChips, _FOLDER / "biren")
cambricon = partial(DataChips, _FOLDER / "cambricon")
enflame = partial(DataChips, _FOLDER / "enflame")
gaudi = partial(DataChips, _FOLDER / "gaudi")
hygon = partial(DataChips, _FOLDER / "hygon")
iluvatar = partial(DataChips, _FOLDER / "iluvatar")
intel = partial(DataChips, _FOLDER / "intel")
kunlunxin = partial(DataChips, _FOLDER / "kunlunxin")
metax = partial(DataChips, _FOLDER / "metax")
mthreads = partial(DataChips, _FOLDER / "mthreads")
nvidia = partial(DataChips, _FOLDER / "nvidia")
thead = partial(DataChips, _FOLDER / "thead")
