"""Published language models and GPUs: parameters, FLOPs per token and peak FLOPs per second.

Training takes about 6 FLOPs for each parameter and token, two for the forward and four for the
backward pass (Kaplan et al., "Scaling Laws for Neural Language Models", arXiv 2001.08361, 2020,
section 2.1; Hoffmann et al., "Training Compute-Optimal Large Language Models", arXiv 2203.15556,
2022, count alike). Reading a prompt takes the forward pass alone. Attention over long contexts
would add to this and is left out. In a mixture of experts only a token's active parameters count.
"""

from collections.abc import Mapping
from types import MappingProxyType

TRAINING_FLOP = 6.0  # per parameter and token
READING_FLOP = 2.0  # the same, for a prompt

# Share of the peak that is used (model FLOPs utilisation, MFU: Chowdhery et al., "PaLM",
# arXiv 2204.02311, 2022, who reach 0.46 and report 0.21 to 0.33 for three earlier models). Llama
# 3 405B reached 0.38 to 0.43 on up to 16,384 H100 (Grattafiori et al., "The Llama 3 Herd of
# Models", arXiv 2407.21783, 2024, table 4).
USUAL_MFU = 0.4

# Parameters, input and output embeddings included.
PARAMETERS: Mapping[str, float] = MappingProxyType({
    "gpt-3": 174.6e9,  # Brown et al., arXiv 2005.14165, 2020, table D.1
    # From the layers, widths and vocabulary in Grattafiori et al., arXiv 2407.21783, 2024, table 3.
    "llama-3.1-8b": 8.03e9,
    "llama-3.1-70b": 70.55e9,
    "llama-3.1-405b": 405.9e9,
    # Qwen Team, "Qwen3 Technical Report", arXiv 2505.09388, 2025, and the models' cards.
    "qwen3-14b": 14.8e9,
    "qwen3-32b": 32.8e9,
})  # fmt: skip

# Dense BF16 on tensor cores, from NVIDIA's data sheets; half of a value given with sparsity only.
# GPUs without BF16 (P4, P100, V100, T4, Quadro RTX 6000) are left out.
PEAK_BF16_FLOP_PER_S: Mapping[str, float] = MappingProxyType({
    "a10": 125e12,
    "a10g": 70e12,
    "a40": 149.7e12,
    "a100-pcie-40gb": 312e12,
    "a100-pcie-80gb": 312e12,
    "a100-sxm": 312e12,
    "l4": 121e12,
    "l40": 181.05e12,
    "l40s": 362.05e12,
    "h100-pcie": 756.5e12,
    "h100-nvl": 835.5e12,
    "h100-sxm": 989.5e12,
    "h200-nvl": 835.5e12,
    "h200": 989.5e12,
    "b200": 2250e12,
})  # fmt: skip


def training_s(parameters: float, tokens: float, flop_per_s: float) -> float:
    """Return the seconds that training takes at `flop_per_s` useful FLOPs per second."""
    return TRAINING_FLOP * parameters * tokens / flop_per_s


def useful_flop_per_s(gpu: str, gpus: int, mfu: float) -> float:
    """Return the useful FLOPs per second of `gpus` GPUs, whose peak must be known."""
    return gpus * PEAK_BF16_FLOP_PER_S[gpu] * mfu


def read_per_s(parameters: float, flop_per_s: float) -> float:
    """Return the prompt tokens that are read per second."""
    return flop_per_s / (READING_FLOP * parameters)
