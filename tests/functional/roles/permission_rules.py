"""What a row of the table says, and what has to happen because of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

#: Stands for a small file of rows in a body, which is then sent as a form.
ROWS_FILE = "@rows.jsonl"
#: … and for an archive of a program.
CODE_FILE = "@code.tar.gz"

STRANGERS = ("anonymous", "deactivated")
COMPANY = frozenset({"company"})
TEAM_ADMINS = COMPANY | {"administrator"}
QUEUE_ADMINS = TEAM_ADMINS | {"queue_admin"}
ENGINEERS = TEAM_ADMINS | {"engineer", "queue_admin"}
#: They operate what every team uses, by a company role.
OPERATORS = COMPANY | {"operator"}
#: They administer something, and may see how the product itself does.
STAFF = TEAM_ADMINS | {"queue_admin", "operator"}
MEMBERS = ENGINEERS | {"viewer", "operator"}
EVERYBODY = MEMBERS | set(STRANGERS)
#: Who made the own team's things: ``engineer`` is that person.
OWNER = frozenset({"engineer"})


class Whose(StrEnum):
    OWN = "own"
    OTHER = "other"


class Outcome(StrEnum):
    #: Let through: done, or refused for another reason than who asks.
    DONE = "done"
    LOG_IN = "log in"
    FORBIDDEN = "forbidden"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRow:
    """One method of one address."""

    method: str
    #: ``{…}`` stands for the public name of a thing (``tests/functional/roles/team_data.py``).
    path: str
    may: frozenset[str] = MEMBERS
    #: Sent as a form by pages, as JSON by REST; ``{…}`` as in the path.
    body: Mapping[str, Any] = field(default_factory=dict)
    #: To those who may not, it is as if it did not exist.
    hidden: bool = False
    #: What is not one's own is passed over in silence: a bulk act does the rest.
    quiet: bool = False
    #: Things on the path that belong to no team are there for everybody.
    company_wide: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def of_a_team(self) -> bool:
        return "{" in self.path and not self.company_wide

    @property
    def names_a_team(self) -> bool:
        """Whether something of a team is named only in the body."""
        said = " ".join(value for value in self.body.values() if isinstance(value, str))
        return not self.of_a_team and "{" in said.replace("{soon}", "")


def expected(row: PermissionRow, *, who: str, whose: Whose) -> Outcome:
    """What has to happen."""
    if who in STRANGERS:
        if who in row.may:
            return Outcome.DONE
        return Outcome.ABSENT if row.hidden and not row.of_a_team else Outcome.LOG_IN
    # Whom something is hidden from learns nothing about the other team either way.
    refused = Outcome.ABSENT if row.hidden else Outcome.FORBIDDEN
    if row.quiet:
        return Outcome.DONE
    if whose is Whose.OTHER and (row.of_a_team or row.names_a_team) and who != "company":
        return Outcome.ABSENT
    return Outcome.DONE if who in row.may else refused


def rest(method: str, path: str, **more: Any) -> PermissionRow:
    return PermissionRow(method=method, path=f"/api/v1/{path}", **more)


def page(path: str, **more: Any) -> PermissionRow:
    return PermissionRow(method="GET", path=path, **more)


def action_row(path: str, **more: Any) -> PermissionRow:
    return PermissionRow(method="POST", path=path, **more)
