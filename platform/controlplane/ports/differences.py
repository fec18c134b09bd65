"""What two Launches of one spec differ in, for people who want to see what a chip changes.

::

    image                            the image
    environment.NAME                 a variable
    argv.3                           an argument
    files/train.yaml:12              a line of a file
    roles.trainer, cards             the processes and their cards
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from controlplane.ports.launches import Launch, Role

#: The values of placeholders and of the Launch itself: nothing that a spec or a chip says.
_LEFT_OUT = frozenset({"MASTER_PORT", "NINEFOLD_REPORT_URL"})


class Part(StrEnum):
    """What kind of thing differs."""

    IMAGE = "image"
    ENVIRONMENT = "environment"
    #: What the program is told, on its command line or in a file.
    ARGUMENTS = "arguments"
    CARDS = "cards"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not the same in two Launches."""

    path: str
    part: Part
    #: None where the first has nothing there.
    left: str | None
    right: str | None


def differences(a: Launch, b: Launch) -> tuple[Difference, ...]:
    """Everything that differs in what the two would run, in a fixed order; secrets and names do not count."""
    return tuple(_differences(a, b))


def _differences(a: Launch, b: Launch) -> Iterator[Difference]:
    if a.image != b.image:
        yield Difference(path="image", part=Part.IMAGE, left=a.image, right=b.image)
    names = (a.engine.name if a.engine else "", b.engine.name if b.engine else "")
    if names[0] != names[1]:
        yield Difference(path="engine", part=Part.IMAGE, left=names[0], right=names[1])
    left_roles = {role.name: role for role in a.roles}
    right_roles = {role.name: role for role in b.roles}
    for name in dict.fromkeys((*left_roles, *right_roles)):
        left, right = left_roles.get(name), right_roles.get(name)
        if left is None or right is None:
            yield Difference(
                path=f"roles.{name}",
                part=Part.CARDS,
                left=name if left else None,
                right=name if right else None,
            )
        else:
            yield from _of_roles(left, right)
    for path in sorted({*a.files, *b.files}):
        yield from _of_lines(
            f"files/{path}",
            a.files[path].splitlines() if path in a.files else [],
            b.files[path].splitlines() if path in b.files else [],
            separator=":",
        )


def _of_roles(left: Role, right: Role) -> Iterator[Difference]:
    cards = tuple(_cards(role) for role in (left, right))
    if cards[0] != cards[1]:
        yield Difference(path="cards", part=Part.CARDS, left=cards[0], right=cards[1])
    yield from _of_lines("argv", left.argv, right.argv, separator=".")
    yield from _of_variables(left.environment, right.environment)


def _of_variables(left: Mapping[str, str], right: Mapping[str, str]) -> Iterator[Difference]:
    for name in sorted({*left, *right} - _LEFT_OUT):
        if left.get(name) != right.get(name):
            yield Difference(
                path=f"environment.{name}",
                part=Part.ENVIRONMENT,
                left=left.get(name),
                right=right.get(name),
            )


def _of_lines(
    where: str,
    left: list[str] | tuple[str, ...],
    right: list[str] | tuple[str, ...],
    *,
    separator: str,
) -> Iterator[Difference]:
    """Lines that were changed, left out or added, numbered from 1 as on the side that has them."""
    for kind, i, i_end, j, j_end in SequenceMatcher(a=left, b=right, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for offset in range(max(i_end - i, j_end - j)):
            old = left[i + offset] if i + offset < i_end else None
            new = right[j + offset] if j + offset < j_end else None
            number = (i if old is not None else j) + offset + 1
            yield Difference(
                path=f"{where}{separator}{number}", part=Part.ARGUMENTS, left=old, right=new
            )


def _cards(role: Role) -> str:
    """``2 × 8``: replicas and the cards of each."""
    counts = sorted({len(placement.cards) for placement in role.placements})
    return f"{len(role.placements)} × {'/'.join(map(str, counts))}"
