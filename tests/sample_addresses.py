"""A dataset for teaching a small model to take Chinese addresses apart.

::

    instruction   青海西宁市城北区朝阳街道人民路12号 可以发圆通吗 谢谢
    output        青海_1,西宁市_3A,城北区_3A,朝阳街道_4B,人民路12号_5A-1,可以发圆通吗 谢谢_UNK

**The answer is a function of the input.** It has six fields in a fixed order, joined by ASCII
commas: province ``_1``, city ``_3A``, district ``_3A``, street or village ``_4B``, detail
``_5A-1``, remark ``_UNK``. Each field is a run of characters of the input as it stands there,
nothing added, completed or corrected, without the spaces and commas around it; a field that the
input lacks is one space. So "青海" stays "青海". A municipality has no city unless the input
repeats its name ("北京市北京市朝阳区…"). No input has an ASCII comma.

**What is held out.** Every row has a place (street, town or village of a district) of its own, so
no place of the validation or test split occurs in training. Provinces, roads and remarks occur in
all splits, cities and districts mostly do, and every character of a held-out place occurs in at
least three rows of training: the task is to find the borders, not to guess unseen characters.

Run ``python -m tests.sample_addresses --rows 4800 --seed 7 --out DIR``; one seed
gives one file.

**The administrative divisions** are a shipped tree, in which a municipality has one city without a name::

    {"青海省": {"西宁市": {"城北区": "朝阳街道 大堡子镇 …"}}}      province → city → district → places

A *place* is what stands below the district in an address: a street office, a town, a township or a
village. Places are a sample; provinces and cities are complete. Three kinds of names are left out:
development zones and other units that exist for statistics only, units directly below a province
that the source files under a made-up city, and places with a character that no district or city
has (they would widen a small model's vocabulary for one name each). The same command with
``--divisions FOLDER`` builds it again from the ``dist`` folder of the source that ``NOTICE.md`` beside
``addresses.jsonl`` names.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Province → city ("" in a municipality) → district → places.
Divisions = dict[str, dict[str, dict[str, tuple[str, ...]]]]

DATA = Path(__file__).parent / "fixtures/addresses"

_NO_CITY = "市辖区"
_NOT_A_CITY = re.compile(r"直辖县级行政区划$")
#: The last two digits of a district's code that the statistics office gives to units of its own.
_STATISTICAL = range(71, 81)
_TOWN = re.compile(r"[^（）()·\d]{1,6}(?:街道|镇|乡)$")
_VILLAGE = re.compile(r"([^（）()·\d]{2,4}?村)(?:村民委员会|民委员会|村委会|委会)$")
#: Enough for a sample of five thousand addresses with no place twice, small enough to ship.
_TOWNS_EACH = 5
_VILLAGES_EACH = 2


def load_divisions() -> Divisions:
    """The stored divisions."""
    text = DATA.joinpath("divisions.json").read_text(encoding="utf-8")
    raw: dict[str, dict[str, dict[str, str]]] = json.loads(text)
    return {
        province: {
            city: {district: tuple(places.split()) for district, places in districts.items()}
            for city, districts in cities.items()
        }
        for province, cities in raw.items()
    }


def build_divisions(source: Path) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """The content of ``divisions.json`` from a folder with the source's CSV files."""
    provinces = {row["code"]: row["name"] for row in _read_table(source / "provinces.csv")}
    cities = {
        row["code"]: row
        for row in _read_table(source / "cities.csv")
        if row["name"] != "县" and not _NOT_A_CITY.search(row["name"])
    }
    districts = {
        row["code"]: row
        for row in _read_table(source / "areas.csv")
        if row["cityCode"] in cities
        and row["name"] not in (_NO_CITY, cities[row["cityCode"]]["name"])
        and int(row["code"][4:]) not in _STATISTICAL
    }
    known = set("街道镇乡村").union(
        *(row["name"] for row in (*cities.values(), *districts.values()))
    )
    towns = _sample_names(source / "streets.csv", _TOWN, _TOWNS_EACH, known)
    villages = _sample_names(source / "villages.csv", _VILLAGE, _VILLAGES_EACH, known)

    tree: dict[str, dict[str, dict[str, str]]] = {name: {} for name in provinces.values()}
    for code, row in districts.items():
        places = towns.get(code, []) + villages.get(code, [])
        if not places:
            continue
        city = cities[row["cityCode"]]["name"].replace(_NO_CITY, "")
        tree[provinces[row["provinceCode"]]].setdefault(city, {})[row["name"]] = " ".join(places)
    return tree


