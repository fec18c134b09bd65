"""Archives from somebody else: nothing leaves the folder, nothing fills the disk."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.user_scripts import ArchiveLimits, unpack_archive


def _tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member, content in members:
            member.size = len(content) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(content))
    return path


def _file(name: str) -> tarfile.TarInfo:
    return tarfile.TarInfo(name)


def _link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = target
    return member


def test_files_of_a_tar_arrive_with_their_content(tmp_path: Path) -> None:
    archive = _tar(
        tmp_path / "code.tar.gz", (_file("main.py"), b"print(1)"), (_file("a/b.txt"), b"x")
    )
    assert unpack_archive(archive, tmp_path / "out") == 2
    assert (tmp_path / "out" / "main.py").read_bytes() == b"print(1)"
    assert (tmp_path / "out" / "a" / "b.txt").read_bytes() == b"x"


def test_files_of_a_zip_arrive_with_their_content(tmp_path: Path) -> None:
    path = tmp_path / "code.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pkg/main.py", "print(2)")
    assert unpack_archive(path, tmp_path / "out") == 1
    assert (tmp_path / "out" / "pkg" / "main.py").read_text(encoding="utf-8") == "print(2)"


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "a\\..\\evil"])
def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    archive = _tar(tmp_path / "code.tar.gz", (_file(name), b"x"))
    with pytest.raises(InvalidTaskInput, match="outside its folder"):
        unpack_archive(archive, tmp_path / "out")
    assert not (tmp_path / "evil").exists()


def test_a_name_in_a_zip_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "code.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../evil", "x")
    with pytest.raises(InvalidTaskInput, match="outside its folder"):
        unpack_archive(path, tmp_path / "out")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    archive = _tar(tmp_path / "code.tar.gz", (_link("inside", "/etc", kind), b""))
    with pytest.raises(InvalidTaskInput, match="link or device: 'inside'"):
        unpack_archive(archive, tmp_path / "out")


def test_a_symbolic_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "code.zip"
    info = zipfile.ZipInfo("inside")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(InvalidTaskInput, match="link or device"):
        unpack_archive(path, tmp_path / "out")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    archive = _tar(tmp_path / "code.tar.gz", (_file("zeros"), bytes(100_000)))
    with pytest.raises(InvalidTaskInput, match="more than 50,000 bytes"):
        unpack_archive(archive, tmp_path / "out", bounds=ArchiveLimits(size=50_000))


def test_an_archive_of_too_many_files_is_refused(tmp_path: Path) -> None:
    archive = _tar(tmp_path / "code.tar.gz", *((_file(f"f{index}"), b"") for index in range(11)))
    with pytest.raises(InvalidTaskInput, match="more than 10 files"):
        unpack_archive(archive, tmp_path / "out", bounds=ArchiveLimits(files=10))


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "code.tar.gz"
    path.write_bytes(b"\x1f\x8b not an archive")
    with pytest.raises(InvalidTaskInput, match=r"code\.tar\.gz is not a readable archive"):
        unpack_archive(path, tmp_path / "out")


def test_one_name_as_file_and_folder_is_refused(tmp_path: Path) -> None:
    archive = _tar(tmp_path / "code.tar.gz", (_file("a"), b"x"), (_file("a/b"), b"y"))
    with pytest.raises(InvalidTaskInput, match="as a file and as a folder"):
        unpack_archive(archive, tmp_path / "out")


def test_an_empty_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTaskInput, match="holds no files"):
        unpack_archive(_tar(tmp_path / "code.tar.gz"), tmp_path / "out")
