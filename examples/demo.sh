#!/usr/bin/env bash
# The whole job on predictions of scikit-learn's digits: assess, fit and apply step by step, then
# `mcllo demo`, which compares all methods and writes the report.
set -euo pipefail
out=demo-output
classes=d0,d1,d2,d3,d4,d5,d6,d7,d8,d9

run() { printf '\n$ %s\n' "$*"; "$@"; }

run python examples/digits.py "$out"
run mcllo assess "$out/calibration.csv" --label digit --classes "$classes" --seed 0
run mcllo fit "$out/calibration.csv" --label digit --classes "$classes" -o "$out/model.json"
run mcllo apply "$out/model.json" "$out/holdout.csv" -o "$out/recalibrated.csv"
run mcllo assess "$out/recalibrated.csv" --label digit --classes "$classes" --seed 0
run mcllo demo "$out"
