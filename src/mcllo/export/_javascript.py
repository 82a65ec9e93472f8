"""The target "javascript": one ES module without dependencies, and a declaration of its types."""

from __future__ import annotations

import json

from .._version import __version__
from ._lines import Language
from ._programs import ExportError, Program

HELPERS = {
    "sum": """
const sum = (x) => x.reduce((a, b) => a + b, 0);
""",
    "unit": """
/** Divide by the sum where it is off by more than the tolerance. */
function unit(x, tolerance) {
  const total = sum(x);
  return Math.abs(total - 1) > tolerance ? x.map((a) => a / total) : x;
}
""",
    "floor": """
/** Raise small entries, in rows with a zero or in every row, and divide such rows by their sum. */
function floor(x, least, every) {
  if (!(x.some((a) => a < least) && (every || x.includes(0)))) return x;
  const raised = x.map((a) => Math.max(a, least));
  const total = sum(raised);
  return raised.map((a) => a / total);
}
""",
    "clamp": """
const clamp = (x, low, high) => x.map((a) => Math.min(Math.max(a, low), high));
""",
    "log": """
const log = (x) => x.map(Math.log);
""",
    "log1m": """
const log1m = (x) => x.map((a) => Math.log1p(-a));
""",
    "exp": """
const exp = (x) => x.map(Math.exp);
""",
    "log_logistic": """
/** -log(1 + exp(-x)) */
const log_logistic = (x) => x.map((a) => Math.min(a, 0) - Math.log1p(Math.exp(-Math.abs(a))));
""",
    "minus_top": """
function minus_top(x) {
  const top = x.reduce((a, b) => Math.max(a, b), -Infinity);
  return x.map((a) => a - top);
}
""",
    "softmax": """
function softmax(x) {
  const e = minus_top(x).map(Math.exp);
  const total = sum(e);
  return e.map((a) => a / total);
}
""",
    "log_softmax": """
function log_softmax(x) {
  const gaps = minus_top(x);
  const log = Math.log(sum(gaps.map(Math.exp)));
  return gaps.map((a) => a - log);
}
""",
    "minus": """
const minus = (x, entry) => x.map((a) => a - x[entry]);
""",
    "take": """
const take = (x, index) => index.map((k) => x[k]);
""",
    "scale": """
const scale = (x, weight, shift) => x.map((a, j) => weight[j] * a + shift[j]);
""",
    "matrix": """
const matrix = (x, weight, shift) =>
  weight.map((row, j) => row.reduce((total, w, k) => total + w * x[k], 0) + shift[j]);
""",
    "add": """
const add = (...vectors) => vectors.reduce((x, y) => x.map((a, j) => a + y[j]));
""",
    "steps": """
/** The value of the bin, closed on the right, that each entry is in; null is the entry itself. */
function steps(x, edges, table) {
  return x.map((a, j) => {
    let low = 0;
    let high = edges[j].length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (edges[j][middle] < a) low = middle + 1;
      else high = middle;
    }
    return table[j][low] ?? a;
  });
}
""",
    "lines": """
/** Straight lines through points, constant outside of them. */
function lines(x, at, value) {
  return x.map((a, j) => {
    const xs = at[j];
    const ys = value[j];
    let low = 0;
    let high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= a) low = middle + 1;
      else high = middle;
    }
    if (low === 0 || low === xs.length) return ys[Math.max(low - 1, 0)];
    const part = (a - xs[low - 1]) / (xs[low] - xs[low - 1]);
    return ys[low - 1] + (ys[low] - ys[low - 1]) * part;
  });
}
""",
    "share": """
/** Answers q for some classes, which share what p gives to them; the others keep p. */
function share(q, p, present, even, least) {
  const row = p.slice();
  const total = sum(q);
  const shared = present.length < p.length ? sum(present.map((k) => p[k])) : 1;
  present.forEach((k, i) => {
    if (total > least) row[k] = (q[i] / total) * shared;
    else if (even) row[k] = shared / present.length;
  });
  return row;
}
""",
    "trees": """
/** Sums of trees: one split of all, one of each side, and the values of four leaves. */
function trees(x, features, thresholds, values) {
  const total = new Array(values[0].length).fill(0);
  values.forEach((ofRound, r) => {
    ofRound.forEach((value, k) => {
      const feature = features[r][k];
      const threshold = thresholds[r][k];
      const side = x[feature[0]] <= threshold[0] ? 1 : 2;
      const goesLeft = x[feature[side]] <= threshold[side];
      total[k] += value[goesLeft ? 2 * side - 2 : 2 * side - 1];
    });
  });
  return total;
}
""",
    "runs": """
/** Belief in runs of classes that follow each other in score; see mcllo's _evidential. */
function runs(x, low, high, node, output) {
  const c = x.length;
  const ranked = x.slice().sort((a, b) => a - b);
  const answer = new Array(c).fill(0);
  const sure = new Array(c).fill(0);
  const cumulated = (theta) => {
    const total = [0];
    for (const a of softmax(ranked.map((s) => theta * s))) total.push(total[total.length - 1] + a);
    return total.map((a) => a / total[c]);
  };
  node.forEach((weight, q) => {
    const up = cumulated(low[q]);
    const down = cumulated(high[q]);
    for (let i = 0; i < c; i++) {
      if (output !== "pignistic") {
        answer[i] += weight * (up[i + 1] - down[i]);
        continue;
      }
      for (let d = 0; d < c - i; d++) {
        const length = Math.min(up[i + 1], down[i + d + 1]) - Math.max(up[i], down[i + d]);
        if (length <= 0) continue;
        for (let k = i; k <= i + d; k++) answer[k] += (weight * length) / (d + 1);
        if (d === 0) sure[i] += weight * length;
      }
    }
  });
  const best = answer.map((a, i) => Math.max(a, sure[i]));
  const row = x.map((s) => {
    const same = best.filter((_, k) => ranked[k] === s);
    return sum(same) / same.length;
  });
  const total = sum(row);
  return row.map((a) => a / total);
}
""",
}
MAX_SAFE_INTEGER = 2**53
"""Beyond it a JavaScript number, which is a float64, is no longer every whole number."""
JAVASCRIPT = Language(
    HELPERS, "const {name} = {value};", "null", "true", "false", json.dumps
)

