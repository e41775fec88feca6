"""Where the test scenarios are: ten files, fixed before any training."""

from pathlib import Path

TEST_SCENARIOS = Path(__file__).parent / "test_scenarios"
