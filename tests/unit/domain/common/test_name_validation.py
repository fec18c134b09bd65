from __future__ import annotations

import pytest

from controlplane.domain.common.name_validation import InvalidName, is_name_field, normalize_name
from tests.cases import for_each_case


@pytest.mark.parametrize(
    "name",
    [
        "llama-3 fine-tune",
        "中文名称",
        "Ünïcode · №5",
        # Persian "I want" and Sinhala "Sri" are spelt with a joiner.
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3",
        "rocket \U0001f680",
        "",
    ],
)
def test_names_in_any_script_are_accepted_as_they_are(name: str) -> None:
    assert normalize_name(name) == name


@for_each_case(
    "character",
    [
        *("\x00", "\x07", "\x1b", "\n", "\r", "\t", "\x7f", "\x85"),
        *("\u202a", "\u202e", "\u2066", "\u2069", "\u200e", "\u061c"),
        *("\u200b", "\u2060", "\ufeff", "\u00ad", "\u200c", "\u200d"),
        *("\u2028", "\u2029", "\ud800", "\ue000", "\U000e0041"),
        *("\u3164", "\u115f", "\uffa0", "\u2800"),
    ],
)
def test_control_bidirectional_and_invisible_characters_are_refused(character: str) -> None:
    with pytest.raises(InvalidName) as refused:
        normalize_name(f"pay{character}roll")
    assert refused.value.character == character
    assert f"U+{ord(character):04X}" in str(refused.value)


@pytest.mark.parametrize("name", [" a", "a ", "\u3000a", "a\u00a0"])
def test_outer_white_space_is_refused(name: str) -> None:
    with pytest.raises(InvalidName, match="begin or end with white space"):
        normalize_name(name)


def test_names_are_composed() -> None:
    assert normalize_name("Cafe\u0301") == "Caf\u00e9"


def test_a_joiner_at_an_end_or_beside_ascii_is_refused() -> None:
    for name in ("\u200c\u0645", "\u0645\u200c", "\u0645\u200ca"):
        with pytest.raises(InvalidName):
            normalize_name(name)


def test_fields_of_names_are_known_by_their_name() -> None:
    for field in ("name", "title", "label", "display_name", "output_name", "first_name"):
        assert is_name_field(field)
    assert not is_name_field("names_of")
