from pathlib import Path

from greensched_testbed.images.weights import DEPENDENCIES, weights_mb


def test_a_package_weighs_what_its_files_and_its_libraries_do(tmp_path: Path) -> None:
    folder = tmp_path / DEPENDENCIES
    for name, size in {
        "numpy/core/a.so": 2_000_000,
        "numpy.libs/blas.so": 1_000_000,
        "single.so": 500_000,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(bytes(size))
    assert list(weights_mb(tmp_path).items()) == [("numpy", 3.0), ("single.so", 0.5)]
