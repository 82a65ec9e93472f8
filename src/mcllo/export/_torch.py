"""The target "torch": one file with an ``nn.Module``, whose weights can be trained further.

Weights, shifts and values of functions are parameters, edges and places are buffers; all are
float64 unless the module is moved (``.float()``). Rows come as any floating type and leave as the
same one. The forward pass is straight-line code, so that ``torch.jit.script`` and ``torch.export``
take it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._version import __version__
from ._lines import Language
from ._programs import Program, ProgramStep, refuse_trees

TRAINABLE_ARGUMENTS = {"weight", "shift", "table", "value"}
"""What gradients reach; the rest says where."""
TORCH = Language({}, "{name} = {value}", 'float("nan")', "True", "False", repr)

FILE = '''"""Recalibrated class probabilities: {method}, fitted and written by mcllo {version}.

``Calibration()`` is a module: {what} of shape (..., {size}) in, recalibrated
probabilities out, classes in the order of ``CLASSES``. Its parameters can be trained further.
"""

import torch
from torch import Tensor, nn

CLASSES = {classes}


class Calibration(nn.Module):
    """The fitted map."""

    def __init__(self) -> None:
        super().__init__()
{numbers}

    def forward(self, rows: Tensor) -> Tensor:
        """Return recalibrated probabilities, of the dtype of the rows."""
        v0 = rows.to(self.kind.dtype)
{body}
        return {last}.to(rows.dtype)
'''


def write_torch(program: Program) -> str:
    """Return the file's text."""
    refuse_trees(program)
    numbers = ['self.register_buffer("kind", torch.zeros((), dtype=torch.float64))']
    body: list[str] = []
    for k, step in enumerate(program.steps[1:], start=1):
        numbers += _numbers(k, step)
        body += RULES[step.op](f"v{k}", [f"v{of}" for of in step.of], f"_{k}", step)
    indent = " " * 8
    return FILE.format(
        method=program.method,
        version=__version__,
        what="probabilities" if program.input == "probs" else "logits",
        size=len(program.classes),
        classes=TORCH.literal(program.classes),
        numbers="\n".join(indent + line for line in numbers),
        body="\n".join(indent + line for line in body),
        last=f"v{len(program.steps) - 1}",
    )


def _numbers(k: int, step: ProgramStep) -> list[str]:
    """Return the lines that register what a step carries."""
    lines = []
    for name, value in step.numbers.items():
        arrays: dict[str, Any] = {}
        if isinstance(value, np.ndarray):
            arrays[f"{name}_{k}"] = value
        elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            # of each class its own length: they do not fit into one tensor
            for j, array in enumerate(value):
                arrays[f"{name}_{k}_{j}"] = array
        elif name in ("index", "present"):
            tensor = f"torch.tensor({TORCH.literal(value)}, dtype=torch.int64)"
            lines.append(f'self.register_buffer("{name}_{k}", {tensor})')
        for label, array in arrays.items():
            tensor = f"torch.tensor({TORCH.literal(array)}, dtype=torch.float64)"
            if name in TRAINABLE_ARGUMENTS:
                lines.append(f"self.{label} = nn.Parameter({tensor})")
            else:
                lines.append(f'self.register_buffer("{label}", {tensor})')
    return lines


def _one(template: str) -> Any:
    """Return the rule of a step that is one expression of x, y, the numbers' mark k and numbers."""

    def rule(name: str, of: list[str], k: str, step: ProgramStep) -> list[str]:
        numbers = {}
        for argument, value in step.numbers.items():
            if isinstance(value, (int, float)):
                numbers[argument] = repr(value)
        expression = template.format(x=of[0], k=k, **numbers)
        return [f"{name} = {expression}"]

    return rule


