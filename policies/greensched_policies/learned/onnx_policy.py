"""Runs an exported head in onnxruntime, with the signature of a policy."""

import numpy as np
import numpy.typing as npt
import onnxruntime

NODES_INPUT = "nodes"  # of the `where` head
SLOTS_INPUT = "slots"  # of the `when` head
POWER_CAPS_INPUT = "power_caps"  # of the `how_fast` head
CONTEXT_INPUT = "context"
OUTPUT = "relative_cost"


class OnnxPolicy:
    """A policy backed by one onnxruntime session on one CPU thread.

    The graph's candidates are [B,features,N], so that a layer multiplies a small matrix with long
    rows, and bias and Relu work along the rows.
    """

    def __init__(
        self, session: onnxruntime.InferenceSession, candidates_input: str = NODES_INPUT
    ) -> None:
        self.session = session
        self._candidates_input = candidates_input

    def __call__(
        self, candidates: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float32]:
        """Return the relative cost [B,N] for candidates [B,N,features] and `context` [B,15].

        Candidates that are feature-major in memory, as the encoder makes them, are not copied.
        """
        answer: npt.NDArray[np.float32] = self.session.run(
            [OUTPUT],
            {self._candidates_input: candidates.transpose((0, 2, 1)), CONTEXT_INPUT: context},
        )[0]
        return answer


def open_session(graph: bytes) -> onnxruntime.InferenceSession:
    """Open a graph for small, frequent calls; onnxruntime's own exceptions pass through.

    It uses one thread that never spins: a small net gains nothing from more, and a spinning pool
    takes CPU from the rest of the service.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4  # its warnings are not JSON log lines; failures raise
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
