"""A training finds something better than its prior, and comes to the same however it went."""

import multiprocessing
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_policies.learned.bundle import load_bundle
from greensched_policies.library.nets import packed
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.learned_heads import LearnedHeads
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.small_worlds import bytes_of
from greensched_simulator.world.scenario_loading import load_scenario
from greensched_simulator.world.world import build_world
from greensched_train.checkpoints import CHECKPOINT, Progress
from greensched_train.residual_nets import ResidualNets
from greensched_train.trained_bundle import export_trained
from greensched_train.training import run_training
from greensched_train.training_config import Evolution, TrainingConfig, Validation, Worlds
from greensched_train.world_pool import TrainingProcessDied

SUNS = Path(__file__).parent / "two_suns"
TINY = TrainingConfig(
    name="tiny",
    hidden=(8,),
    worlds=Worlds(training=SUNS, validation=SUNS),
    method=Evolution(generations=6, pairs=6, worlds=2, deviation=0.1, learning_rate=0.05),
    validation=Validation(worlds=3, every=3),
)
SHORT = TINY.model_copy(
    update={
        "method": Evolution(generations=3, pairs=2, worlds=1, deviation=0.1),
        "validation": Validation(worlds=1, every=2),
    }
)

pytestmark = pytest.mark.engine


class _Killed(Exception):
    """Ends a training from outside."""


def quietly(progress: Progress) -> None:
    """Tell nobody."""


def trained(folder: Path, config: TrainingConfig = SHORT) -> Progress:
    """Train to the end in this process, and export."""
    done = run_training(config, folder, quietly, process_count=0)
    export_trained(done, config, ["greensched", "train", "tiny.yaml"], folder / "bundle")
    return done


def arrays_in(folder: Path) -> dict[str, bytes]:
    """Return what a checkpoint has, to the last bit; not how long it took."""
    with np.load(folder / CHECKPOINT) as saved:
        return {name: saved[name].tobytes() for name in saved.files if name != "told"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder of a short training that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    trained(folder)
    yield folder


def test_a_tiny_training_beats_its_own_prior_within_a_minute(tmp_path: Path) -> None:
    done = trained(tmp_path, TINY)
    before, kept = done.validated[0], min(done.validated, key=lambda each: each.objective)
    assert kept.objective < before.objective - 0.001
    assert kept.missed <= before.missed
    assert done.best_at == kept.generation > 0
    assert done.seconds < 60.0


def test_a_training_that_was_killed_after_each_generation_comes_to_the_same_bytes(
    whole: Path, tmp_path: Path
) -> None:
    def kill(progress: Progress) -> None:
        raise _Killed

    for _ in range(1 + SHORT.method.generations):
        with pytest.raises(_Killed):
            run_training(SHORT, tmp_path, kill, process_count=0)
    trained(tmp_path)
    assert arrays_in(tmp_path) == arrays_in(whole)
    for head in ("when", "where", "how_fast"):
        graphs = [(folder / "bundle" / f"{head}.onnx").read_bytes() for folder in (tmp_path, whole)]
        assert graphs[0] == graphs[1]


def test_what_is_exported_decides_as_what_was_trained(whole: Path) -> None:
    done = run_training(SHORT, whole, quietly, process_count=0)
    nets = ResidualNets(SHORT.hidden).nets_of(done.best)
    world = build_world(load_scenario(SUNS / "two-suns.yaml"), 0)
    bundle = policy_named(f"onnx:{whole / 'bundle'}")
    heads = LearnedHeads(**{name: packed(net) for name, net in nets.items()})
    assert bytes_of(simulate(world, bundle)) == bytes_of(simulate(world, bundle, heads))
    assert load_bundle(whole / "bundle", needs=()).card.evaluation["generations"] == 3.0


def test_a_folder_of_another_training_is_refused_by_what_differs(whole: Path) -> None:
    other = SHORT.model_copy(update={"seed": 7})
    with pytest.raises(BadInput, match="another configuration .seed was 1, and is 7."):
        run_training(other, whole, quietly, process_count=0)


def test_a_damaged_checkpoint_is_refused_and_stays(whole: Path, tmp_path: Path) -> None:
    content = (whole / CHECKPOINT).read_bytes()
    (tmp_path / CHECKPOINT).write_bytes(content[: len(content) // 2])
    with pytest.raises(BadInput, match="is no checkpoint of a training"):
        run_training(SHORT, tmp_path, quietly, process_count=0)
    assert (tmp_path / CHECKPOINT).stat().st_size == len(content) // 2


def test_a_full_disk_leaves_the_last_checkpoint_and_training_goes_on_from_it(
    tmp_path: Path,
) -> None:
    """A limit of a file's size stands for the disk: writing fails in the same place."""

    def kill(progress: Progress) -> None:
        raise _Killed

    with pytest.raises(_Killed):
        run_training(SHORT, tmp_path, kill, process_count=0)
    before = (tmp_path / CHECKPOINT).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        with pytest.raises(BadInput, match="cannot be written .File too large.; the one before"):
            run_training(SHORT, tmp_path, quietly, process_count=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / CHECKPOINT).read_bytes() == before
    run_training(SHORT, tmp_path, quietly, process_count=0)


def test_parameters_that_are_no_numbers_end_the_training_before_they_are_saved(
    tmp_path: Path,
) -> None:
    method = SHORT.method.model_copy(update={"learning_rate": 1e39})
    config = SHORT.model_copy(update={"method": method})
    with pytest.raises(BadInput, match="generation 1 gave parameters that are no numbers"):
        run_training(config, tmp_path, quietly, process_count=0)
    with np.load(tmp_path / CHECKPOINT) as saved:
        assert '"generation": 0' in str(saved["told"])


def test_the_number_of_processes_makes_no_difference(whole: Path, tmp_path: Path) -> None:
    run_training(SHORT, tmp_path, quietly, process_count=2)
    assert arrays_in(tmp_path) == arrays_in(whole)


def test_after_a_process_was_killed_training_goes_on_from_the_last_checkpoint(
    whole: Path, tmp_path: Path
) -> None:
    def kill_all(progress: Progress) -> None:
        for child in multiprocessing.active_children():
            child.kill()

    with pytest.raises(TrainingProcessDied, match="the same command goes on"):
        run_training(SHORT, tmp_path, kill_all, process_count=1)
    run_training(SHORT, tmp_path, quietly, process_count=0)
    assert arrays_in(tmp_path) == arrays_in(whole)
