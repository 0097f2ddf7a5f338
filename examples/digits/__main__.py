"""Train on the UCI handwritten digits that scikit-learn ships: ``python -m examples.digits``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

import xformlib as xf
import xformlib.numpy as jnp
from examples.digits.model import init_adam, init_params, predict, train_step
from examples.digits.plot import save_plot

TEST_IMAGES = 360


def load(seed: int) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(images, labels) for training and for testing; images are (n, 64) floats in [0, 1]."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    images = (digits.data[order] / 16.0).astype(np.float32)
    labels = digits.target[order].astype(np.int32)
    train = images[TEST_IMAGES:], labels[TEST_IMAGES:]
    return train, (images[:TEST_IMAGES], labels[:TEST_IMAGES])


def train(epochs: int, batch: int, seed: int, *, quiet: bool = False) -> dict[str, Any]:
    """Train and test; returns the losses, the test accuracy and the predictions."""
    (images, labels), (test_images, test_labels) = load(seed)
    key, init_key = xf.random.split(xf.random.key(seed))
    params = init_params(init_key, [64, 128, 64, 10])
    state = init_adam(params)
    steps = len(labels) // batch
    losses: list[float] = []
    with tqdm(total=epochs * steps, disable=quiet, unit="step") as bar:
        for epoch in range(epochs):
            rate = 2e-3 * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
            order = np.asarray(xf.random.permutation(xf.random.fold_in(key, epoch), len(labels)))
            for i in range(steps):
                chosen = order[i * batch : (i + 1) * batch]
                params, state, value = train_step(params, state, images[chosen], labels[chosen], rate)
                losses.append(float(value))
                bar.update()
            bar.set_postfix(epoch=epoch + 1, loss=f"{losses[-1]:.4f}")
    predicted = np.asarray(predict(params, jnp.asarray(test_images)))
    accuracy = float(np.mean(predicted == test_labels))
    return {
        "losses": losses,
        "accuracy": accuracy,
        "images": test_images,
        "labels": test_labels,
        "predicted": predicted,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/digits.png"), help="where to write the picture")
    args = parser.parse_args()
    start = time.perf_counter()
    result = train(args.epochs, args.batch, args.seed)
    save_plot(result, args.out)
    print(f"test accuracy {result['accuracy']:.1%} after {time.perf_counter() - start:.1f} s; picture: {args.out}")


if __name__ == "__main__":
    main()
