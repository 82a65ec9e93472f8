"""Train a VGG on CIFAR-10 and write its logits on the test set; `networks` has the two of them.

Every epoch draws from its own generator, seeded by (seed, epoch): a resumed run repeats the run
that was never interrupted. Test accuracy is logged and chooses nothing: the last epoch is used.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..pages import write
from . import fetch
from .networks import RECIPES, Recipe, undivide

HERE = Path(__file__).resolve().parent
COLUMNS = ("epoch", "lr", "train_loss", "test_accuracy", "test_log_loss", "seconds")
MEAN = (0.4914, 0.4822, 0.4465)  # of the training images, by channel
STD = (0.2470, 0.2435, 0.2616)


def tensors() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return train images, train labels, test images, test labels; images scaled, channels last."""
    images, labels = fetch.load()
    fetch.verify(images, labels)
    scaled = (images.astype(np.float32) / 255 - np.float32(MEAN)) / np.float32(STD)
    # (n, 32, 32, 3) in memory seen as (n, 3, 32, 32) is what torch calls channels_last.
    x, y = torch.from_numpy(scaled).permute(0, 3, 1, 2), torch.from_numpy(labels).long()
    n = fetch.N_TRAIN
    return x[:n], y[:n], x[n:], y[n:]


def augment(
    x: Tensor, shift: int, flipped: Tensor | None, rng: torch.Generator
) -> Tensor:
    """Return the images shifted (mirrored edges), and those `flipped`, or else half of them."""
    n, _, side, _ = x.shape
    padded = F.pad(x, (shift,) * 4, mode="reflect").permute(0, 2, 3, 1)
    corner = torch.randint(0, 2 * shift + 1, (2, n, 1), generator=rng)
    span = torch.arange(side).expand(n, side)
    if flipped is None:
        flipped = torch.rand(n, 1, generator=rng) < 0.5
    rows = corner[0] + span
    columns = corner[1] + torch.where(flipped, side - 1 - span, span)
    picked = padded[
        torch.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]
    ]
    return picked.permute(0, 3, 1, 2)


def batches(
    x: Tensor, y: Tensor, recipe: Recipe, seed: int, epoch: int, plain: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the epoch's batches; the last incomplete batch is left out."""
    rng = torch.Generator().manual_seed(1_000_003 * seed + epoch)
    order = torch.randperm(len(x), generator=rng)
    coins = torch.rand(len(x), 1, generator=torch.Generator().manual_seed(seed)) < 0.5
    for start in range(0, len(x) - recipe.batch + 1, recipe.batch):
        rows = order[start : start + recipe.batch]
        flipped = coins[rows] ^ bool(epoch % 2) if recipe.alternate else None
        yield (
            x[rows] if plain else augment(x[rows], recipe.shift, flipped, rng),
            y[rows],
        )


def train_epoch(
    net: nn.Sequential,
    optimizer: torch.optim.SGD,
    data: Iterator,
    recipe: Recipe,
    epoch: int,
    steps: int,
) -> float:
    """Take the steps of one epoch and return the mean training loss."""
    net.train()
    if recipe.bias_epochs:
        net[0].bias.requires_grad = epoch < recipe.bias_epochs
    total, started = 0.0, time.perf_counter()
    for step, (x, y) in enumerate(data):
        stop_if_asked()
        rate = recipe.learning_rate(epoch + (step + 0.5) / steps)
        for group in optimizer.param_groups:
            group["lr"] = rate * group.get("speed", 1.0)
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
        if step % 20 == 19:
            speed = recipe.batch * (step + 1) / (time.perf_counter() - started)
            mean = total / (step + 1)
            print(
                f"  epoch {epoch + 1} step {step + 1} loss {mean:.4f} {speed:.0f}/s",
                flush=True,
            )
    return total / steps


@torch.inference_mode()
def logits_of(net: nn.Module, x: Tensor) -> Tensor:
    """Return the logits of images as they are."""
    net.eval()
    return torch.cat([net(part) for part in x.split(500)])


def stop_if_asked() -> None:
    """Exit between two steps after SIGTERM or SIGINT; the last epoch's checkpoint is whole."""
    if STOP:
        print(
            f"stopped by signal {STOP[0]}; run again to resume after the last epoch",
            flush=True,
        )
        sys.exit(128 + STOP[0])


STOP: list[int] = []


def save(path: Path, state: dict) -> None:
    """Write a checkpoint so that the path never holds half of one."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    os.replace(partial, path)


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description="Train a VGG on CIFAR-10; resumes by itself."
    )
    parser.add_argument("--network", choices=sorted(RECIPES), default="large")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--fresh", action="store_true", help="delete a stored checkpoint first"
    )
    return parser.parse_args()


def main() -> None:
    """Train, or resume, and write the log and the test logits."""
    args = arguments()
    recipe = RECIPES[args.network]
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda number, frame: STOP.append(number))
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    x, y, x_test, y_test = tensors()
    net = recipe.build(x)
    groups = recipe.groups(net)
    optimizer = torch.optim.SGD(
        groups, lr=recipe.peak_lr, momentum=recipe.momentum, nesterov=True
    )
    history: list[dict] = []
    path = fetch.CACHE / f"{args.network}_e{recipe.epochs}_s{args.seed}.pt"
    log, out = (
        HERE / f"training_log_{args.network}.csv",
        HERE / f"logits_{args.network}.npz",
    )
    if args.fresh:
        path.unlink(missing_ok=True)
    if path.exists():
        state = torch.load(path, weights_only=True)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        history = state["history"]
        if len(history) > recipe.epochs:
            net[-1].factor = 1.0  # its weights are kept undivided

    for epoch in range(len(history), recipe.epochs + recipe.more):
        started = time.perf_counter()
        if epoch == recipe.epochs:
            undivide(net)
            optimizer.state.clear()
        plain = epoch >= recipe.epochs - recipe.plain
        if plain:
            for group in optimizer.param_groups:
                group["weight_decay"] = 0.0
        data = batches(x, y, recipe, args.seed, epoch, plain)
        loss = train_epoch(net, optimizer, data, recipe, epoch, len(x) // recipe.batch)
        logits = logits_of(net, x_test)
        line = (
            epoch + 1,
            round(recipe.learning_rate(epoch + 0.999), 6),
            round(loss, 5),
            (logits.argmax(1) == y_test).double().mean().item(),
            round(F.cross_entropy(logits, y_test).item(), 5),
            round(time.perf_counter() - started, 1),
        )
        history.append(dict(zip(COLUMNS, line, strict=True)))
        state = {
            "net": net.state_dict(),
            "optimizer": optimizer.state_dict(),
            "history": history,
        }
        save(path, state)
        write(log, history)
        print(history[-1], flush=True)

    np.savez_compressed(
        out,
        logits=logits_of(net, x_test).numpy(),
        labels=y_test.numpy().astype(np.uint8),
    )
    print(f"wrote {out.name}, {out.stat().st_size} bytes", flush=True)


if __name__ == "__main__":
    main()
