"""The queue tree as YAML, out and in.

Whoever uploads a file may be anybody, so it is read with a loader that makes plain values only, is bounded in size
and depth, and knows no anchors: what a line says is what is written there.
"""

from __future__ import annotations

from typing import Any

import yaml

from apps.quotas.models import Queue
from apps.quotas.selectors.trees import tree_documents
from controlplane.domain.fields import Finding
from controlplane.domain.queue_edits import TreeAct, TreeEdit, fingerprint
from controlplane.domain.queue_files import FileRefused, as_file, pruned, read_file

#: Bytes of a file; a tree of two thousand queues takes about half.
LARGEST_FILE = 512 * 1024
#: Lists and mappings within each other; every level of the tree takes two.
_DEEPEST = 40


def tree_export(*, of: Queue | None = None) -> str:
    """The tree as YAML, or one queue and those below it."""
    return written(as_file(tree_documents(), of=of.uid if of else ""))


def written(file: dict[str, Any]) -> str:
    """Plain values of a tree as YAML, amounts of cards on one line each."""
    for queue in file["queues"].values():
        _flow_amounts(queue)
    return yaml.dump(file, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def file_edit(text: str, *, prune: bool = False, note: str = "") -> TreeEdit:
    """The edit that makes the tree what the YAML says.

    :raises FileRefused: naming every mistake and where it is.
    """
    return content_edit(parsed(text), prune=prune, note=note)


def content_edit(content: Any, *, prune: bool = False, note: str = "", seen: str = "") -> TreeEdit:
    """The edit that makes the tree what plain values say; see ``controlplane.domain.queue_files``.

    :param prune: retire the queues that it does not name, of the part of the tree that it is about.
    :param seen: fingerprint of the tree that the person looked at; empty: the tree as it is now.
    :raises FileRefused: naming every mistake and where it is.
    """
    documents = tree_documents()
    file = read_file(content, documents)
    queues = pruned(file) if prune else file.queues
    return TreeEdit(
        queues=dict(queues),
        act=TreeAct.IMPORT,
        note=note,
        seen=seen or fingerprint(documents),
    )


class _Flow(dict[str, int]):
    """Written on one line."""


class _Dumper(yaml.SafeDumper):
    """Knows amounts that are written on one line."""


_Dumper.add_representer(
    _Flow,
    lambda dumper, amounts: dumper.represent_mapping(
        "tag:yaml.org,2002:map", amounts, flow_style=True
    ),
)


def _flow_amounts(queue: dict[str, Any]) -> None:
    for chip, amounts in queue.get("cards", {}).items():
        queue["cards"][chip] = _Flow(amounts)
    for below in queue.get("below", {}).values():
        _flow_amounts(below)


def parsed(text: str) -> Any:
    """The plain values of a file.

    :raises FileRefused: if it is no YAML, too large, too deep, or has anchors.
    """
    size = len(text.encode("utf-8", errors="replace"))
    if size > LARGEST_FILE:
        raise _refusal(f"the file has {size} bytes; {LARGEST_FILE} are the most")
    try:
        _check_events(text)
        loader = yaml.CSafeLoader(text)
        node = loader.get_single_node()
        _check_keys(node)
        return None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = _line(error.problem_mark or error.context_mark)
        raise _refusal(f"line {line} is no YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, FileRefused):
            raise
        raise _refusal(f"the file is no YAML: {error}") from error


def _check_events(text: str) -> None:
    """Without building anything.

    :raises FileRefused: at the first anchor, or where it is too deep.
    """
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            line = _line(event.start_mark)
            raise _refusal(f"line {line} has an anchor or refers to one; write it out instead")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            line = _line(event.start_mark)
            raise _refusal(f"line {line} is more than {_DEEPEST} levels deep; queues need fewer")


def _check_keys(node: yaml.Node | None) -> None:
    """:raises FileRefused: if a mapping has a key twice, of which only the last would count."""
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            _check_keys(each)
    if not isinstance(node, yaml.MappingNode):
        return
    seen = set()
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else id(key)
        if name in seen:
            line = _line(key.start_mark)
            raise _refusal(f"line {line}: {key.value} is there twice; write it once")
        seen.add(name)
        _check_keys(value)


def _line(mark: Any) -> int:
    """Counted from 1; the first where a parser does not say."""
    return mark.line + 1 if mark else 1


def _refusal(message: str) -> FileRefused:
    return FileRefused(Finding(field="", message=message))
