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
        numbers += _parameter_lines(k, step)
        body += RULES[step.op](f"v{k}", [f"v{of}" for of in step.inputs], f"_{k}", step)
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


def _parameter_lines(step_number: int, step: ProgramStep) -> list[str]:
    """Return the lines that register what a step carries."""
    lines = []
    for name, value in step.parameters.items():
        arrays: dict[str, Any] = {}
        if isinstance(value, np.ndarray):
            arrays[f"{name}_{step_number}"] = value
        elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            # of each class its own length: they do not fit into one tensor
            for j, array in enumerate(value):
                arrays[f"{name}_{step_number}_{j}"] = array
        elif name in ("index", "present"):
            tensor = f"torch.tensor({TORCH.literal(value)}, dtype=torch.int64)"
            lines.append(f'self.register_buffer("{name}_{step_number}", {tensor})')
        for label, array in arrays.items():
            tensor = f"torch.tensor({TORCH.literal(array)}, dtype=torch.float64)"
            if name in TRAINABLE_ARGUMENTS:
                lines.append(f"self.{label} = nn.Parameter({tensor})")
            else:
                lines.append(f'self.register_buffer("{label}", {tensor})')
    return lines


def _expression_rule(template: str) -> Any:
    """Return the rule of a step that is one expression of x, y, the numbers' mark k and numbers."""

    def rule(
        output: str, inputs: list[str], suffix: str, step: ProgramStep
    ) -> list[str]:
        numbers = {}
        for argument, value in step.parameters.items():
            if isinstance(value, (int, float)):
                numbers[argument] = repr(value)
        expression = template.format(x=inputs[0], k=suffix, **numbers)
        return [f"{output} = {expression}"]

    return rule


def _divide_by_row_sum(
    output: str, inputs: list[str], suffix: str, step: ProgramStep
) -> list[str]:
    x = inputs[0]
    # each row decides for itself, without a branch that tracing would fix
    tolerance = step.parameters["tolerance"]
    if tolerance < 0.0:
        return [f"{output} = {x} / {x}.sum(-1, keepdim=True)"]
    return [
        f"{output}_sum = {x}.sum(-1, keepdim=True)",
        f"{output} = {x} / torch.where(({output}_sum - 1.0).abs() > {tolerance!r}, {output}_sum, "
        f"torch.ones_like({output}_sum))",
    ]


def _raise_to_floor(
    output: str, inputs: list[str], suffix: str, step: ProgramStep
) -> list[str]:
    x = inputs[0]
    floor = step.parameters["floor"]
    low = f"{output}_low = {x} < {floor!r}"
    if not step.parameters["every"]:
        low += f"\n        {output}_low = {output}_low & ({x} == 0.0).any(-1, keepdim=True)"
    return [
        low,
        f"{output}_up = torch.where({output}_low, torch.full_like({x}, {floor!r}), {x})",
        f"{output}_sum = {output}_up.sum(-1, keepdim=True)",
        f"{output} = {output}_up / torch.where({output}_low.any(-1, keepdim=True), {output}_sum, "
        f"torch.ones_like({output}_sum))",
    ]


def _add_vectors(
    output: str, inputs: list[str], suffix: str, step: ProgramStep
) -> list[str]:
    return [f"{output} = {' + '.join(inputs)}"]


def _apply_step_functions(
    output: str, inputs: list[str], suffix: str, step: ProgramStep
) -> list[str]:
    x = inputs[0]
    lines = []
    columns = []
    for j, table in enumerate(step.parameters["table"]):
        own = f"{output}_{j}"
        lines += [
            f"{own}_x = {x}[..., {j}].contiguous()",
            f"{own} = self.table{suffix}_{j}[torch.bucketize({own}_x, self.edges{suffix}_{j})]",
        ]
        if np.isnan(table).any():
            lines.append(f"{own} = torch.where(torch.isnan({own}), {own}_x, {own})")
        columns.append(own)
    return [*lines, f"{output} = torch.stack([{', '.join(columns)}], dim=-1)"]


def _interpolate_linearly(
    output: str, inputs: list[str], suffix: str, step: ProgramStep
) -> list[str]:
    x = inputs[0]
    lines = []
    columns = []
    for j, at in enumerate(step.parameters["at"]):
        own = f"{output}_{j}"
        place = f"self.at{suffix}_{j}"
        height = f"self.value{suffix}_{j}"
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
    return [*lines, f"{output} = torch.stack([{', '.join(columns)}], dim=-1)"]


