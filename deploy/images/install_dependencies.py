"""Installs pinned dependencies into an image, without what none of its processes imports.

    python install_dependencies.py REQUIREMENTS FOLDER

Run by the Dockerfile in a stage of the builder's own processor. TARGETARCH (amd64, arm64), which
BuildKit and buildah set, names the image's: wheels of another one are chosen, nothing of them runs.
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

# What an image can do without: each pattern with what it is. Sizes with their bytecode, x86-64.
LEFT_OUT: Mapping[str, str] = {
    "bin": "command lines, of which an image needs none",
    "onnxruntime/capi/libonnxruntime.so.*": "29 MB: the library for C; Python's module has its own",
    "onnxruntime/transformers": "5 MB: optimises models of language",
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
    "google": "3 MB: protobuf, which onnxruntime's tools for models need, and its sessions do not",
    "flatbuffers": "which onnxruntime's tools for models need, and its sessions do not",
    "sqlalchemy/*/*_cy.*.so": "9 MB: what the ledger takes in a second is the same without",
    "sqlalchemy/ext": "1 MB: asks for the mapper",
    "sqlalchemy/orm": "5 MB: the mapper of objects; the ledger writes rows",
    "sqlalchemy/testing": "2 MB: tests of databases",
    "sqlalchemy/dialects/mssql": "the ledger is in SQLite or PostgreSQL",
    "sqlalchemy/dialects/mysql": "the ledger is in SQLite or PostgreSQL",
    "sqlalchemy/dialects/oracle": "the ledger is in SQLite or PostgreSQL",
    "duckdb/experimental": "1 MB: an interface like Spark's",
    "**/tests": "8 MB: packages' own tests",
    "**/*.pyi": "2 MB: types, for checkers",
}
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# pip takes a name of a platform as it is, and no older one with it.
_LIBCS = (
    "manylinux_2_34", "manylinux_2_31", "manylinux_2_28", "manylinux_2_27", "manylinux_2_26",
    "manylinux_2_24", "manylinux_2_17", "manylinux2014", "manylinux_2_12", "manylinux_2_5",
)  # fmt: skip


def platform_options(target_arch: str, machine: str) -> list[str]:
    """Return pip's options for wheels of a processor, none where it is the builder's own."""
    wanted = _MACHINES.get(target_arch, machine)
    if target_arch and target_arch not in _MACHINES:
        raise SystemExit(f"TARGETARCH={target_arch}: name one of {', '.join(_MACHINES)}")
    if wanted == machine:
        return []
    return [part for libc in _LIBCS for part in ("--platform", f"{libc}_{wanted}")]


def leave_out(folder: Path) -> None:
    """Remove what no process of an image imports."""
    for pattern in LEFT_OUT:
        for found in sorted(folder.glob(pattern)):
            if found.is_dir():
                shutil.rmtree(found)
            else:
                found.unlink(missing_ok=True)


def install(requirements: Path, folder: Path) -> None:
    """Install all that a file pins, each checked by its hash, and compile it.

    unchecked-hash: the compiled files stay valid whatever times a layer gives to the sources.
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
        raise SystemExit(f"{folder}: not all of it compiles")


def main(arguments: Sequence[str]) -> None:
    """Install what the command line names."""
    requirements, folder = (Path(each) for each in arguments)
    install(requirements, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
