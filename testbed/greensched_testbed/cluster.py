"""Starts a control plane that outlives the command that started it, and takes it down."""

import shutil
import tarfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import platformdirs
import psutil

from greensched_core.api_paths import NODES
from greensched_core.errors import BadInput
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_testbed.components import ControlPlaneOptions
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.node_generations import mixed_nodes
from greensched_testbed.nodes import create_nodes, wait_until_ready
from greensched_testbed.processes import ManagedProcess
from greensched_testbed.real_nodes.cluster import RealCluster, remove_run, sweep
from greensched_testbed.real_nodes.node_kinds import in_two_zones

_STATE_FILE = "cluster.json"
_GRACE_S = 5.0
_SAME_START_S = 0.1  # two readings of a process's start differ by at most a clock tick, 0.01 s


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process of the cluster; its start time detects a reused process id."""

    name: str
    pid: int
    started_at: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """The cluster's processes, and how to reach it."""

    folder: str
    url: str
    kubeconfig: str
    programs: str  # the folder of kubectl, helm and, if simulated, all programs of the cluster
    processes: tuple[ProcessRecord, ...]
    run: str = ""  # real nodes: the name of their cgroups and network
    starter: ProcessRecord | None = None  # the process that starts it, until it has started

    @property
    def logs(self) -> Path:
        """Return the folder with a log of each process."""
        return Path(self.folder) / "logs"


def default_cluster_folder() -> Path:
    """Return the default folder of a user's cluster."""
    return platformdirs.user_state_path("greensched", appauthor=False) / "cluster"


def up(
    folder: Path | None = None,
    options: ControlPlaneOptions | None = None,
    *,
    real_nodes: int = 0,
    images: Iterable[Path] = (),
) -> ClusterRecord:
    """Start a control plane that outlives us, and return how to reach it.

    Containers run only on real nodes, which get the archives of `images`. A running cluster is left
    as it is. Raises BadInput if the folder has other content or an archive is invalid,
    CannotRunNodes if this machine cannot run real nodes.
    """
    folder = (folder or default_cluster_folder()).absolute()
    images = [_archive(each) for each in images]
    present = status(folder)
    if present is not None:
        return present
    if (folder / _STATE_FILE).exists():
        down(folder)  # left by a reboot or a crash
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(
            f"{folder} is not empty and contains no cluster of greensched; name another folder"
        )
    try:
        if real_nodes:
            return _start_real(folder, real_nodes, images)
        return _start_simulated(folder, options)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _archive(path: Path) -> Path:
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    if not tarfile.is_tarfile(path):
        raise BadInput(
            f"{path} is not an archive of an image; write one with `docker save` or `make images`"
        )
    return path.absolute()  # nodes have other working directories


def _start_simulated(folder: Path, options: ControlPlaneOptions | None) -> ClusterRecord:
    plane = ControlPlane(options, folder=folder, outlives_us=True)
    _write_begun(folder, str(plane.programs))
    plane.start_all()
    record = _written(folder, plane, plane.processes.all())
    plane.let_go()
    return record


def _start_real(folder: Path, count: int, images: Iterable[Path]) -> ClusterRecord:
    cluster = RealCluster(in_two_zones(count), folder=folder, outlives_us=True)
    _write_begun(folder)
    cluster.start()
    try:
        cluster.load_images(images)
    except BaseException:
        cluster.close()
        raise
    processes = (*cluster.processes.all(), *cluster.plane.processes.all())
    record = _written(folder, cluster.plane, processes, cluster.run)
    cluster.let_go()
    return record


def _written(
    folder: Path, plane: ControlPlane, processes: Iterable[ManagedProcess], run: str = ""
) -> ClusterRecord:
    """Write the record of a started cluster, and return it."""
    record = ClusterRecord(
        folder=str(folder),
        url=plane.url,
        kubeconfig=str(plane.kubeconfig),
        programs=str(plane.programs),
        processes=tuple(ProcessRecord(each.name, each.pid, each.started_at) for each in processes),
        run=run,
    )
    return _write(record)


