"""Picture grids: many pictures on one, small enough to be committed."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

#: Pixels of one picture on the grid.
_CELL = {1440: (480, 330), 390: (160, 330)}
_ACROSS = {1440: 4, 390: 10}
_GAP = 12
_QUALITY = 62


def write(pictures: Path, *, into: Path) -> None:
    """One grid for each width, theme and language among ``<title>-<width>-<theme>-<language>.png``."""
    into.mkdir(parents=True, exist_ok=True)
    groups: dict[str, list[Path]] = {}
    for picture in sorted(pictures.glob("*.png")):
        appearance = next(
            (
                f"{width}{rest}"
                for width in _CELL
                for _, mark, rest in [picture.stem.partition(f"-{width}")]
                if mark
            ),
            None,
        )
        if appearance is not None:
            groups.setdefault(appearance, []).append(picture)
    for appearance, found in groups.items():
        _grid(found, width=int(appearance.split("-")[0])).save(
            into / f"{appearance}.webp", quality=_QUALITY, method=6
        )


def _grid(pictures: list[Path], *, width: int) -> Image.Image:
    across, cell = _ACROSS[width], _CELL[width]
    down = -(-len(pictures) // across)
    step = (cell[0] + _GAP, cell[1] + _GAP)
    grid = Image.new("RGB", (across * step[0] + _GAP, down * step[1] + _GAP), (128, 132, 140))
    for number, path in enumerate(pictures):
        with Image.open(path) as picture:
            whole = picture.convert("RGB")
        small = whole.resize((cell[0], max(1, round(whole.height * cell[0] / whole.width))))
        shown = small.crop((0, 0, cell[0], min(cell[1], small.height)))
        place = (_GAP + number % across * step[0], _GAP + number // across * step[1])
        grid.paste(shown, place)
    return grid
