"""Installs pinned dependencies into an image, without files that none of its processes imports.

    python install_dependencies.py REQUIREMENTS FOLDER

The Dockerfile runs it in a stage of the builder's own processor. TARGETARCH (amd64, arm64), which
BuildKit and buildah set, names the image's processor: pip chooses wheels for it, and none of their
programs runs.
"""

import compileall
import os
import platform
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# Files that an image does not need: pattern and content. Sizes are for x86-64, with bytecode.
LEFT_OUT: Mapping[str, str] = {
    "bin": "command lines",
    "onnxruntime/capi/libonnxruntime.so.*": "29 MB: the library for C; Python's module has its own",
    "onnxruntime/transformers": "5 MB: optimises language models",
    "onnxruntime/quantization": "2 MB: makes models smaller",
    "onnxruntime/tools": "1 MB: converts models",
    "onnxruntime/datasets": "examples",
    "numpy/f2py": "2 MB: wraps Fortran",
    "numpy/distutils": "2 MB: builds extensions",
    "numpy/_core/include": "1 MB: headers, for extensions",
    "**/*.a": "0.3 MB: libraries to link against",
    "**/*.[ch]": "0.5 MB: sources in C",
    "**/*.px[di]": "sources in Cython",
    "**/*.pyx": "1 MB: sources in Cython",
    "google": "3 MB: protobuf, which only onnxruntime's model tools need",
    "flatbuffers": "only onnxruntime's model tools need it",
    "sqlalchemy/*/*_cy.*.so": "9 MB: the ledger is as fast without",
    "sqlalchemy/ext": "1 MB: needs the mapper",
    "sqlalchemy/orm": "5 MB: the object mapper; the ledger writes rows",
    "sqlalchemy/testing": "2 MB: database tests",
    "sqlalchemy/dialects/mssql": "the ledger is in SQLite or PostgreSQL",
    "sqlalchemy/dialects/mysql": "the ledger is in SQLite or PostgreSQL",
    "sqlalchemy/dialects/oracle": "the ledger is in SQLite or PostgreSQL",
    "duckdb/experimental": "1 MB: an interface like that of Spark",
    "**/tests": "8 MB: packages' own tests",
    "**/*.pyi": "2 MB: types, for type checkers",
}
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# pip accepts only the given platform names, and does not add older ones.
_LIBCS = (
    "manylinux_2_34", "manylinux_2_31", "manylinux_2_28", "manylinux_2_27", "manylinux_2_26",
    "manylinux_2_24", "manylinux_2_17", "manylinux2014", "manylinux_2_12", "manylinux_2_5",
)  # fmt: skip


def platform_options(target_arch: str, machine: str) -> list[str]:
    """Return pip's options for wheels of a processor; none if it is the builder's own."""
    wanted = _MACHINES.get(target_arch, machine)
    if target_arch and target_arch not in _MACHINES:
        raise SystemExit(f"TARGETARCH={target_arch} is unknown: use one of {', '.join(_MACHINES)}")
    if wanted == machine:
        return []
    return [part for libc in _LIBCS for part in ("--platform", f"{libc}_{wanted}")]


def leave_out(folder: Path) -> None:
    """Remove files that no process of an image imports."""
    for pattern in LEFT_OUT:
        for found in sorted(folder.glob(pattern)):
            if found.is_dir():
                shutil.rmtree(found)
            else:
                found.unlink(missing_ok=True)


def install(requirements: Path, folder: Path) -> None:
    """Install the packages that a file pins, checked by hash, and compile them.

    unchecked-hash: the compiled files stay valid if an image layer changes the sources' times.
    """
    options = platform_options(os.environ.get("TARGETARCH", ""), platform.machine())
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--no-cache-dir", "--no-compile", "--no-deps",
            "--disable-pip-version-check", "--root-user-action=ignore", "--quiet",
            "--only-binary=:all:", "--require-hashes",
            *options, "--target", folder, "-r", requirements,
        ],
        check=True,
    )  # fmt: skip
    leave_out(folder)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(folder, quiet=1, invalidation_mode=mode):
        raise SystemExit(f"{folder}: a file could not be compiled")


def main(arguments: Sequence[str]) -> None:
    """Install the requirements of the command line into its folder."""
    requirements, folder = (Path(each) for each in arguments)
    install(requirements, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
