"""Which share of their range from idle to full watts GPUs draw, by kind of measured work.

Trainings are Zeus's, without a power cap; idle is an eighth of the watt limit, as the hardware
catalogue takes it. Served models are those of ML.ENERGY's leaderboard. $GREENSCHED_DATA has both.
"""

import os
from collections import defaultdict
from pathlib import Path
from statistics import median, quantiles

from greensched_simulator.reproductions.zeus import FOLDER, read_runs
from greensched_simulator.scenario.served_figures import read_figures
from greensched_simulator.world.served_models import ratio_of_watts

DATA = Path(os.environ.get("GREENSCHED_DATA") or Path(__file__).parents[2] / "shared" / "data")
_TRAINED_ON = ("v100", "a40", "rtx6000")
_SERVED_ON = "h100-sxm"
_LEADERBOARD = "mlenergy-leaderboard/lm-arena-chat.json.gz"
_IDLE_SHARE = 0.125  # of the watt limit


def main() -> None:
    """Print the shares, as docs/simulator.md tells them."""
    print(f"of the range from idle to full watts; trainings on {', '.join(_TRAINED_ON)}:")
    for name, shares in sorted(training_shares(DATA).items(), key=lambda each: median(each[1])):
        print(f"  {name}: {min(shares):.2f} to {max(shares):.2f}, median {median(shares):.2f}")
    shares = serving_shares(DATA)
    tenths = quantiles(shares, n=10)
    print(
        f"  chats on {_SERVED_ON}, {len(shares)} settings of model and batch: "
        f"{tenths[0]:.2f} to {tenths[-1]:.2f} (middle 80 %), median {median(shares):.2f}"
    )


def training_shares(data: Path) -> dict[str, list[float]]:
    """Return each training's median share over batch sizes and optimizers, one for each GPU."""
    found: dict[str, list[float]] = defaultdict(list)
    for gpu in _TRAINED_ON:
        shares: dict[str, list[float]] = defaultdict(list)
        runs = read_runs(data / FOLDER / f"summary_power_{gpu}.csv")
        for (dataset, network, *_), by_limit in runs.items():
            limit_w = max(by_limit)
            share = by_limit[limit_w].power_w / limit_w
            shares[f"{network} on {dataset}"].append((share - _IDLE_SHARE) / (1.0 - _IDLE_SHARE))
        for name, each in shares.items():
            found[name].append(median(each))
    return found


def serving_shares(data: Path) -> list[float]:
    """Return the share of each model, number of GPUs and batch with which a replica was served."""
    return [
        ratio_of_watts(profile.gpu_watts, name)
        for (_, name, _), batches in read_figures(data / _LEADERBOARD).measured.items()
        if name == _SERVED_ON
        for profile in batches.values()
    ]


if __name__ == "__main__":
    main()