def _unit(name: str, of: list[str], k: str, step: ProgramStep) -> list[str]:
    x = of[0]
    # each row decides for itself, without a branch that tracing would fix
    tolerance = step.numbers["tolerance"]
    if tolerance < 0.0:
        return [f"{name} = {x} / {x}.sum(-1, keepdim=True)"]
    return [
        f"{name}_sum = {x}.sum(-1, keepdim=True)",
        f"{name} = {x} / torch.where(({name}_sum - 1.0).abs() > {tolerance!r}, {name}_sum, "
        f"torch.ones_like({name}_sum))",
    ]


def _floor(name: str, of: list[str], k: str, step: ProgramStep) -> list[str]:
    x = of[0]
    floor = step.numbers["floor"]
    low = f"{name}_low = {x} < {floor!r}"
    if not step.numbers["every"]:
        low += f"\n        {name}_low = {name}_low & ({x} == 0.0).any(-1, keepdim=True)"
    return [
        low,
        f"{name}_up = torch.where({name}_low, torch.full_like({x}, {floor!r}), {x})",
        f"{name}_sum = {name}_up.sum(-1, keepdim=True)",
        f"{name} = {name}_up / torch.where({name}_low.any(-1, keepdim=True), {name}_sum, "
        f"torch.ones_like({name}_sum))",
    ]


def _add(name: str, of: list[str], k: str, step: ProgramStep) -> list[str]:
    return [f"{name} = {' + '.join(of)}"]


def _steps(name: str, of: list[str], k: str, step: ProgramStep) -> list[str]:
    x = of[0]
    lines = []
    columns = []
    for j, table in enumerate(step.numbers["table"]):
        own = f"{name}_{j}"
        lines += [
            f"{own}_x = {x}[..., {j}].contiguous()",
            f"{own} = self.table{k}_{j}[torch.bucketize({own}_x, self.edges{k}_{j})]",
        ]
        if np.isnan(table).any():
            lines.append(f"{own} = torch.where(torch.isnan({own}), {own}_x, {own})")
        columns.append(own)
    return [*lines, f"{name} = torch.stack([{', '.join(columns)}], dim=-1)"]


def _lines(name: str, of: list[str], k: str, step: ProgramStep) -> list[str]:
    x = of[0]
    lines = []
    columns = []
    for j, at in enumerate(step.numbers["at"]):
        own = f"{name}_{j}"
        place = f"self.at{k}_{j}"
        height = f"self.value{k}_{j}"
        columns.append(own)
        if len(at) == 1:
            lines.append(f"{own} = {height}[0].expand({x}[..., {j}].shape)")
            continue
        lines += [
            f"{own}_x = {x}[..., {j}].clamp({float(at[0])!r}, {float(at[-1])!r}).contiguous()",
            f"{own}_k = torch.bucketize({own}_x, {place}, right=True) - 1",
            f"{own}_k = {own}_k.clamp(0, {len(at) - 2})",
            f"{own}_part = {own}_x - {place}[{own}_k]",
            f"{own}_part = {own}_part / ({place}[{own}_k + 1] - {place}[{own}_k])",
            f"{own} = {height}[{own}_k]",
            f"{own} = {own} + ({height}[{own}_k + 1] - {own}) * {own}_part",
        ]
    return [*lines, f"{name} = torch.stack([{', '.join(columns)}], dim=-1)"]


def _share(name: str, of: list[str], k: str, step: ProgramStep) -> list[str]:
    q, p = of
    present = step.numbers["present"]
    absent = [j for j in range(step.size) if j not in present]
    kept = f"{name}_kept"
    shared = (
        f"{kept}.sum(-1, keepdim=True)" if absent else f"torch.ones_like({name}_sum)"
    )
    instead = kept
    if step.numbers["even"]:
        instead = f"({name}_part / {len(present)!r}).expand_as({q})"
    lines = [
        f"{name}_sum = {q}.sum(-1, keepdim=True)",
        f"{kept} = {p}.index_select(-1, self.present{k})",
        f"{name}_part = {shared}",
        f"{name}_some = {name}_sum > {step.numbers['least']!r}",
        f"{name}_safe = torch.where({name}_some, {name}_sum, torch.ones_like({name}_sum))",
        f"{name}_own = torch.where({name}_some, {q} / {name}_safe * {name}_part, {instead})",
    ]
    if not absent:
        return [*lines, f"{name} = {name}_own"]
    columns = []
    for j in range(step.size):
        if j in present:
            columns.append(f"{name}_own[..., {present.index(j)}]")
        else:
            columns.append(f"{p}[..., {j}]")
    return [*lines, f"{name} = torch.stack([{', '.join(columns)}], dim=-1)"]


