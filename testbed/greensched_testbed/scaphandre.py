"""Builds Scaphandre, which measures nodes' power, once by cargo, and keeps it in the cache.

The sources are upstream's, with the versions of its lock file. We link in one function, without
which it ends on a kernel without modules (rust/no_modules.c).
"""

import hashlib
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from greensched_testbed.binaries import default_cache, sole_builder
from greensched_testbed.errors import BuildFailed, CannotBuildHere
from greensched_testbed.processes import start_process, tail
from greensched_testbed.progress import LiveLine

SCAPHANDRE_RELEASE = "1.0.0"
_TITLE = "Scaphandre"
_SOURCE = Path(__file__).parent / "rust" / "no_modules.c"
# The other features' dependencies do not compile with Rust 1.95.
_OPTIONS = ("--locked", "--no-default-features", "--features", "prometheus,json")
_LIBRARY = re.compile(r"(/\S+) \(0x")
_LONGEST_S = 1_800.0


def scaphandre_program(cache: Path | None = None) -> Path:
    """Return the path of Scaphandre; build it on first use.

    Raises BuildFailed with a hint, CannotBuildHere if a compiler is missing.
    """
    cache = cache or default_cache()
    result = cache / f"scaphandre-{_key()}"
    if not result.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with sole_builder(result.with_suffix(".lock"), _TITLE):
            if not result.is_dir():
                _build(result)
    return result / "bin" / "scaphandre"


def libraries_of(program: Path) -> tuple[Path, ...]:
    """Return the paths of the loader and the libraries that a program is linked with."""
    result = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True)
    return tuple(Path(path) for path in _LIBRARY.findall(result.stdout))


def _key() -> str:
    content = " ".join((SCAPHANDRE_RELEASE, *_OPTIONS)).encode() + _SOURCE.read_bytes()
    return f"{SCAPHANDRE_RELEASE}-{hashlib.sha256(content).hexdigest()[:8]}"


def _build(result: Path) -> None:
    """Build into a temporary folder, and rename that to `result` atomically."""
    cargo, compiler = _found("cargo"), _found("cc")
    partial = result.with_name(f"{result.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # left by a killed build
    partial.mkdir()
    began = time.monotonic()
    LiveLine().say(
        f"{_TITLE}: building {SCAPHANDRE_RELEASE} from source by cargo, once: about three minutes"
    )
    part = partial / "no_modules.o"
    subprocess.run([compiler, "-O2", "-c", str(_SOURCE), "-o", str(part)], check=True)
    log = result.with_suffix(".log")
    log.unlink(missing_ok=True)
    process = start_process(
        "cargo",
        [cargo, "install", "scaphandre", "--version", f"={SCAPHANDRE_RELEASE}", *_OPTIONS,
         "--target", _host(), "--root", partial, "--target-dir", partial / "target"],
        log,
        environment={
            **os.environ, "RUSTFLAGS": f"-C link-arg={part} -C link-arg=-Wl,--wrap=open64"
        },
    )  # fmt: skip
    try:
        process.popen.wait(_LONGEST_S)
    finally:
        process.kill()
        shutil.rmtree(partial / "target", ignore_errors=True)
    if process.popen.returncode != 0:
        raise BuildFailed(
            f"building {_TITLE} failed; the whole log is {log}, its end:\n{tail(log)}"
        )
    partial.rename(result)
    LiveLine().say(f"{_TITLE}: built in {time.monotonic() - began:.0f} s")


def _host() -> str:
    """Return the compiler's target; naming it keeps our flags away from build scripts."""
    command = [_found("rustc"), "--version", "--verbose"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return version.partition("host: ")[2].split()[0]


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise CannotBuildHere(
            f"building {_TITLE} needs cargo and a C compiler; {program} is missing"
        )
    return path