def _share_among_present(
    output: str, inputs: list[str], suffix: str, step: ProgramStep
) -> list[str]:
    q, p = inputs
    present = step.parameters["present"]
    absent = [j for j in range(step.size) if j not in present]
    kept = f"{output}_kept"
    shared = (
        f"{kept}.sum(-1, keepdim=True)" if absent else f"torch.ones_like({output}_sum)"
    )
    instead = kept
    if step.parameters["even"]:
        instead = f"({output}_part / {len(present)!r}).expand_as({q})"
    lines = [
        f"{output}_sum = {q}.sum(-1, keepdim=True)",
        f"{kept} = {p}.index_select(-1, self.present{suffix})",
        f"{output}_part = {shared}",
        f"{output}_some = {output}_sum > {step.parameters['least']!r}",
        f"{output}_safe = torch.where({output}_some, {output}_sum, torch.ones_like({output}_sum))",
        f"{output}_own = torch.where({output}_some, {q} / {output}_safe * {output}_part, "
        f"{instead})",
    ]
    if not absent:
        return [*lines, f"{output} = {output}_own"]
    columns = []
    for j in range(step.size):
        if j in present:
            columns.append(f"{output}_own[..., {present.index(j)}]")
        else:
            columns.append(f"{p}[..., {j}]")
    return [*lines, f"{output} = torch.stack([{', '.join(columns)}], dim=-1)"]


def _belief_in_runs(
    output: str, inputs: list[str], suffix: str, step: ProgramStep
) -> list[str]:
    x = inputs[0]
    c = step.size
    pad = "nn.functional.pad"
    lines = [f"{output}_ranked = torch.sort({x}, dim=-1)[0]"]
    for end, theta in (("up", "low"), ("down", "high")):
        eta = f"{output}_ranked.unsqueeze(-2) * self.{theta}{suffix}.unsqueeze(-1)"
        lines += [
            f"{output}_{end} = torch.softmax({eta}, dim=-1).cumsum(-1)",
            f"{output}_{end} = {pad}({output}_{end} / {output}_{end}[..., {c - 1}:], [1, 0])",
        ]
    up = f"{output}_up"
    down = f"{output}_down"
    node = f"self.node{suffix}.unsqueeze(-1)"
    if step.parameters["output"] == "pignistic":
        lines += [
            f"{output}_sure = torch.zeros_like({x})",
            f"{output}_change = {pad}(torch.zeros_like({x}), [0, 1])",
            f"for d in range({c}):",
            f"    top = torch.minimum({up}[..., 1 : {c + 1} - d], {down}[..., d + 1 : {c + 1}])",
            f"    bottom = torch.maximum({up}[..., : {c} - d], {down}[..., d:{c}])",
            f"    mass = ((top - bottom).clamp(min=0.0) * {node}).sum(-2)",
            "    if d == 0:",
            f"        {output}_sure = mass",
            "    part = mass / float(d + 1)",
            f"    part = {pad}(part, [0, d + 1]) - {pad}(part, [d + 1, 0])",
            f"    {output}_change = {output}_change + part",
            f"{output}_all = torch.maximum({output}_change[..., :{c}].cumsum(-1), {output}_sure)",
        ]
    else:
        lines.append(
            f"{output}_all = (({up}[..., 1:] - {down}[..., :-1]) * {node}).sum(-2)"
        )
    return [
        *lines,
        f"{output}_same = ({x}.unsqueeze(-1) == {output}_ranked.unsqueeze(-2)).to({x}.dtype)",
        f"{output}_own = ({output}_same * {output}_all.unsqueeze(-2)).sum(-1) / "
        f"{output}_same.sum(-1)",
        f"{output} = {output}_own / {output}_own.sum(-1, keepdim=True)",
    ]


RULES: dict[str, Any] = {
    "unit": _divide_by_row_sum,
    "floor": _raise_to_floor,
    "clamp": _expression_rule("{x}.clamp({low}, {high})"),
    "log": _expression_rule("{x}.log()"),
    "log1m": _expression_rule("torch.log1p(-{x})"),
    "exp": _expression_rule("{x}.exp()"),
    "log_logistic": _expression_rule("nn.functional.logsigmoid({x})"),
    "softmax": _expression_rule("torch.softmax({x}, dim=-1)"),
    "log_softmax": _expression_rule("torch.log_softmax({x}, dim=-1)"),
    "minus": _expression_rule("{x} - {x}[..., {entry}].unsqueeze(-1)"),
    "minus_top": _expression_rule("{x} - {x}.max(-1, keepdim=True)[0]"),
    "take": _expression_rule("{x}.index_select(-1, self.index{k})"),
    "scale": _expression_rule("{x} * self.weight{k} + self.shift{k}"),
    "matrix": _expression_rule("{x} @ self.weight{k}.t() + self.shift{k}"),
    "add": _add_vectors,
    "steps": _apply_step_functions,
    "lines": _interpolate_linearly,
    "share": _share_among_present,
    "runs": _belief_in_runs,
}
"""How each step is written."""
