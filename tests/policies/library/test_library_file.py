"""The library's name and contents: the same wherever it is built, and never silently missing."""

import _struct
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import greensched_core
import greensched_policies
from greensched_core.errors import BadInput
from greensched_policies.library.loading import (
    PROCESSORS,
    file_name,
    processor_named,
    refuse_missing,
)

# A function with what numba names by addresses, and with an exception that tells numba's folder.
BUILD = """
import hashlib
from pathlib import Path
import numba
from greensched_policies.kernel.build import __file__, object_code

def odd(integers_at, numbers_at):
    count, begin = numba.carray(integers_at, (2,))
    values = numba.carray(numbers_at, (count,))
    values[begin:] = values[:begin] * 2.0 + 1.0

codes = [object_code(each, {"odd": odd}) for each in ("x86_64", "aarch64")]
assert not any(bytes(Path(numba.__file__).parent) in code for code in codes)
print(__file__, *(hashlib.sha256(code).hexdigest() for code in codes))
"""

LOAD = """
import sys
from greensched_core.errors import BadInput
from greensched_policies.library import loading
loading.BUILT = loading.Path(sys.argv[1])
try:
    loading.load()
except BadInput as fault:
    print(fault)
"""


def built(folder: Path, seed: int) -> list[str]:
    """Return the digest of each processor's code, made of a copy of the sources in a folder."""
    for package in (greensched_core, greensched_policies):
        shutil.copytree(package.__path__[0], folder / package.__name__)
    (folder / "odd.py").write_text(BUILD)
    own = {"PYTHONPATH": folder, "XDG_CACHE_HOME": folder / "cache", "PYTHONHASHSEED": seed}
    told = {name: str(value) for name, value in own.items()}
    run = subprocess.run(
        [sys.executable, folder / "odd.py"],
        env={**os.environ, **told}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    file, *digests = run.stdout.split()
    assert Path(file).is_relative_to(folder)
    return digests


def test_the_same_sources_give_the_same_code_in_any_folder_and_process(tmp_path: Path) -> None:
    found = built(tmp_path / "a", seed=1)
    assert found == built(tmp_path / "another-folder", seed=2)
    assert len({*found}) == len(PROCESSORS)


@pytest.mark.parametrize(
    ("name", "processor"),
    [
        pytest.param("amd64", "x86_64", id="as-images-name-it"),
        pytest.param("arm64", "aarch64", id="as-images-name-the-other"),
        pytest.param("aarch64", "aarch64", id="its-own-name"),
        pytest.param("", platform.machine(), id="none-is-this-machines"),
        pytest.param("s390x", "s390x", id="unknown-stays"),
    ],
)
def test_a_processor_has_one_name(name: str, processor: str) -> None:
    assert processor_named(name) == processor


@pytest.mark.parametrize("processor", PROCESSORS.values())
def test_a_missing_library_is_refused_and_what_is_there_is_named(
    processor: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=f"-{processor}.so is missing, and there is nothing: "):
        refuse_missing(processor, tmp_path)
    (tmp_path / f"0123456789abcdef-{processor}.so").touch()
    with pytest.raises(BadInput, match=f"there is 0123456789abcdef-{processor}.so: "):
        refuse_missing(processor, tmp_path)


def test_a_library_of_this_processor_has_every_function(tmp_path: Path) -> None:
    shutil.copy(_struct.__file__, tmp_path / file_name(platform.machine()))
    with pytest.raises(BadInput, match="has no function plan_starts, "):
        refuse_missing(platform.machine(), tmp_path)


def of_another_processor(path: Path) -> str:
    """Write a library of this machine's processor to a path, as that of another; return which."""
    (other,) = set(PROCESSORS.values()) - {platform.machine()}
    code = bytearray(Path(_struct.__file__).read_bytes())
    code[18:20] = {"x86_64": 62, "aarch64": 183}[other].to_bytes(2, "little")
    path.write_bytes(code)
    return other


def test_the_functions_of_a_library_of_another_processor_are_not_looked_up(tmp_path: Path) -> None:
    other = of_another_processor(tmp_path / "library")
    (tmp_path / "library").rename(tmp_path / file_name(other))
    refuse_missing(other, tmp_path)


def test_a_library_of_another_processor_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / file_name(platform.machine())
    of_another_processor(path)
    with pytest.raises(BadInput, match=f"{path.name} is not for {platform.machine()}: install"):
        refuse_missing(platform.machine(), tmp_path)


@pytest.mark.parametrize(
    ("kept", "fault"),
    [
        pytest.param(0, "is no library", id="empty"),
        pytest.param(63, "is no library", id="less-than-its-head"),
        pytest.param(-1, "is cut short, to [0-9]+ bytes", id="a-byte-too-few"),
    ],
)
def test_a_part_of_a_library_is_refused_before_it_ends_the_process(
    tmp_path: Path, kept: int, fault: str
) -> None:
    """What is loaded at start is refused too: a fresh process says so, and exits."""
    path = tmp_path / file_name(platform.machine())
    whole = Path(_struct.__file__).read_bytes()
    path.write_bytes(whole[:kept])
    with pytest.raises(BadInput, match=f"{path.name} {fault}: "):
        refuse_missing(platform.machine(), tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{path} is ")
