"""`TunedNetwork`: the strongest plain GNN that we can train, for the bound that keeps all data.

No encoder that methods share: layer norms and skips would be two more things to merge and to hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from undrift.encoders.adam import Adam
from undrift.encoders.architecture import Architecture
from undrift.encoders.divergence import Losses
from undrift.encoders.encoder import Encoder, Head, MiniBatch, linear, relu_dropout, whole_graph
from undrift.encoders.training import Training, _on_device, balancing
from undrift.graphs import Graph
from undrift.typing import Progress, silent

_LOOK = 5  # epochs between two looks at the validation nodes


@dataclass(frozen=True, eq=False)
class TunedNetwork:
    """Layers of `relu(norm(aggregate(h) W + h S))` with dropout, and a linear classifier.

    `encoder` holds the W, `skips` the S, `gains` and `shifts` are of the layer norms.
    """

    encoder: Encoder
    skips: tuple[Tensor, ...]
    gains: tuple[Tensor, ...]
    shifts: tuple[Tensor, ...]
    head: Head

    @classmethod
    def create(
        cls,
        architecture: Architecture,
        num_features: int,
        classes: int,
        generator: torch.Generator,
        device: str = "cpu",
    ) -> TunedNetwork:
        """Random weights, uniform by Glorot's rule; drawn on the CPU, so alike on any device."""
        encoder = Encoder.create(architecture, num_features, generator, device)
        skips = []
        for layer in encoder.layers:
            drawn = torch.rand(layer.inputs, layer.outputs, generator=generator)
            bound = (6 / (layer.inputs + layer.outputs)) ** 0.5
            skips.append(((2 * drawn - 1) * bound).to(device))
        gains = tuple(torch.ones(layer.outputs, device=device) for layer in encoder.layers)
        shifts = tuple(torch.zeros_like(gain) for gain in gains)
        head = Head.create(architecture.width, classes, generator, device)
        return cls(encoder, tuple(skips), gains, shifts, head)

    @property
    def parameters(self) -> tuple[Tensor, ...]:
        """Everything that is trained."""
        head = self.head.weight, self.head.bias
        return (*self.encoder.weights, *self.skips, *self.gains, *self.shifts, *head)

    def with_parameters(self, parameters: tuple[Tensor, ...]) -> TunedNetwork:
        """The same shape with other parameters: what `parameters` took apart."""
        n = len(self.skips)
        parts = [parameters[k * n : (k + 1) * n] for k in range(4)]
        encoder = Encoder(self.encoder.architecture, parts[0])
        return TunedNetwork(encoder, parts[1], parts[2], parts[3], Head(*parameters[4 * n :]))

    def double(self) -> TunedNetwork:
        """The same in float64."""
        return self.with_parameters(tuple(p.double() for p in self.parameters))

    def embed(self, graph: Graph) -> Tensor:
        """What the classifier reads, of every node, without dropout."""
        with torch.no_grad():
            return self.forward(whole_graph(self.encoder, graph))

    def logits(self, graph: Graph) -> Tensor:
        """A logit per node and class, without dropout."""
        return self.head(self.embed(graph))

    def forward(self, batch: MiniBatch, generator: torch.Generator | None = None) -> Tensor:
        """What the classifier reads of the batch's nodes; dropout only with a generator."""
        h, at = batch.features, 0
        rate = self.encoder.architecture.dropout
        parts = zip(self.encoder.weights, self.skips, self.gains, self.shifts, strict=True)
        for layer, (weight, skip, gain, shift) in zip(self.encoder.layers, parts, strict=True):
            z = linear(layer, batch.hops[at : at + layer.hops], h, weight) + h @ skip
            z = functional.layer_norm(z, (layer.outputs,), gain, shift)
            h, at = relu_dropout(z, rate, generator), at + layer.hops
        return h.to_dense()


def fit_tuned(
    network: TunedNetwork,
    graph: Graph,
    *,
    train: Tensor,
    val: Tensor,
    columns: Tensor,
    training: Training,
    generator: torch.Generator,
    progress: Progress = silent,
) -> TunedNetwork:
    """The network after training on the whole graph; the best epoch by class accuracy on `val`.

    Full batch. `training.patience` stops after so many epochs without a better one; without
    validation nodes the last epoch stands.
    """
    live = tuple(p.detach().clone().requires_grad_() for p in network.parameters)
    model = network.with_parameters(live)
    optimiser = Adam(live, lr=training.lr, weight_decay=training.weight_decay)
    weights = balancing(columns[train], network.head) if training.class_weighted else None
    noise = _on_device(generator, train.device)
    losses = Losses("training", f"the learning rate (lr; it was {training.lr:g})")
    batch = whole_graph(network.encoder, graph).for_training()
    best, found, since = -1.0, live, 0
    progress("train", 0, training.epochs)
    for epoch in range(training.epochs):
        logits = model.head(model.forward(batch, noise)[train])
        optimiser.zero_grad()
        loss = functional.cross_entropy(logits, columns[train], weights)
        loss.backward()
        optimiser.step()
        losses.add(loss, epoch)
        progress("train", epoch + 1, training.epochs)
        if val.numel() and (epoch + 1) % _LOOK == 0:
            with torch.no_grad():
                score = _class_accuracy(model.head(model.forward(batch)[val]), columns[val])
            since = 0 if score > best else since + _LOOK
            if score > best:
                best, found = score, tuple(p.detach().clone() for p in live)
            if training.patience is not None and since >= training.patience:
                break
    losses.check(model.logits(graph)[train])
    kept = found if best >= 0 else live
    return network.with_parameters(tuple(p.detach().clone() for p in kept))


def _class_accuracy(logits: Tensor, columns: Tensor) -> float:
    """The mean over classes of the share of their nodes that is right."""
    counts = columns.bincount(minlength=logits.shape[1])
    right = columns[logits.argmax(dim=1) == columns].bincount(minlength=logits.shape[1])
    there = counts > 0
    return float((right[there] / counts[there]).mean())
