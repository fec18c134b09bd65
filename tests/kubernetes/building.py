"""Kubernetes built from Debian's source package, once: some minutes, then kept in a cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

#: What Debian's source package holds.
RELEASE = "1.20.2"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
#: Compiled beside them: the process that holds a pod's namespaces.
PAUSE = "pause"
PACKAGES = ("golang-go", "golang-github-modern-go-reflect2-dev", "rsync", "jq")
#: With Debian's Go the vendored release crashes on the first custom resource.
_REFLECT = "github.com/modern-go/reflect2"
_PAUSE_SOURCE = """package main

import (
\t"os"
\t"os/signal"
\t"syscall"
)

func main() {
\tsignals := make(chan os.Signal, 8)
\tsignal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
\tfor received := range signals {
\t\tif received != syscall.SIGCHLD {
\t\t\treturn
\t\t}
\t\tfor {
\t\t\tif pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
\t\t\t\tbreak
\t\t\t}
\t\t}
\t}
}
"""

Say = Callable[[str], None]


class CannotBuild(RuntimeError):
    """This machine cannot make it; the message says why."""


def cache_folder() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "ninefold" / f"kubernetes-{RELEASE}"


def built(folder: Path) -> bool:
    return all((folder / name).exists() for name in (*PROGRAMS, PAUSE))


def build(folder: Path, *, say: Say) -> None:
    """Make the programs, and put them into the folder all at once.

    :raises CannotBuild: without root or Debian, or where a step fails; the log is named.
    """
    began = time.monotonic()
    log = _log()
    with tempfile.TemporaryDirectory(prefix="build-", dir=folder.parent) as name:
        work = Path(name)
        say(f"building Kubernetes {RELEASE} from Debian's sources, once: about 8 minutes")
        steps: tuple[tuple[str, Callable[[Path, Path], None]], ...] = (
            ("compiler and tools", _install),
            ("source package", _fetch),
            ("unpacked", _unpack),
            ("compiled", _compile),
        )
        for number, (what, step) in enumerate(steps, start=1):
            step(work, log)
            say(f"  {number}/{len(steps)} {what} ({time.monotonic() - began:.0f} s)")
        _keep(work, folder)


def install(packages: Sequence[str]) -> None:
    """:raises CannotBuild: without root or Debian, or where they cannot be had."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        names = " ".join(packages)
        raise CannotBuild(f"it needs root and Debian's apt-get, to install {names}")
    log, here = _log(), Path.cwd()
    _run(("apt-get", "update", "--quiet"), log=log, cwd=here)
    command = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends")
    _run((*command, *packages), log=log, cwd=here)


def _log() -> Path:
    folder = cache_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder.parent / f"{folder.name}.log"


def _run(
    command: Sequence[str], *, log: Path, cwd: Path, env: Mapping[str, str] | None = None
) -> None:
    with log.open("a") as output:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        last = log.read_text(errors="replace").strip().splitlines()[-3:]
        raise CannotBuild(f"{' '.join(command[:3])} … failed, see {log}: {' / '.join(last)}")


def _install(_work: Path, _log: Path) -> None:
    install(PACKAGES)


def _fetch(work: Path, log: Path) -> None:
    """With lists of its own: the system's choice of sources is not ours to change."""
    parts, lists = work / "parts", work / "lists"
    parts.mkdir()
    lists.mkdir()
    for source in sorted(Path("/etc/apt/sources.list.d").glob("*.sources")):
        text = source.read_text().replace("Types: deb\n", "Types: deb-src\n")
        (parts / source.name).write_text(text)
    listed = Path("/etc/apt/sources.list")
    if listed.exists():
        lines = (line for line in listed.read_text().splitlines() if line.startswith("deb "))
        text = "\n".join(line.replace("deb ", "deb-src ", 1) for line in lines)
        (parts / "listed.list").write_text(text + "\n")
    options = (
        *("-o", f"Dir::Etc::sourceparts={parts}", "-o", "Dir::Etc::sourcelist=/dev/null"),
        *("-o", f"Dir::State::Lists={lists}", "-o", "APT::Sandbox::User=root"),
    )
    _run(("apt-get", *options, "update", "--quiet"), log=log, cwd=work)
    _run(("apt-get", *options, "source", "--download-only", "kubernetes"), log=log, cwd=work)


def _unpack(work: Path, log: Path) -> None:
    tree = work / "tree"
    tree.mkdir()
    archives = list(work.glob(f"kubernetes_*{RELEASE}.orig.tar.*"))
    if not archives:
        raise CannotBuild(f"Debian's source package of Kubernetes is no longer release {RELEASE}")
    unpack = ("tar", "--extract", "--file", str(archives[0]), "--strip-components=1")
    _run((*unpack, "--directory", str(tree)), log=log, cwd=work)
    vendored, packaged = tree / "vendor" / _REFLECT, Path("/usr/share/gocode/src") / _REFLECT
    shutil.rmtree(vendored)
    shutil.copytree(packaged, vendored, ignore=shutil.ignore_patterns("*_test.go", "test*"))
    linked = tree / ".go" / "src" / "k8s.io"
    linked.mkdir(parents=True)
    (linked / "kubernetes").symlink_to(tree)


def _compile(work: Path, log: Path) -> None:
    tree = work / "tree"
    environment = {
        "GOPATH": str(tree / ".go"),
        "GOCACHE": str(work / "gocache"),
        "GO111MODULE": "off",
        "CGO_ENABLED": "0",
        # One of the code generators is written in Python, and leaves files beside itself.
        "PYTHONDONTWRITEBYTECODE": "",
    }
    wanted = " ".join(f"cmd/{name}" for name in PROGRAMS)
    make = ("make", f"WHAT={wanted}", f"KUBE_GIT_VERSION=v{RELEASE}")
    _run(make, log=log, cwd=tree / ".go" / "src" / "k8s.io" / "kubernetes", env=environment)
    (work / "pause.go").write_text(_PAUSE_SOURCE)
    _run(("go", "build", "-o", PAUSE, "pause.go"), log=log, cwd=work, env=environment)


def _keep(work: Path, folder: Path) -> None:
    output = work / "made"
    output.mkdir()
    outputs = work / "tree" / "_output"
    for name in PROGRAMS:
        found = next(path for path in outputs.rglob(name) if path.is_file())
        shutil.copy2(found, output / name)
    shutil.copy2(work / PAUSE, output / PAUSE)
    shutil.rmtree(folder, ignore_errors=True)
    output.rename(folder)
