"""Keeps kubelet's hands off settings of the whole machine.

It writes some sysctls that no namespace has of its own, and refuses to run where they differ and
cannot be written. Where a file with the value it wants lies over each, it finds nothing to do.
"""

from pathlib import Path

WANTED = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}


def guarding_script(folder: Path) -> str:
    """Write the files and return the script that lays them over the sysctls of its namespace."""
    folder.mkdir(exist_ok=True)
    lines = []
    for name, value in WANTED.items():
        stand_in = folder / name.replace("/", ".")
        stand_in.write_text(f"{value}\n")
        lines.append(f"mount --bind {stand_in} /proc/sys/{name}")
    return "\n".join(lines)