MODULE = """// Recalibrated class probabilities: {method}, fitted and written by mcllo {version}.
// No dependencies. predictProba(rows) takes {what} for each class in the order of `classes`.

export const method = {method_name};
export const classes = {classes};

{constants}
{helpers}
/** Return the recalibrated probabilities of one row. */
export function predictRow(row) {{
  const v0 = Array.from(row, Number);
  if (v0.length !== classes.length)
    throw new RangeError(`a row must have ${{classes.length}} numbers; got ${{v0.length}}.`);
  if (!v0.every(Number.isFinite))
    throw new RangeError(`a row must hold finite numbers; got ${{v0}}.`);
{checks}{body}
  return {last};
}}

/** Return the recalibrated probabilities of rows. */
export function predictProba(rows) {{
  return Array.from(rows, predictRow);
}}

/** Return the most probable class of each row. */
export function predict(rows) {{
  return predictProba(rows).map((p) => classes[p.indexOf(p.reduce((a, b) => Math.max(a, b)))]);
}}
"""
CHECK = """  if (v0.some((a) => a < 0) || {sum_rule})
    throw new RangeError(`a row must hold probabilities{sum_words}; got ${{v0}}.`);
"""
ZERO_CHECK = """  if (v0.includes(0))
    throw new RangeError(`a row must hold positive probabilities; got ${{v0}}.`);
"""
DECLARATION = """// Types of the module beside this file, written by mcllo {version}.

/** The method that made the map. */
export declare const method: string;
/** Labels in the order of the columns. */
export declare const classes: ReadonlyArray<{label}>;
/** Return the recalibrated probabilities of one row of {what}. */
export declare function predictRow(row: ArrayLike<number>): number[];
/** Return the recalibrated probabilities of rows. */
export declare function predictProba(rows: Iterable<ArrayLike<number>>): number[][];
/** Return the most probable class of each row. */
export declare function predict(rows: Iterable<ArrayLike<number>>): Array<{label}>;
"""


def write_javascript(program: Program) -> str:
    """Return the module's text."""
    for label in program.classes:
        if isinstance(label, int) and abs(label) > MAX_SAFE_INTEGER:
            raise ExportError(
                f"JavaScript has no whole number {label}: beyond 2**53 it would be another. Name "
                "the classes as text to export this."
            )
    checks = ""
    if program.input == "probs":
        loose = program.normalize
        checks = CHECK.format(
            sum_rule="sum(v0) <= 0" if loose else "Math.abs(sum(v0) - 1) > 1e-6",
            sum_words="" if loose else " that sum to 1",
        )
        checks += "" if program.zeros else ZERO_CHECK.format()
    helpers = JAVASCRIPT.used_helpers(program, always=("sum",))
    return MODULE.format(
        method=program.method,
        method_name=json.dumps(program.method),
        version=__version__,
        what="a probability" if program.input == "probs" else "a logit",
        classes=JAVASCRIPT.literal(program.classes),
        constants="\n".join(JAVASCRIPT.constant_lines(program)),
        helpers="".join(helpers),
        checks=checks,
        body="\n".join(f"  {line}" for line in JAVASCRIPT.step_lines(program)),
        last=f"v{len(program.steps) - 1}",
    )


def write_type_declaration(program: Program) -> str:
    """Return the text of the module's ``.d.ts``."""
    kinds = {_typescript_type(label) for label in program.classes}
    what = "probabilities" if program.input == "probs" else "logits"
    label = " | ".join(sorted(kinds))
    return DECLARATION.format(version=__version__, label=label, what=what)


def _typescript_type(label: object) -> str:
    """Return a label's type in TypeScript."""
    if isinstance(label, str):
        return "string"
    return "boolean" if isinstance(label, bool) else "number"