def _read_table(path: Path) -> Iterable[Mapping[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


def _sample_names(
    path: Path, form: re.Pattern[str], each: int, known: set[str]
) -> dict[str, list[str]]:
    """Up to ``each`` names per district: those whose digests come first, so that no run differs."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for row in _read_table(path):
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


def _write_divisions(source: Path, out: Path) -> None:
    text = json.dumps(build_divisions(source), ensure_ascii=False, separators=(",", ":"))
    (out / "divisions.json").write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")


LABELS = ("_1", "_3A", "_3A", "_4B", "_5A-1", "_UNK")
FILE_NAME = "addresses.jsonl"
#: Longest input, in characters; a row above it goes without its remark.
LONGEST = 50
#: Share of the rows that each held-out split gets.
HELD_OUT = 1 / 12
#: A place with a character that fewer places have is left out: a small model could not learn it.
_COMMON = 12
#: Rows of training that must show each character of a held-out place.
_SHOWN = 3

_SHORT_PROVINCES = {
    "内蒙古自治区": "内蒙古",
    "广西壮族自治区": "广西",
    "西藏自治区": "西藏",
    "宁夏回族自治区": "宁夏",
    "新疆维吾尔自治区": "新疆",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdministrativePath:
    """A path down the administrative tree. ``city`` is empty in a municipality."""

    province: str
    city: str
    district: str
    street: str

    def __str__(self) -> str:
        return self.province + self.city + self.district + self.street


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressVocabulary:
    """What the invented parts of a row are made of."""

    roads: tuple[str, ...]
    estates: tuple[str, ...]
    workplaces: tuple[str, ...]
    requests: tuple[str, ...]
    thanks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRow:
    instruction: str
    output: str
    split: str

    def line(self) -> str:
        """One line of JSON with its line feed."""
        fields = {"instruction": self.instruction, "output": self.output, "split": self.split}
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n"


def administrative_paths() -> tuple[AdministrativePath, ...]:
    """Every place of the shipped divisions that is made of common characters, in a fixed order."""
    every = [
        AdministrativePath(province=province, city=city, district=district, street=street)
        for province, cities in load_divisions().items()
        for city, districts in cities.items()
        for district, streets in districts.items()
        for street in streets
    ]
    counts = Counter(character for place in every for character in set(str(place)))
    return tuple(
        place for place in every if all(counts[character] >= _COMMON for character in str(place))
    )


def load_address_vocabulary() -> AddressVocabulary:
    """The shipped phrases."""
    text = DATA.joinpath("phrases.json").read_text(encoding="utf-8")
    return AddressVocabulary(
        **{kind: tuple(texts.split()) for kind, texts in json.loads(text).items()}
    )


def format_answer(fields: Sequence[str]) -> str:
    """The labelled form of six fields; an empty one becomes a space."""
    return ",".join((field or " ") + label for field, label in zip(fields, LABELS, strict=True))


def generate_rows(*, rows: int, seed: int) -> Iterator[SampleRow]:
    """That many rows in random order, the same ones for the same seed.

    :raises ValueError: if there are fewer places than rows, or too few rows to hold any out.
    """
    known = administrative_paths()
    if not 24 <= rows <= len(known):
        raise ValueError(
            f"rows must be from 24 to {len(known)}, one for each known place; not {rows}"
        )
    rng = random.Random(seed)
    phrases = load_address_vocabulary()
    chosen = rng.sample(known, rows)
    for place, split in zip(chosen, _assign_splits(chosen), strict=True):
        text, fields = _generate_address_text(place, phrases, rng)
        yield SampleRow(instruction=text, output=format_answer(fields), split=split)


def _assign_splits(chosen: Sequence[AdministrativePath]) -> list[str]:
    """A split for each place; only one whose characters training still shows is held out."""
    shown = Counter(character for place in chosen for character in set(str(place)))
    each = int(len(chosen) * HELD_OUT)
    left = ["test", "validation"] * each
    splits = []
    for place in reversed(chosen):
        characters = set(str(place))
        if left and all(shown[character] > _SHOWN for character in characters):
            shown.subtract(characters)
            splits.append(left.pop())
        else:
            splits.append("train")
    return splits[::-1]


def _generate_address_text(
    place: AdministrativePath, phrases: AddressVocabulary, rng: random.Random
) -> tuple[str, tuple[str, ...]]:
    """An input for the place as a person would type it, and its six fields."""
    province, city = _abbreviate_place(place, rng)
    detail = _street_detail(place.street, phrases, rng) if rng.random() < 0.85 else ""
    remark = _delivery_remark(phrases, rng) if rng.random() < 0.6 else ""
    gap = " " if rng.random() < 0.3 else ""
    address = gap.join(filter(None, (province, city, place.district, place.street, detail)))
    if remark:
        before = rng.choices((" ", "，", ""), weights=(6, 3, 1))[0]
        if len(address + before + remark) > LONGEST:
            remark = ""
        else:
            address += before + remark
    return address, (province, city, place.district, place.street, detail, remark)


def _abbreviate_place(place: AdministrativePath, rng: random.Random) -> tuple[str, str]:
    province, city = place.province, place.city
    if not city:
        return province, province if rng.random() < 0.5 else ""
    if rng.random() < 0.2:
        province = _SHORT_PROVINCES.get(province, province.removesuffix("省"))
    if rng.random() < 0.1 and len(city) > 2:
        city = city.removesuffix("市")
    return province, city


def _street_detail(street: str, phrases: AddressVocabulary, rng: random.Random) -> str:
    number, building, unit = rng.randint(1, 299), rng.randint(1, 28), rng.randint(1, 4)
    room = rng.randint(1, 18) * 100 + rng.randint(1, 4)
    road, estate = rng.choice(phrases.roads), rng.choice(phrases.estates)
    if street.endswith(("乡", "村")):
        forms: tuple[str, ...] = (
            f"{unit}组{number}号",
            f"{number}号",
            f"{'一二三四'[unit - 1]}组{building}号",
            f"{rng.choice(('村委会', '村口', '小学'))}旁{building}号",
        )
    else:
        forms = (
            f"{road}{number}号",
            f"{road}{number}号{building}栋{room}室",
            f"{road}{number}号{estate}{building}幢{room}",
            f"{road}{number}号院{building}号楼{room}",
            f"{estate}{building}号楼{unit}单元{room}室",
            f"{estate}{building}-{unit}-{room}",
            f"{road}{number}号{rng.choice(phrases.workplaces)}",
        )
    return rng.choice(forms)


def _delivery_remark(phrases: AddressVocabulary, rng: random.Random) -> str:
    clauses = [rng.choice(phrases.requests)]
    if rng.random() < 0.45:
        clauses.append(rng.choice(phrases.thanks))
    return rng.choice((" ", "，")).join(clauses)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="addresses", description="Write addresses.jsonl.")
    parser.add_argument("--rows", type=int, default=4800)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, required=True, help="folder to write into")
    parser.add_argument(
        "--divisions",
        type=Path,
        metavar="FOLDER",
        help="write divisions.json instead, from the CSV files in FOLDER",
    )
    options = parser.parse_args(arguments)
    if options.divisions:
        _write_divisions(options.divisions, options.out)
        return
    try:
        content = "".join(row.line() for row in generate_rows(rows=options.rows, seed=options.seed))
    except ValueError as error:
        sys.exit(f"addresses: {error}")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / FILE_NAME).write_bytes(content.encode())


if __name__ == "__main__":
    main()
