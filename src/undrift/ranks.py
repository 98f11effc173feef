"""Several processes that learn one thing together, as `torchrun` starts them.

Every process (rank) holds the same graph and runs the same program. Each embeds its share of a
batch's nodes and sums its share of the rows; gradients and sums are added up. So all ranks know
the same at every moment, and with one rank nothing here does anything.
"""

import os
from collections.abc import Sequence

import torch
from torch import Tensor, distributed


def join(device: str = "cpu") -> None:
    """Meet the other ranks, if `torchrun` started this process. Each has a GPU of its own."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or distributed.is_initialized():
        return
    on_gpu = torch.device(device).type == "cuda"
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    distributed.init_process_group("nccl" if on_gpu else "gloo")


def leave() -> None:
    """Part from the other ranks."""
    if _together():
        distributed.destroy_process_group()


def world() -> int:
    """How many ranks there are."""
    return distributed.get_world_size() if _together() else 1


def rank() -> int:
    """The number of this one, from 0."""
    return distributed.get_rank() if _together() else 0


def share(count: int) -> slice:
    """Which of so many things are this rank's: a range; alone, all of them."""
    return _share(count, rank(), world())


def add_(*tensors: Tensor) -> None:
    """Put the sum over all ranks in the place of each tensor."""
    if world() > 1:
        for tensor in tensors:
            distributed.all_reduce(tensor)


def of_all(own: Tensor, count: int) -> Tensor:
    """The rows of all ranks, given this rank's; `add_gradients` takes their gradients on."""
    if world() == 1:
        return own
    sizes = [_share(count, r, world()) for r in range(world())]
    most = max(part.stop - part.start for part in sizes)
    padded = own.new_zeros(most, *own.shape[1:])
    padded[: own.shape[0]] = own.detach()
    every = [torch.empty_like(padded) for _ in sizes]
    distributed.all_gather(every, padded)
    rows = [part[: s.stop - s.start] for part, s in zip(every, sizes, strict=True)]
    return torch.cat(rows).requires_grad_()


def add_gradients(own: Tensor, every: Tensor, weights: Sequence[Tensor]) -> None:
    """After `backward` from the rows of all: the gradients of the weights that rows came from."""
    if every is own:
        return
    elsewhere = [weight.grad for weight in weights]
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    if every.grad is not None:
        own.backward(every.grad[share(every.shape[0])])
    for weight, more in zip(weights, elsewhere, strict=True):
        assert weight.grad is not None  # noqa: S101  # made above
        add_(weight.grad)
        if more is not None:
            weight.grad += more


def _together() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _share(count: int, rank: int, world: int) -> slice:
    return slice(count * rank // world, count * (rank + 1) // world)
