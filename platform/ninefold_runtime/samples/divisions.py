"""Real administrative divisions of China, in the compact form that ``data/divisions.json`` keeps.

::

    {"青海省": {"西宁市": {"城北区": "朝阳街道 大堡子镇 …"}}}

    province → city → district → places

A *place* is what stands below the district in an address: a street office, a town, a township or a
village. Places are a sample; provinces and cities are complete. Three kinds of names are left out:
development zones and other units that exist for statistics only, units directly below a province
that the source files under a made-up city, and places with a character that no district or city
has (they would widen a small model's vocabulary for one name each).

A municipality has no city between itself and its districts; its only city is the empty string here.

Run ``python -m ninefold_runtime.samples.divisions --source FOLDER --out FILE`` on the ``dist``
folder of the source that ``data/NOTICE.md`` names to make the file again.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path

#: Province → city ("" in a municipality) → district → places.
Divisions = dict[str, dict[str, dict[str, tuple[str, ...]]]]

DATA = files("ninefold_runtime.samples") / "data"

_NO_CITY = "市辖区"
_NOT_A_CITY = re.compile(r"直辖县级行政区划$")
#: The last two digits of a district's code that the statistics office gives to units of its own.
_STATISTICAL = range(71, 81)
_TOWN = re.compile(r"[^（）()·\d]{1,6}(?:街道|镇|乡)$")
_VILLAGE = re.compile(r"([^（）()·\d]{2,4}?村)(?:村民委员会|民委员会|村委会|委会)$")
#: Enough for a sample of five thousand addresses with no place twice, small enough to ship.
_TOWNS_EACH = 5
_VILLAGES_EACH = 2


def load() -> Divisions:
    """The shipped divisions."""
    text = DATA.joinpath("divisions.json").read_text(encoding="utf-8")
    raw: dict[str, dict[str, dict[str, str]]] = json.loads(text)
    return {
        province: {
            city: {district: tuple(places.split()) for district, places in districts.items()}
            for city, districts in cities.items()
        }
        for province, cities in raw.items()
    }


def build(source: Path) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """The content of ``divisions.json`` from a folder with the source's CSV files."""
    provinces = {row["code"]: row["name"] for row in _rows(source / "provinces.csv")}
    cities = {
        row["code"]: row
        for row in _rows(source / "cities.csv")
        if row["name"] != "县" and not _NOT_A_CITY.search(row["name"])
    }
    districts = {
        row["code"]: row
        for row in _rows(source / "areas.csv")
        if row["cityCode"] in cities
        and row["name"] not in (_NO_CITY, cities[row["cityCode"]]["name"])
        and int(row["code"][4:]) not in _STATISTICAL
    }
    known = set("街道镇乡村").union(
        *(row["name"] for row in (*cities.values(), *districts.values()))
    )
    towns = _sample(source / "streets.csv", _TOWN, _TOWNS_EACH, known)
    villages = _sample(source / "villages.csv", _VILLAGE, _VILLAGES_EACH, known)

    tree: dict[str, dict[str, dict[str, str]]] = {name: {} for name in provinces.values()}
    for code, row in districts.items():
        places = towns.get(code, []) + villages.get(code, [])
        if not places:
            continue
        city = cities[row["cityCode"]]["name"].replace(_NO_CITY, "")
        tree[provinces[row["provinceCode"]]].setdefault(city, {})[row["name"]] = " ".join(places)
    return tree


def _rows(path: Path) -> Iterable[Mapping[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


def _sample(path: Path, form: re.Pattern[str], each: int, known: set[str]) -> dict[str, list[str]]:
    """Up to ``each`` names per district: those whose digests come first, so that no run differs."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for row in _rows(path):
        match = form.fullmatch(row["name"])
        if match is None:
            continue
        name = match.group(1) if match.groups() else match.group()
        if known.issuperset(name):
            digest = hashlib.sha256(f"{row['areaCode']}{name}".encode()).hexdigest()
            found[row["areaCode"]][name] = digest
    return {
        area: sorted(digests, key=digests.__getitem__)[:each] for area, digests in found.items()
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="divisions", description="Build divisions.json.")
    parser.add_argument("--source", type=Path, required=True, help="folder with the CSV files")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    options = parser.parse_args(arguments)
    tree = build(options.source)
    text = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
    options.out.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
