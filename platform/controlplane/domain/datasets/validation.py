"""Limits of uploaded files, and the problems found in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from controlplane.domain.common.reasons import Parameter, fill_message
from controlplane.domain.common.resources import MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    #: Bytes of the whole file.
    size: int = 512 * MIB
    rows: int = 1_000_000
    #: Bytes of one row; a cell of a CSV file may have at most 131,072 characters in any case.
    row_size: int = MIB
    #: Bytes of a JSON array, which is read into memory; JSON Lines and CSV are streamed.
    array_size: int = 128 * MIB
    #: Problems that are kept as messages; all are counted.
    problems: int = 20
    #: Rows of the preview.
    preview: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProblem:
    #: Counted from 1: the line of JSON Lines, the row of a CSV file as a spreadsheet shows it (its
    #: header is row 1), the element of a JSON array. None where the whole file is meant.
    row: int | None = None
    #: The column, with the place inside it (``messages[2].role``); empty where there is none.
    column: str = ""
    message: str

    def __str__(self) -> str:
        where = "" if self.row is None else f"row {self.row:,}"
        if self.column:
            where += f"{', ' if where else ''}column {self.column}"
        return f"{where}: {self.message}" if where else self.message


class DatasetRefused(Exception):
    """The file is not a valid dataset."""

    def __init__(self, problems: tuple[FileProblem, ...], *, total: int) -> None:
        more = f" (and {total - 1:,} more)" if total > 1 else ""
        super().__init__(f"{problems[0]}{more}")
        #: The first problems, in the order of the file.
        self.problems = problems
        #: Number of problems found. Reading stops at a problem after which nothing can be read.
        self.total = total


class FileProblemLog:
    """Collects problems: keeps the first ones and counts all."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._recorded: list[FileProblem] = []
        self.total = 0

    def add(
        self,
        message: str,
        template: str = "",
        /,
        *,
        row: int | None = None,
        column: str = "",
        **params: Parameter,
    ) -> None:
        """Add a problem: a message, or the code, the template and the parameters of a reason."""
        text = fill_message(message, template, **params)
        self.total += 1
        if len(self._recorded) < max(self._limit, 1):
            self._recorded.append(FileProblem(row=row, column=column, message=text))

    def stop(
        self,
        message: str,
        template: str = "",
        /,
        *,
        row: int | None = None,
        column: str = "",
        **params: Parameter,
    ) -> NoReturn:
        """Add a problem after which nothing more can be read.

        :raises DatasetRefused: always.
        """
        self.add(fill_message(message, template, **params), row=row, column=column)
        self.raise_if_any()
        raise AssertionError("unreachable: a problem was just added")

    def raise_if_any(self) -> None:
        """:raises DatasetRefused: if there is a problem."""
        if self._recorded:
            raise DatasetRefused(tuple(self._recorded), total=self.total)
