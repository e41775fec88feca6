import os
import subprocess
import sys


def test_onnxruntime_is_asked_to_phone_nobody_before_it_is_imported() -> None:
    program = (
        "import greensched_policies.learned.bundle, os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    without = {name: value for name, value in os.environ.items() if "TELEMETRY" not in name}
    said = subprocess.run(
        [sys.executable, "-c", program], env=without, capture_output=True, text=True, check=True
    )
    assert said.stdout == "1\n"
