"""A training epoch on CS-CL's base task: against PyG, and against its bare products."""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.measure import Ratio, interleaved
from benchmarks.stream import cs_stream
from undrift.encoders.architecture import Architecture
from undrift.encoders.encoder import Encoder, Head, batch_of
from undrift.encoders.training import Model, Training, fit
from undrift.learners.parts.backbone import columns_of
from undrift.streams.task import Task

EPOCHS = 10


def run() -> list[Ratio]:
    """The lines of this benchmark."""
    stream = cs_stream()
    task = stream.task(0)
    times = interleaved(
        {"ours": _ours(task), "pyg": _pyg(task), "products": products(task)}, repeats=7
    )
    ours, pyg, bare = (times[k] / EPOCHS * 1e3 for k in ("ours", "pyg", "products"))
    shape = f"{stream.name} base task, {task.graph}"
    return [
        Ratio(
            "epoch: PyG / ours",
            pyg / ours,
            f"{pyg:.1f} ms against {ours:.1f} ms per epoch; {shape}",
            budget=8,
            at_least=True,
        ),
        Ratio(
            "epoch: ours / its bare products",
            ours / bare,
            f"{ours:.1f} ms against {bare:.1f} ms",
            budget=2.5,
        ),
    ]


def _model(task: Task) -> Model:
    generator = torch.Generator().manual_seed(0)
    encoder = Encoder.create(Architecture(), task.graph.num_features, generator)
    return Model(encoder, Head.create(128, len(task.classes), generator))


def _ours(task: Task) -> Callable[[], object]:
    model, columns = _model(task), columns_of(task.graph, task.classes)

    def call() -> None:
        fit(
            model,
            task,
            columns,
            training=Training(epochs=EPOCHS),
            generator=torch.Generator().manual_seed(0),
        )

    return call


def _pyg(task: Task) -> Callable[[], object]:
    """The same GCN in PyG: edge_index, dense features, ReLU and dropout, Adam."""
    from torch_geometric.nn import GCNConv

    data, x = task.graph.to_pyg(), task.graph.features.to_dense()
    first, second = (GCNConv(a, 128, bias=False) for a in (x.shape[1], 128))
    head = torch.nn.Linear(128, len(task.classes))
    modules = torch.nn.ModuleList([first, second, head])
    optimiser = torch.optim.Adam(modules.parameters(), lr=1e-3)
    columns = columns_of(task.graph, task.classes)[task.train]
    weights = 1.0 / torch.bincount(columns)

    def call() -> None:
        for _ in range(EPOCHS):
            h = x
            for conv in (first, second):
                h = torch.nn.functional.dropout(conv(h, data.edge_index).relu(), 0.5)
            loss = torch.nn.functional.cross_entropy(head(h)[task.train], columns, weights)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return call


def products(task: Task) -> Callable[[], object]:
    """Every sparse product and GEMM of ten epochs, forward and backward, and nothing else."""
    model = _model(task)
    encoder, head = model.encoder, model.head
    batch = batch_of(encoder, task.graph, task.train.nonzero().flatten()).for_training()
    one, two = (hop.operator for hop in batch.hops)
    x, (w0, w1), phi = batch.features, encoder.weights, head.weight
    back = x.t()

    def like(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, generator=torch.Generator().manual_seed(1))

    z0, h0 = like(one.shape[1], 128), like(one.shape[0], 128)
    h1, g = like(two.shape[0], 128), like(two.shape[0], phi.shape[1])

    def call() -> None:
        for _ in range(EPOCHS):
            _ = x @ w0, one @ z0, h0 @ w1, two @ h0, h1 @ phi
            _ = h1.T @ g, g @ phi.T
            _ = two.t() @ h1, h0.T @ h0, h0 @ w1.T
            _ = one.t() @ h0, back @ z0

    return call