def _runs(name: str, of: list[str], k: str, step: ProgramStep) -> list[str]:
    x = of[0]
    c = step.size
    pad = "nn.functional.pad"
    lines = [f"{name}_ranked = torch.sort({x}, dim=-1)[0]"]
    for end, theta in (("up", "low"), ("down", "high")):
        eta = f"{name}_ranked.unsqueeze(-2) * self.{theta}{k}.unsqueeze(-1)"
        lines += [
            f"{name}_{end} = torch.softmax({eta}, dim=-1).cumsum(-1)",
            f"{name}_{end} = {pad}({name}_{end} / {name}_{end}[..., {c - 1}:], [1, 0])",
        ]
    up = f"{name}_up"
    down = f"{name}_down"
    node = f"self.node{k}.unsqueeze(-1)"
    if step.numbers["output"] == "pignistic":
        lines += [
            f"{name}_sure = torch.zeros_like({x})",
            f"{name}_change = {pad}(torch.zeros_like({x}), [0, 1])",
            f"for d in range({c}):",
            f"    top = torch.minimum({up}[..., 1 : {c + 1} - d], {down}[..., d + 1 : {c + 1}])",
            f"    bottom = torch.maximum({up}[..., : {c} - d], {down}[..., d:{c}])",
            f"    mass = ((top - bottom).clamp(min=0.0) * {node}).sum(-2)",
            "    if d == 0:",
            f"        {name}_sure = mass",
            "    part = mass / float(d + 1)",
            f"    part = {pad}(part, [0, d + 1]) - {pad}(part, [d + 1, 0])",
            f"    {name}_change = {name}_change + part",
            f"{name}_all = torch.maximum({name}_change[..., :{c}].cumsum(-1), {name}_sure)",
        ]
    else:
        lines.append(
            f"{name}_all = (({up}[..., 1:] - {down}[..., :-1]) * {node}).sum(-2)"
        )
    return [
        *lines,
        f"{name}_same = ({x}.unsqueeze(-1) == {name}_ranked.unsqueeze(-2)).to({x}.dtype)",
        f"{name}_own = ({name}_same * {name}_all.unsqueeze(-2)).sum(-1) / {name}_same.sum(-1)",
        f"{name} = {name}_own / {name}_own.sum(-1, keepdim=True)",
    ]


RULES: dict[str, Any] = {
    "unit": _unit,
    "floor": _floor,
    "clamp": _one("{x}.clamp({low}, {high})"),
    "log": _one("{x}.log()"),
    "log1m": _one("torch.log1p(-{x})"),
    "exp": _one("{x}.exp()"),
    "log_logistic": _one("nn.functional.logsigmoid({x})"),
    "softmax": _one("torch.softmax({x}, dim=-1)"),
    "log_softmax": _one("torch.log_softmax({x}, dim=-1)"),
    "minus": _one("{x} - {x}[..., {entry}].unsqueeze(-1)"),
    "minus_top": _one("{x} - {x}.max(-1, keepdim=True)[0]"),
    "take": _one("{x}.index_select(-1, self.index{k})"),
    "scale": _one("{x} * self.weight{k} + self.shift{k}"),
    "matrix": _one("{x} @ self.weight{k}.t() + self.shift{k}"),
    "add": _add,
    "steps": _steps,
    "lines": _lines,
    "share": _share,
    "runs": _runs,
}
"""How each step is written."""
