"""ADR on CS-CL on a CUDA GPU and on the CPU of the same machine: accuracy and seconds."""

import torch

from benchmarks.bench_grid import grid
from benchmarks.measure import Ratio, timed
from benchmarks.stream import cs_stream
from undrift.evaluation.loop import Evaluation, evaluate
from undrift.learners.adr import Adr


def run() -> list[Ratio]:
    """The lines of this benchmark; none without a GPU."""
    if not torch.cuda.is_available():
        return []
    stream = cs_stream()
    evaluate(Adr(device="cuda"), stream)  # loads the libraries
    gpu, cpu = (evaluate(Adr(device=device), stream) for device in ("cuda", "cpu"))
    gap = abs(gpu.by_class.a_f - cpu.by_class.a_f)
    seconds = [sum(e.seconds.values()) for e in (cpu, gpu)]
    search = timed(lambda: grid(stream, Adr.grid, "cuda"))
    return [
        Ratio("CUDA: points of class a_f away from the CPU", gap, _words(gpu, cpu), budget=1.0),
        Ratio(
            "CUDA: seconds on the CPU / on the GPU",
            seconds[0] / seconds[1],
            f"{seconds[0]:.1f} s on {torch.get_num_threads()} CPU threads, {seconds[1]:.1f} s on "
            f"{torch.cuda.get_device_name()}",
        ),
        Ratio(
            "CUDA: ADR's grid / one run (alpha 1)",
            search / seconds[1],
            f"{search:.1f} s for 28 settings against {seconds[1]:.1f} s",
            budget=3.0,
        ),
    ]


def _words(gpu: Evaluation, cpu: Evaluation) -> str:
    parts = []
    for name, e in (("GPU", gpu), ("CPU", cpu)):
        phases = ", ".join(f"{phase} {s:.2f} s" for phase, s in e.seconds.items())
        parts.append(f"{name}: a_avg {e.by_class.a_avg:.2f}, a_f {e.by_class.a_f:.2f}; {phases}")
    return "\n".join(parts)
