"""The two networks whose logits `mcllo.datasets` ships, and how each is trained.

``large``, 64-256-256 channels, after K. Jordan, *94 % on CIFAR-10 in 3.29 seconds* (2024)::

    whiten(24) - [conv M norm act conv norm act] x 3 - global maximum - linear(10) / 9

    whiten   2 x 2 patches times the eigenvectors of their covariance, plus and minus; never trained
    conv     3 x 3 without bias, starts as the identity; norm has a bias and no scale; act is GELU

``small``, a VGG of width w = 24 (convolutions with norm and ReLU)::

    w - M - 2w - 2w - M - 4w - 4w - M - 8w - 8w - global maximum - linear(10)

Both: cross-entropy without label smoothing, no dropout, SGD with Nesterov momentum, a learning rate
that rises linearly and falls linearly to 0, flips and shifts. The large one sees the images as they
are, without weight decay, in its last epochs: it is to fit its training images closely, as networks
that are trained to the end do, and as the paper's overconfident one must have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

N_CLASSES = 10
WHITENED = 5_000  # images whose patches give the first layer
FLOOR = 5e-4  # added to the eigenvalues of the patches


@dataclass(frozen=True)
class Recipe:
    """How one network is built and trained."""

    build: Callable[[Tensor], nn.Sequential]
    groups: Callable[[nn.Sequential], list[dict]]
    epochs: int
    plain: int  # of these, at the end: no augmentation, no weight decay
    batch: int
    peak_lr: float
    warm_up: float  # share of the steps
    momentum: float
    shift: int  # pixels
    alternate: bool  # flip every image in every other epoch, instead of at random
    bias_epochs: int = (
        0  # how long the first layer's bias is trained; 0: like any other
    )
    more: int = 0  # epochs after these, plain too, the last layer's weights as the logits have them
    more_lr: float = 0.0

    def learning_rate(self, epoch: float) -> float:
        """Return the learning rate when so many epochs are done."""
        if epoch >= self.epochs:
            return (
                self.more_lr * (1 - (epoch - self.epochs) / self.more)
                if self.more
                else 0.0
            )
        done = epoch / self.epochs
        return self.peak_lr * min(done / self.warm_up, (1 - done) / (1 - self.warm_up))


def small(images: Tensor, width: int = 24) -> nn.Sequential:
    """Return the untrained small network."""
    layers: list[nn.Module] = []
    channels = images.shape[1]
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
    layers += [nn.MaxPool2d(4), nn.Flatten(), nn.Linear(channels, N_CLASSES)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


def small_groups(net: nn.Sequential) -> list[dict]:
    """Return the small network's parameters: weights decay, biases and norms do not."""
    return [
        {"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": 5e-4},
        {"params": [p for p in net.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]


class Scale(nn.Module):
    """Multiply by a constant."""

    def __init__(self, factor: float) -> None:
        """Keep the factor."""
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """Return the product."""
        return x * self.factor


def whitening(images: Tensor) -> nn.Conv2d:
    """Return the frozen first layer: every 2 x 2 patch in its own principal directions."""
    channels = images.shape[1]
    patches = (
        nn.functional.unfold(images[:WHITENED], 2)
        .transpose(1, 2)
        .reshape(-1, 4 * channels)
    )
    values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
    weight = (vectors / (values + FLOOR).sqrt()).T.reshape(-1, channels, 2, 2)
    layer = nn.Conv2d(channels, 2 * len(weight), 2)
    layer.weight.data = torch.cat([weight, -weight])
    layer.weight.requires_grad = False
    nn.init.zeros_(layer.bias)
    return layer


def norm(channels: int) -> nn.BatchNorm2d:
    """Return a batch norm whose scale is 1 and stays so."""
    layer = nn.BatchNorm2d(channels, eps=1e-12, momentum=0.4)
    layer.weight.requires_grad = False
    return layer


def convolution(before: int, after: int) -> nn.Conv2d:
    """Return a convolution that begins by passing its first channels on."""
    layer = nn.Conv2d(before, after, 3, padding=1, bias=False)
    nn.init.dirac_(layer.weight.data[:before])
    return layer


def large(images: Tensor, widths: tuple[int, ...] = (64, 256, 256)) -> nn.Sequential:
    """Return the untrained large network; the images give its first layer."""
    first = whitening(images)
    layers: list[nn.Module] = [first, nn.GELU()]
    channels = first.out_channels
    for width in widths:
        layers += [
            convolution(channels, width),
            nn.MaxPool2d(2),
            norm(width),
            nn.GELU(),
        ]
        layers += [convolution(width, width), norm(width), nn.GELU()]
        channels = width
    layers += [
        nn.MaxPool2d(3),
        nn.Flatten(),
        nn.Linear(channels, N_CLASSES, bias=False),
    ]
    layers.append(Scale(1 / 9))
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


def undivide(net: nn.Sequential) -> None:
    """Move the last constant into the weights before it: the same logits, faster steps."""
    last, scale = net[-2], net[-1]
    if isinstance(scale, Scale) and scale.factor != 1.0:
        with torch.no_grad():
            last.weight.mul_(scale.factor)
        scale.factor = 1.0


def large_groups(net: nn.Sequential) -> list[dict]:
    """Return the large network's parameters: its norms' biases learn 64 times as fast."""
    biases = [m.bias for m in net if isinstance(m, nn.BatchNorm2d)]
    others = [m.weight for m in net[1:] if isinstance(m, (nn.Conv2d, nn.Linear))]
    decay = 2e-3
    return [
        {"params": biases, "weight_decay": decay / 64, "speed": 64.0},
        {"params": [net[0].bias, *others], "weight_decay": decay},
    ]


RECIPES = {
    "large": Recipe(
        large,
        large_groups,
        epochs=18,
        plain=4,
        batch=500,
        peak_lr=0.22,
        warm_up=0.2,
        momentum=0.9,
        shift=2,
        alternate=True,
        bias_epochs=3,
        more=3,
        more_lr=0.05,
    ),
    "small": Recipe(
        small,
        small_groups,
        epochs=15,
        plain=0,
        batch=256,
        peak_lr=0.3,
        warm_up=0.2,
        momentum=0.9,
        shift=4,
        alternate=False,
    ),
}
