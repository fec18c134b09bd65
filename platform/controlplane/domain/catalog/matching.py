"""Which entry of the catalog a model is of.

Its names go first: a repository is what it says it is, even where a figure differs — that difference is what
one wants to see. Without a name, figures that fit one entry only decide; where they fit several nothing
is claimed, since instruct and base models of a family are built alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controlplane.domain.architectures import Architecture
from controlplane.domain.catalog.entries import Entry

#: A rounded sum of parameters is this close to the true one.
_PARAMETERS_TOLERANCE = 0.1


def match(
    entries: Iterable[Entry], *, names: Sequence[str], built: Architecture | None
) -> Entry | None:
    """The entry, or None where none or more than one fits.

    ``names`` are repositories and folders that it is known by, the best first; ``built`` is what its
    ``config.json`` says, where that could be read.
    """
    known = tuple(entries)
    for name in names:
        if (named := _named(known, name)) is not None:
            return named
    fitting = [entry for entry in known if built is not None and _fits(entry, built)]
    return fitting[0] if len(fitting) == 1 else None


def _named(entries: Sequence[Entry], name: str) -> Entry | None:
    """By repository with its owner, else by what stands after the owner if one entry has that."""
    wanted = name.strip().strip("/").lower()
    if not wanted:
        return None
    for entry in entries:
        if wanted in (entry.hf_repo.lower(), entry.modelscope_id.lower()):
            return entry
    if "/" in wanted and not wanted.startswith((".", "~")) and wanted.count("/") == 1:
        return None
    last = wanted.rpartition("/")[2]
    found = {
        entry.key: entry
        for entry in entries
        if last in (entry.key, *(repo.rpartition("/")[2].lower() for repo in _repos(entry)))
    }
    return next(iter(found.values())) if len(found) == 1 else None


def _repos(entry: Entry) -> tuple[str, ...]:
    return tuple(repo for repo in (entry.hf_repo, entry.modelscope_id) if repo)


def _fits(entry: Entry, built: Architecture) -> bool:
    """Every figure is known and the same, and the parameters are close."""
    figures = (entry.layers, entry.hidden, entry.heads, entry.intermediate)
    if None in figures or entry.parameters is None or entry.architecture != built.name:
        return False
    own = (built.layers, built.hidden, built.heads, built.intermediate)
    close = abs(built.parameters - entry.parameters) <= _PARAMETERS_TOLERANCE * entry.parameters
    same_keys = entry.kv_heads in (None, built.kv_heads) or built.latent is not None
    return figures == own and same_keys and close
