"""The wheel plans with its own kernel, where there is neither numba nor a compiler."""

import importlib.metadata
import platform
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from deploy.release.faults import ReleaseFault
from deploy.release.packages import build_wheel
from greensched_policies.library.loading import file_name
from tests.test_imports import closure

PLAN = """
from importlib.util import find_spec
import numpy as np
from greensched_policies.encoding.weights import Weights
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import outlook_of
from greensched_policies.planning.planning import StartRequest, plan_all
from greensched_policies.rules.catalogue import WHEN_RULES

assert not any(find_spec(name) for name in ("numba", "llvmlite", "platformdirs"))
carbon = np.array([[200.0, 100.0, 120.0, 150.0]])
outlook = outlook_of(0.0, 900.0, carbon, np.full(carbon.shape, 50.0), None)
one = StartRequest(runtime_s=np.array([900.0]), latest_s=2700.0, cpu_cores=1.0,
                   power_w=np.array([8.0]), weights=Weights(0.0, 1.0, 0.0),
                   when=WHEN_RULES["planned-window"])
(chosen,) = plan_all(outlook, CorePlan(np.array([10.0]), 0.0, 900.0, 200), [one], 0.0)
print(chosen.start_s)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel with the kernel for this machine, which takes a minute."""
    if not (shutil.which("ld") or find_spec("ziglang")):
        pytest.skip("there is no linker: install binutils")
    return build_wheel(tmp_path_factory.mktemp("wheel"), 1_700_000_000, [platform.machine()])


def installed(wheel: Path, extra: str, folder: Path) -> Path:
    """Install a wheel and what an extra brings, as this environment has it; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin/python"
    pip = ("-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index")
    subprocess.run([sys.executable, *pip, wheel], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in closure(extra):
        for top in {file.parts[0] for file in importlib.metadata.files(name) or ()} - {"..", ""}:
            source = Path(str(importlib.metadata.distribution(name).locate_file(top)))
            if not (packages / top).exists():
                (packages / top).symlink_to(source)
    return python


@pytest.mark.wheel
def test_the_wheel_plans_without_numba(wheel: Path, tmp_path: Path) -> None:
    python = installed(wheel, "policies", tmp_path / "venv")
    planned = subprocess.run([python, "-c", PLAN], capture_output=True, text=True, cwd=tmp_path)
    assert (planned.stdout, planned.stderr) == ("900.0\n", "")


@pytest.mark.wheel
def test_the_wheel_is_for_every_platform_and_has_no_older_kernel(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert [Path(name).name for name in names if name.endswith(".so")] == [
        file_name(platform.machine())
    ]


def test_a_processor_without_a_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseFault, match="invalid choice: 's390x'"):
        build_wheel(tmp_path, 0, ["s390x"])
    assert not [*tmp_path.iterdir()]