def _write_begun(folder: Path, programs: str = "") -> None:
    """Write a record of the start, so that `down` recognises the folder if the start is killed."""
    us = psutil.Process()
    starter = ProcessRecord(us.name(), us.pid, us.create_time())
    _write(ClusterRecord(str(folder), "", "", programs, processes=(), starter=starter))


def _write(record: ClusterRecord) -> ClusterRecord:
    (Path(record.folder) / _STATE_FILE).write_bytes(msgspec.json.encode(record))
    return record


async def add_nodes(record: ClusterRecord, count: int) -> tuple[str, ...]:
    """Create missing kwok nodes, up to `count` of mixed kinds, and return all their names.

    Existing ones stay. Raises NotReady if they do not become ready.
    """
    async with ApiClient(ApiAccess.from_kubeconfig(Path(record.kubeconfig))) as client:
        names = await create_nodes(client, mixed_nodes(count), may_exist=True)
        await wait_until_ready(client, names)
    return names


async def count_nodes(record: ClusterRecord) -> int:
    """Return how many nodes the cluster has."""
    async with ApiClient(ApiAccess.from_kubeconfig(Path(record.kubeconfig))) as client:
        return sum([len(page.items) async for page in client.pages(NODES)])


def status(folder: Path | None = None) -> ClusterRecord | None:
    """Return the record of the cluster in a folder if all its processes run, else None."""
    record = _read(folder or default_cluster_folder())
    if record is None or record.starter is not None:
        return None
    if any(_find(process) is None for process in record.processes):
        return None
    return record


def down(folder: Path | None = None) -> tuple[str, ...]:
    """Stop exactly what `up` started, remove its folder, and return the names of what was stopped.

    Returns nothing if there is no cluster. If `up` was killed, this stops what it had started; with
    real nodes, this removes everything left by runs whose parents were killed. Raises BadInput
    while `up` still runs.
    """
    folder = (folder or default_cluster_folder()).absolute()
    record = _read(folder)
    if record is None:
        return ()
    if record.starter is not None:
        if _find(record.starter):
            raise BadInput(
                f"process {record.starter.pid} is starting the cluster in {folder}; end it first"
            )
        stopped = _stopped(_begun(record)) if record.programs else sweep()
    elif record.run:
        stopped = tuple(each.name for each in reversed(record.processes) if _find(each))
        remove_run(record.run)
    else:
        stopped = _stopped(reversed(record.processes))
    shutil.rmtree(folder)
    return stopped


def _begun(record: ClusterRecord) -> tuple[ProcessRecord, ...]:
    """Return what a killed start left: processes of our programs in its folder, newest first."""
    found = [
        ProcessRecord(each.info["name"], each.pid, each.info["create_time"])
        for each in psutil.process_iter(["name", "exe", "cmdline", "create_time"])
        if Path(each.info["exe"] or "/").is_relative_to(record.programs)
        and any(f"{record.folder}/" in word for word in each.info["cmdline"] or ())
    ]
    return tuple(sorted(found, key=lambda each: -each.started_at))


def _stopped(records: Iterable[ProcessRecord]) -> tuple[str, ...]:
    return tuple(each.name for each in records if _stop(each))


def _stop(record: ProcessRecord) -> bool:
    process = _find(record)
    if process is None:
        return False
    with suppress(psutil.NoSuchProcess):
        process.terminate()
        if _still_there([process], _GRACE_S):
            process.kill()
            _still_there([process], _GRACE_S)
    return True


def _still_there(processes: Iterable[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    return list(psutil.wait_procs(list(processes), timeout=timeout_s)[1])


def _find(record: ProcessRecord) -> psutil.Process | None:
    try:
        process = psutil.Process(record.pid)
        is_same = abs(process.create_time() - record.started_at) < _SAME_START_S
        is_running = is_same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return None
    return process if is_running else None


def _read(folder: Path) -> ClusterRecord | None:
    try:
        return msgspec.json.decode((folder / _STATE_FILE).read_bytes(), type=ClusterRecord)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as fault:
        raise BadInput(f"{folder / _STATE_FILE} cannot be read: {fault}") from fault
