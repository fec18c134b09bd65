"""Validation of names entered by users: allowed characters, and the form in which a name is stored.

A name is shown next to others and copied into logs, messages and terminals. Characters that are invisible, that
change the direction of text or that control a terminal make two names look the same or hide part of one.

Source: Unicode Standard Annex #9 (bidirectional controls), Technical Report #36 (security considerations) and
RFC 5892, appendix A (contextual rules of the joiners).
"""

from __future__ import annotations

import unicodedata

from controlplane.domain.common.reasons import Reason, ReasonedValueError

#: Names of fields with a name entered by a user; any field whose name ends with ``_name`` is one as well.
_FIELDS = frozenset({"name", "title", "label", "display_name"})
#: Control, format, surrogate, private use, unassigned; separators of lines and paragraphs.
_REFUSED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Letters and symbols that are displayed as nothing: Hangul fillers and the empty Braille pattern.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800")
#: ZERO WIDTH NON-JOINER and JOINER: spelling of Persian and of Indic scripts needs them between letters.
_JOINERS = frozenset("\u200c\u200d")


class InvalidName(ReasonedValueError):
    """The text is not accepted as a name; ``character`` is the one at fault, empty for outer white space."""

    def __init__(self, character: str = "") -> None:
        self.character = character
        super().__init__(
            Reason(
                "name.character_not_allowed",
                "U+{code_point} is not allowed in a name: it is invisible or a control character",
                code_point=f"{ord(character):04X}",
            )
            if character
            else Reason(
                "name.surrounding_whitespace", "a name must not begin or end with white space"
            )
        )


def is_name_field(field: str) -> bool:
    """Whether a field of that name holds a name entered by a user."""
    return field in _FIELDS or field.endswith("_name")


def normalize_name(text: str) -> str:
    """The name in Unicode normalization form C.

    :raises NameRefused: if it contains a refused character or begins or ends with white space.
    """
    name = unicodedata.normalize("NFC", text)
    for index, character in enumerate(name):
        refused = unicodedata.category(character) in _REFUSED or character in _BLANK
        if refused and not _is_joiner_between_letters(name, index):
            raise InvalidName(character)
    if name != name.strip():
        raise InvalidName
    return name


def _is_joiner_between_letters(name: str, index: int) -> bool:
    """Whether a joiner is between two letters or marks outside ASCII, as in Persian and Indic spelling."""
    if name[index] not in _JOINERS or not 0 < index < len(name) - 1:
        return False
    return all(
        not neighbour.isascii() and unicodedata.category(neighbour)[0] in "LM"
        for neighbour in (name[index - 1], name[index + 1])
    )
