"""The address dataset: real names, one right answer, and a held-out share that is held out."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from importlib.resources import files
from pathlib import Path

import pytest

from tests import sample_addresses as addresses

SHIPPED = (files("ninefold_runtime.samples") / "data" / "addresses.jsonl").read_bytes()
ROWS: list[dict[str, str]] = [json.loads(line) for line in SHIPPED.splitlines()]
SEPARATORS = " ，"


def fields_of(output: str) -> list[str]:
    parts = output.split(",")
    assert len(parts) == 6, output
    fields = []
    for part, label in zip(parts, addresses.LABELS, strict=True):
        assert part.endswith(label), output
        fields.append(part.removesuffix(label))
    return fields


def held_out(row: dict[str, str]) -> bool:
    return row["split"] != "train"


def place_of(row: dict[str, str]) -> tuple[str, ...]:
    """Province and city are left out: both may be abbreviated."""
    return tuple(fields_of(row["output"])[2:4])


def test_the_shipped_file_is_what_the_seed_that_its_notice_names_gives(tmp_path: Path) -> None:
    addresses.main(["--rows", "4800", "--seed", "7", "--out", str(tmp_path)])
    assert (tmp_path / addresses.FILE_NAME).read_bytes() == SHIPPED


def test_another_seed_gives_other_rows() -> None:
    def texts(seed: int) -> list[str]:
        return [row.instruction for row in addresses.generate_rows(rows=100, seed=seed)]

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)


def test_there_are_4800_rows_in_fixed_splits() -> None:
    assert Counter(row["split"] for row in ROWS) == {"train": 4000, "validation": 400, "test": 400}
    assert len(SHIPPED) < 1_500_000


def test_no_input_occurs_twice() -> None:
    assert len({row["instruction"] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_each_answer_is_cut_out_of_its_input_in_order(split: str) -> None:
    for row in (row for row in ROWS if row["split"] == split):
        rest = row["instruction"]
        for field in fields_of(row["output"]):
            if field == " ":
                continue
            assert field == field.strip(SEPARATORS)
            rest = rest.lstrip(SEPARATORS)
            assert rest.startswith(field), row
            rest = rest.removeprefix(field)
        assert rest == "", row


def test_every_province_city_and_district_is_a_real_one() -> None:
    tree = addresses.load_divisions()
    shortened = {short: name for name, short in addresses._SHORT_PROVINCES.items()}
    for row in ROWS:
        province, city, district, street, *_ = fields_of(row["output"])
        province = shortened.get(province, province if province in tree else province + "省")
        cities = tree[province]
        if "" in cities:
            assert city in (" ", province)
            city = ""
        elif city not in cities:
            city += "市"
        assert street in cities[city][district]


def test_every_province_occurs_in_training_and_in_the_held_out_rows() -> None:
    provinces: dict[bool, set[str]] = defaultdict(set)
    for row in ROWS:
        provinces[held_out(row)].add(row["instruction"][:2])
    assert len(provinces[False]) == 31
    assert len(provinces[True]) == 31


def test_no_place_of_a_held_out_row_occurs_in_another_split() -> None:
    splits: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in ROWS:
        splits[place_of(row)].add(row["split"])
    # The same pair of names does exist in two cities, so a handful of collisions is geography.
    shared = [place for place, found in splits.items() if len(found) > 1]
    assert len(shared) <= 5


def test_every_character_of_a_held_out_input_is_shown_by_three_rows_of_training() -> None:
    shown = Counter(
        character for row in ROWS if not held_out(row) for character in set(row["instruction"])
    )
    for row in filter(held_out, ROWS):
        assert all(shown[character] >= 3 for character in row["instruction"]), row


def test_a_small_model_can_hold_the_characters_and_the_lengths() -> None:
    characters = {character for row in ROWS for character in row["instruction"] + row["output"]}
    assert len(characters) <= 1_100
    assert max(len(row["instruction"]) for row in ROWS) <= addresses.LONGEST
    assert max(len(row["output"]) for row in ROWS) <= 80


def test_surface_forms_vary_as_people_write() -> None:
    fields = [fields_of(row["output"]) for row in ROWS]
    without_suffix = sum(province[-1] not in "省市区" for province, *_ in fields)
    spaced = sum(
        " ".join(parts[:4]) in row["instruction"] for parts, row in zip(fields, ROWS, strict=True)
    )
    without_detail = sum(parts[4] == " " for parts in fields)
    without_remark = sum(parts[5] == " " for parts in fields)
    for count in (without_suffix, spaced, without_detail, without_remark):
        assert 0.1 * len(ROWS) < count < 0.6 * len(ROWS)


def test_an_answer_has_the_form_that_the_field_prints() -> None:
    fields = ("青海省", "西宁市", "城北区", "三其村", "", "可以发圆通吗 谢谢")
    assert addresses.format_answer(fields) == (
        "青海省_1,西宁市_3A,城北区_3A,三其村_4B, _5A-1,可以发圆通吗 谢谢_UNK"
    )


@pytest.mark.parametrize("rows", [0, 23, 10_000_000])
def test_an_impossible_number_of_rows_is_refused_in_words(rows: int, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=f"rows must be from 24 to .* not {rows}"):
        addresses.main(["--rows", str(rows), "--out", str(tmp_path)])
    assert list(tmp_path.iterdir()) == []


def test_divisions_are_built_from_the_files_of_the_source(tmp_path: Path) -> None:
    tables = {
        "provinces": "code,name\n11,北京市\n63,青海省\n46,海南省\n",
        "cities": (
            "code,name,provinceCode\n1101,市辖区,11\n6301,西宁市,63\n4690,省直辖县级行政区划,46\n"
        ),
        "areas": (
            "code,name,cityCode,provinceCode\n110105,朝阳区,1101,11\n630105,城北区,6301,63\n"
            "630171,西宁经济技术开发区,6301,63\n469001,五指山市,4690,46\n"
        ),
        "streets": (
            "code,name,areaCode,cityCode,provinceCode\n110105001,朝阳街道,110105,1101,11\n"
            "630105001,西城街道,630105,6301,63\n630105002,龘镇,630105,6301,63\n"
        ),
        "villages": (
            "code,name,streetCode,provinceCode,cityCode,areaCode\n"
            "630105001201,北城村委会,630105001,63,6301,630105\n"
        ),
    }
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    assert addresses.build_divisions(tmp_path) == {
        "北京市": {"": {"朝阳区": "朝阳街道"}},
        "青海省": {"西宁市": {"城北区": "西城街道 北城村"}},
        "海南省": {},
    }
