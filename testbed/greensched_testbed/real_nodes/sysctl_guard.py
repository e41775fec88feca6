"""Keeps kubelet from changing sysctls of the whole machine.

Kubelet writes some sysctls that are not namespaced. If they differ and it cannot write them, it
refuses to run. We mount a file with the wanted value over each, so that it need not write them.
"""

from pathlib import Path

KERNEL_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}


def guarding_script(folder: Path) -> str:
    """Write the files, and return the script that mounts them over sysctls in a namespace."""
    folder.mkdir(exist_ok=True)
    lines = []
    for name, value in KERNEL_SETTINGS.items():
        stand_in = folder / name.replace("/", ".")
        stand_in.write_text(f"{value}\n")
        lines.append(f"mount --bind {stand_in} /proc/sys/{name}")
    return "\n".join(lines)
