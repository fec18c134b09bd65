"""``python -m tests.code_size REVISION …``: the size of the product's code at revisions of git.

Counts modules below ``apps`` and ``platform`` that contain anything, their lines, and those that a single
other module imports; then files, lines and imports of models of other apps for each package of the last revision.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

#: A module below this number of lines with one importer usually belongs into that importer.
SMALL = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSize:
    files: int
    #: Files without migrations.
    modules: int
    median_lines: float
    lines: int
    #: Modules that one other module imports, and those of them with fewer than ``SMALL`` lines.
    single_importer: int
    small_single_importer: int


def sources_at(revision: str) -> dict[str, str]:
    """Path → source of the product's files at a revision; empty files are left out."""
    listed = _git("ls-tree", "-r", "--name-only", revision, "apps", "platform").splitlines()
    found = {path: _git("show", f"{revision}:{path}") for path in listed if path.endswith(".py")}
    return {path: source for path, source in found.items() if source.strip()}


def code_size(sources: Mapping[str, str]) -> CodeSize:
    modules = {dotted(path): path for path in sources if "/migrations/" not in path}
    lines = {name: sources[path].count("\n") for name, path in modules.items()}
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for importer, path in modules.items():
        for name in imported_names(ast.parse(sources[path])):
            # ``from package.module import symbol`` imports the module.
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules and target != importer:
                importers[target].add(importer)
    single = [name for name in modules if len(importers[name]) == 1]
    return CodeSize(
        files=len(sources),
        modules=len(modules),
        median_lines=median(source.count("\n") for source in sources.values()),
        lines=sum(source.count("\n") for source in sources.values()),
        single_importer=len(single),
        small_single_importer=sum(lines[name] < SMALL for name in single),
    )


@dataclass(slots=True, kw_only=True)
class PackageSize:
    files: int = 0
    lines: int = 0
    #: Import statements of models of other apps.
    foreign_models: int = 0


def package_sizes(sources: Mapping[str, str]) -> dict[str, PackageSize]:
    """By package: ``apps/jobs``, ``platform/gateway``, ``platform/controlplane/domain`` …"""
    sizes: defaultdict[str, PackageSize] = defaultdict(PackageSize)
    for path, source in sources.items():
        parts = path.split("/")
        depth = 3 if parts[1] == "controlplane" else 2
        size = sizes["/".join(parts[:depth])]
        size.files += 1
        size.lines += source.count("\n")
        if parts[0] == "apps" and "/migrations/" not in path:
            size.foreign_models += sum(
                isinstance(node, ast.ImportFrom)
                and (node.module or "").split(".")[::2] == ["apps", "models"]
                and (node.module or "").split(".")[1] != parts[1]
                for node in ast.walk(ast.parse(source))
            )
    return dict(sorted(sizes.items()))


def dotted(path: str) -> str:
    """The name by which a file is imported."""
    return (
        path.removeprefix("platform/")
        .removesuffix(".py")
        .removesuffix("/__init__")
        .replace("/", ".")
    )


def imported_names(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revisions", nargs="*", default=["HEAD"], metavar="REVISION")
    sources: Mapping[str, str] = {}
    for revision in parser.parse_args().revisions:
        sources = sources_at(revision)
        sys.stdout.write(f"{revision} {code_size(sources)}\n")
    sys.stdout.write(
        "\n| package | files | lines | imports of models of other apps |\n|---|---|---|---|\n"
    )
    for package, size in package_sizes(sources).items():
        sys.stdout.write(f"| {package} | {size.files} | {size.lines:,} | {size.foreign_models} |\n")


if __name__ == "__main__":
    main()
