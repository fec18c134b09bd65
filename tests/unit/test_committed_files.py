"""What is committed says nothing about the machine it was written on, and shadows nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
#: Spelt in pieces, so that this file does not find itself.
_OF_ONE_MACHINE = re.compile(
    "|".join(
        (
            r"(?<![\w.])/" + r"work/",
            r"(?<![\w.])/" + r"root/",
            r"(?<![\w.$}])/" + r"home/[a-z]",
            r"(?<![\w.])/" + r"Users/[A-Z]",
            r"file:" + r"///(opt|srv|mnt)",
            r"--(extra-)?" + r"index-url",
            r"(files\.pythonhosted|pypi|registry\.npmjs)" + r"\.org",
        )
    )
)


def _committed() -> list[Path]:
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=_ROOT,
            capture_output=True,
            check=True,
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    names = listed.stdout.decode().split("\0")
    paths = [_ROOT / name for name in names if name and not name.startswith("static/vendor/")]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def test_no_file_names_a_path_of_one_machine_or_a_registry() -> None:
    found = []
    for path in _committed():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(_ROOT)}:{number}: {line.strip()[:100]}"
            for number, line in enumerate(lines, start=1)
            if _OF_ONE_MACHINE.search(line)
        ]
    assert found == []


def test_the_source_folder_does_not_shadow_the_standard_library() -> None:
    assert not (_ROOT / "platform" / "__init__.py").exists()


def test_no_module_of_the_launcher_hides_one_that_its_scripts_import() -> None:
    # A script's own folder comes first on its path, unless Python runs isolated.
    hidden = {"logging", "secrets", "signal", "socket", "platform", "selectors", "json"}
    names = {path.stem for path in (_ROOT / "platform" / "launcher").glob("*.py")}
    assert not names & hidden
