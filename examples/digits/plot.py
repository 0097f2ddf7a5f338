"""The picture: loss curve and a grid of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

ROWS, COLUMNS = 6, 10


def save_plot(result: dict[str, Any], path: Path) -> None:
    """Write a PNG with the training loss and ``ROWS * COLUMNS`` test images with their predictions (wrong ones in red)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = plt.figure(figsize=(12, 6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.3])
    _loss_curve(left.subplots(), result["losses"])
    right.suptitle(f"test accuracy {result['accuracy']:.1%}")
    for i, axes in enumerate(right.subplots(ROWS, COLUMNS).flat):
        guess, label = result["predicted"][i], result["labels"][i]
        axes.imshow(result["images"][i].reshape(8, 8), cmap="gray_r")
        axes.set_title(str(guess), color="black" if guess == label else "red", fontsize=9, pad=2)
        axes.axis("off")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _loss_curve(axes: Any, losses: list[float]) -> None:
    window = 20
    smooth = np.convolve(losses, np.ones(window) / window, mode="valid")
    axes.semilogy(losses, color="0.8", label="each step")
    axes.semilogy(np.arange(window - 1, len(losses)), smooth, label=f"mean of {window} steps")
    axes.set(xlabel="step", ylabel="loss", title="training loss")
    axes.legend()
