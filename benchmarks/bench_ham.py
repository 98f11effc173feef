"""HAM, and ADR as a whole, over all tasks of CS-CL: against their BLAS work, timed alone."""

import torch
from torch import Tensor

from benchmarks.bench_epoch import EPOCHS, products
from benchmarks.measure import Ratio, timed
from benchmarks.stream import cs_stream
from undrift.analytic.buffers import used_again
from undrift.analytic.cholesky import cholesky_, cholesky_solve
from undrift.encoders.architecture import Architecture
from undrift.encoders.encoder import Encoder
from undrift.learners.adr import Adr
from undrift.learners.parts.backbone import Backbone
from undrift.merging.ham import Ham
from undrift.merging.merger import MergeSettings
from undrift.sparse import Csr
from undrift.streams.stream import TaskStream
from undrift.streams.task import Task

BLOCK = 256


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    stream = cs_stream()
    encoder = Encoder.create(Architecture(), stream.graph.num_features, _generator())
    whole = timed(lambda: _ham(stream, encoder))
    grams, factors = bare_work(stream, encoder)
    phases = _training_seconds(stream)
    epochs = Backbone().epochs / EPOCHS * sum(min(_products(task)) for task in stream)
    adr, floor = sum(phases.values()), epochs + grams + factors
    d = stream.graph.num_features
    torchs, taken = lapacks(d)
    return [
        Ratio(
            "HAM, all tasks: ours / its BLAS work",
            whole / (grams + factors),
            f"{whole:.1f} s against {grams:.1f} s of Gram products and {factors:.1f} s of "
            f"Cholesky and triangular solves; {stream.name}",
            budget=1.5,
        ),
        Ratio(
            "ADR, all tasks: HAM / training",
            phases["merge"] / phases["adapt"],
            f"{phases['merge']:.1f} s against {phases['adapt']:.1f} s in one run (the first "
            "prototype: 22 s against 28 s)",
        ),
        Ratio(
            "ADR, all tasks, exams among them: ours / its BLAS work",
            adr / floor,
            f"{adr:.1f} s against {epochs:.1f} s of products of the epochs, {grams:.1f} s of Gram "
            f"products and {factors:.1f} s of Cholesky and triangular solves: {floor:.1f} s",
            budget=1.5,
        ),
        Ratio(
            "Cholesky: the LAPACK of torch / the one taken",
            torchs / taken,
            f"{torchs:.2f} s against {taken:.2f} s, {d:,} columns",
            budget=0.95,
            at_least=True,
        ),
    ]


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@used_again()
def _ham(stream: TaskStream, encoder: Encoder) -> None:
    ham = Ham.empty(encoder, MergeSettings(gamma=1.0))
    for task in stream:
        ham = ham.add(encoder.trace(task.graph, task.train.nonzero().flatten()), encoder.weights)
        ham.merge()


def bare_work(stream: TaskStream, encoder: Encoder) -> tuple[float, float]:
    """Seconds of the Gram products and of the factorisations, with their inputs laid ready.

    Of columns that were seen by then; in a Gram of sparse rows the rarer column is read.
    """
    grams = factors = 0.0
    d = stream.graph.num_features
    gram = torch.eye(d, dtype=torch.float64)
    counts = torch.zeros(d, dtype=torch.int64)
    for task in stream:
        rows = encoder.trace(task.graph, task.train.nonzero().flatten())[0]
        rows = rows.double()
        if isinstance(rows, Csr) and rows.nnz * 7 < rows.shape[0] * d:
            counts += torch.bincount(rows.indices, minlength=d)
            grams += _sparse_gram(gram, rows)
        else:
            counts += 1
            dense = rows.to_dense()
            grams += timed(lambda dense=dense: gram.addmm_(dense.T, dense))
        seen = int((counts > 0).sum())
        system = gram[:seen, :seen].clone().mT  # how long it takes depends on the size alone
        system.diagonal().add_(1.0)
        right = torch.randn(seen, 128, dtype=torch.float64, generator=_generator())
        factors += timed(lambda system=system, right=right: _solve(system, right))
    return grams, factors


def _sparse_gram(gram: Tensor, rows: Csr) -> float:
    """Products of the lower blocks only; slices and dense blocks are made outside the clock."""
    d, seconds = gram.shape[0], 0.0
    order = torch.bincount(rows.indices, minlength=d).argsort(descending=True, stable=True)
    columns = rows.t()[order]
    for j in range(0, d, BLOCK):
        stop = min(j + BLOCK, d)
        block = columns[j:stop].to_dense().T.contiguous()
        under = columns[j:]
        seconds += timed(lambda j=j, stop=stop, u=under, b=block: _add(gram, j, stop, u, b))
    return seconds


def _add(gram: Tensor, j: int, stop: int, under: Csr, block: Tensor) -> None:
    gram[j:, j:stop] += under @ block


def _solve(system: Tensor, right: Tensor) -> None:
    cholesky_(system)
    cholesky_solve(system, right)


def lapacks(d: int) -> tuple[float, float]:
    """Seconds of a Cholesky factorisation by torch, and by whatever of the two is taken here."""
    rows = torch.randn(d // 2, d, dtype=torch.float64, generator=_generator())
    gram = rows.T @ rows / d + torch.eye(d, dtype=torch.float64)
    info = torch.empty((), dtype=torch.int32)
    systems = [gram.clone().mT for _ in range(4)]
    times = [
        (
            timed(lambda a=a: torch.linalg.cholesky_ex(a, out=(a, info))),
            timed(lambda b=b: cholesky_(b)),
        )
        for a, b in zip(systems[:2], systems[2:], strict=True)
    ]
    return min(one for one, _ in times), min(other for _, other in times)


def _products(task: Task) -> list[float]:
    """Seconds of the products of ten epochs, three times."""
    call = products(task)
    return [timed(call) for _ in range(3)]


def _training_seconds(stream: TaskStream) -> dict[str, float]:
    from undrift.evaluation.loop import evaluate

    return dict(evaluate(Adr(), stream).seconds)
