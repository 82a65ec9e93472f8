"""Add batches in children that are killed at random moments: ``killed.py FILE TIMES SEED``.

Prints as JSON which batches were reported as added, and how many kills there were. It is a program
of its own, so that one import serves all children.
"""

import json
import os
import random
import signal
import sys
import time

import numpy as np

from mcllo import Monitor

N_ROWS, N_CLASSES = 200, 4


def batch(number):
    rng = np.random.default_rng(number)
    probs = rng.dirichlet(np.ones(N_CLASSES), N_ROWS)
    y = (rng.random((N_ROWS, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return probs, y


def add_for_ever(path, out, first):
    number = first
    with Monitor.open(path) as monitor:
        while True:
            monitor.add(*batch(number), batch=str(number))
            os.write(out, f"{number}\n".encode())
            number += 1


def main(path, times, seed):
    rng, told, first = random.Random(seed), [], 0
    for _ in range(times):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            add_for_ever(path, write, first)
        os.close(write)
        with os.fdopen(read) as lines:
            wanted = rng.randrange(3)
            told += [int(lines.readline()) for _ in range(wanted)]
            time.sleep(rng.uniform(0.0, 0.05))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            told += [int(line) for line in lines.read().split()]
        first = (
            max(told, default=-1) + 1
        )  # a batch that is in without being told is ignored once
    print(json.dumps({"told": told, "times": times}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
