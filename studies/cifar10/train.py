"""Train a VGG with batch normalisation on CIFAR-10 and write its logits on the test set.

Network for ``--width w`` (3 x 3 convolutions without bias, batch norm, ReLU; M halves the side)::

    w - M - 2w - 2w - M - 4w - 4w - M - 8w - 8w - global maximum - linear(10)

Loss: cross-entropy, no label smoothing, no dropout. SGD with Nesterov momentum; the learning rate
rises linearly over the first fifth of the steps and falls linearly to zero. Augmentation: flips
and translations by up to 4 pixels.

Every epoch draws from its own generator, seeded by (seed, epoch): a resumed run repeats the run
that was never interrupted. Test accuracy is logged and chooses nothing: the last epoch is used.
"""

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

HERE = Path(__file__).resolve().parent
LOG = HERE / "training_log.csv"
LOGITS = HERE / "logits.npz"
COLUMNS = ("epoch", "lr", "train_loss", "test_accuracy", "test_log_loss", "seconds")

BATCH = 256
PEAK_LR = 0.3
WARM_UP = 0.2  # share of the steps
MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4  # on convolution and linear weights only
SHIFT = 4  # pixels
MEAN = (0.4914, 0.4822, 0.4465)  # of the training images, by channel
STD = (0.2470, 0.2435, 0.2616)


def network(width: int) -> nn.Sequential:
    """Return the untrained network."""
    layers: list[nn.Module] = []
    channels = 3
    w = width
    for step in (w, "M", 2 * w, 2 * w, "M", 4 * w, 4 * w, "M", 8 * w, 8 * w):
        if step == "M":
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [
            nn.Conv2d(channels, step, 3, padding=1, bias=False),
            nn.BatchNorm2d(step),
            nn.ReLU(inplace=True),
        ]
        channels = step
    layers += [nn.MaxPool2d(4), nn.Flatten(), nn.Linear(channels, len(fetch.CLASSES))]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


def optimizer_for(net: nn.Module) -> torch.optim.SGD:
    """Return SGD that decays weights but not biases and batch-norm parameters."""
    groups = [
        {"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in net.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    return torch.optim.SGD(groups, lr=PEAK_LR, momentum=MOMENTUM, nesterov=True)


def learning_rate(done: float) -> float:
    """Return the learning rate when the share ``done`` of all steps lies behind."""
    return PEAK_LR * min(done / WARM_UP, (1 - done) / (1 - WARM_UP))


def tensors() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return train images, train labels, test images, test labels; images scaled, channels last."""
    images, labels = fetch.load()
    fetch.verify(images, labels)
    scaled = (images.astype(np.float32) / 255 - np.float32(MEAN)) / np.float32(STD)
    # (n, 32, 32, 3) in memory seen as (n, 3, 32, 32) is what torch calls channels_last.
    x, y = torch.from_numpy(scaled).permute(0, 3, 1, 2), torch.from_numpy(labels).long()
    n = fetch.N_TRAIN
    return x[:n], y[:n], x[n:], y[n:]


def augment(x: Tensor, rng: torch.Generator) -> Tensor:
    """Return the images shifted by up to SHIFT pixels (mirrored edges), half of them flipped."""
    n, _, side, _ = x.shape
    padded = F.pad(x, (SHIFT,) * 4, mode="reflect").permute(0, 2, 3, 1)
    corner = torch.randint(0, 2 * SHIFT + 1, (2, n, 1), generator=rng)
    span = torch.arange(side).expand(n, side)
    flipped = torch.rand(n, 1, generator=rng) < 0.5
    rows = corner[0] + span
    columns = corner[1] + torch.where(flipped, side - 1 - span, span)
    picked = padded[torch.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]]
    return picked.permute(0, 3, 1, 2)


def batches(x: Tensor, y: Tensor, seed: int, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the epoch's augmented batches; the last incomplete batch is left out."""
    rng = torch.Generator().manual_seed(1_000_003 * seed + epoch)
    order = torch.randperm(len(x), generator=rng)
    for start in range(0, len(x) - BATCH + 1, BATCH):
        rows = order[start : start + BATCH]
        yield augment(x[rows], rng), y[rows]


def train_epoch(
    net: nn.Module, optimizer: torch.optim.SGD, data: Iterator, epoch: int, epochs: int, steps: int
) -> float:
    """Take the steps of one epoch and return the mean training loss."""
    net.train()
    total, started = 0.0, time.perf_counter()
    for step, (x, y) in enumerate(data):
        stop_if_asked()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate((epoch + (step + 0.5) / steps) / epochs)
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
        if step % 20 == 19:
            speed = BATCH * (step + 1) / (time.perf_counter() - started)
            mean = total / (step + 1)
            print(f"  epoch {epoch + 1} step {step + 1} loss {mean:.4f} {speed:.0f}/s", flush=True)
    return total / steps


@torch.inference_mode()
def logits_of(net: nn.Module, x: Tensor) -> Tensor:
    """Return the logits of images as they are."""
    net.eval()
    return torch.cat([net(part) for part in x.split(500)])


def stop_if_asked() -> None:
    """Exit between two steps after SIGTERM or SIGINT; the last epoch's checkpoint is whole."""
    if STOP:
        print(f"stopped by signal {STOP[0]}; run again to resume after the last epoch", flush=True)
        sys.exit(128 + STOP[0])


STOP: list[int] = []


def save(path: Path, state: dict) -> None:
    """Write a checkpoint so that the path never holds half of one."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    os.replace(partial, path)


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description="Train a VGG on CIFAR-10; resumes by itself.")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--width", type=int, default=24, help="channels of the first layer")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="delete a stored checkpoint first")
    return parser.parse_args()


def main() -> None:
    """Train, or resume, and write the log and the test logits."""
    args = arguments()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda number, frame: STOP.append(number))
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    x, y, x_test, y_test = tensors()
    net = network(args.width)
    optimizer = optimizer_for(net)
    history: list[dict] = []
    path = fetch.CACHE / f"vgg_w{args.width}_e{args.epochs}_s{args.seed}.pt"
    if args.fresh:
        path.unlink(missing_ok=True)
    if path.exists():
        state = torch.load(path, weights_only=True)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        history = state["history"]

    for epoch in range(len(history), args.epochs):
        started = time.perf_counter()
        data = batches(x, y, args.seed, epoch)
        loss = train_epoch(net, optimizer, data, epoch, args.epochs, len(x) // BATCH)
        logits = logits_of(net, x_test)
        line = (
            epoch + 1,
            round(optimizer.param_groups[0]["lr"], 6),
            round(loss, 5),
            (logits.argmax(1) == y_test).double().mean().item(),
            round(F.cross_entropy(logits, y_test).item(), 5),
            round(time.perf_counter() - started, 1),
        )
        history.append(dict(zip(COLUMNS, line, strict=True)))
        state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "history": history}
        save(path, state)
        write(LOG, history)
        print(history[-1], flush=True)

    np.savez_compressed(
        LOGITS, logits=logits_of(net, x_test).numpy(), labels=y_test.numpy().astype(np.uint8)
    )
    print(f"wrote {LOGITS.name}, {LOGITS.stat().st_size} bytes", flush=True)


if __name__ == "__main__":
    main()
