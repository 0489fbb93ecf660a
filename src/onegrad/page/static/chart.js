// Pictures on a canvas from grids of numbers, interpolated: for pages without a server.

/** Between which two of `count` rows a position lies: [first, second, share of the second]. */
export function between(position, count) {
  const i = Math.min(Math.max(Math.floor(position), 0), count - 1);
  const j = Math.min(i + 1, count - 1);
  return [i, j, Math.min(Math.max(position - i, 0), 1)];
}

/** A number between two; where one is missing, the nearer one. */
export function mixed(a, b, u) {
  if (a === null || b === null || a === undefined || b === undefined) return (u < 0.5 ? a : b) ?? null;
  return a + (b - a) * u;
}

/**
 * A row of a grid at a position between its rows; deeper grids take one position for each slider.
 * log : mix logarithms, for quantities that span powers of ten
 */
export function rowAt(grid, positions, log = false) {
  const [position, ...rest] = positions;
  if (position === undefined) return grid;
  const [i, j, u] = between(position, grid.length);
  const [a, b] = [rowAt(grid[i], rest, log), rowAt(grid[j], rest, log)];
  return a.map((value, k) => (log && value > 0 && b[k] > 0 ? value * (b[k] / value) ** u : mixed(value, b[k], u)));
}

/** The value of a slider or axis at a position between its values. */
export function valueAt({ values, log }, position) {
  const [i, j, u] = between(position, values.length);
  if (log && values[i] > 0) return values[i] * (values[j] / values[i]) ** u;
  return mixed(values[i], values[j], u);
}

/** The other way round: where among its values a value stands. */
export function positionOf({ values, log }, value) {
  const last = values.length - 1;
  for (let i = 0; i < last; i++) {
    const [a, b] = [values[i], values[i + 1]];
    if (value > b && i < last - 1) continue;
    const u = log && a > 0 ? Math.log(value / a) / Math.log(b / a) : (value - a) / (b - a);
    return Math.min(Math.max(i + u, 0), last);
  }
  return 0;
}

/** A number as people write it. */
export function say(x, digits = 3) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size < 1e-3 || size >= 1e5) return x.toExponential(Math.max(0, digits - 2)).replace(/\.?0+e/, "e").replace("e+", "e");
  return String(Number(x.toPrecision(digits)));
}

export const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const lineInk = (colour) => ink(colour < 0 ? "--soft" : `--c${colour % 6}`);

function ticksOf({ low, high, log }) {
  if (log) {
    const steps = Math.log10(high / low) > 2.5 ? [1] : [1, 2, 5];
    const ticks = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) {
      for (const s of steps) ticks.push(Number((s * 10 ** p).toPrecision(3)));
    }
    return ticks.filter((v) => v >= low * 0.999 && v <= high * 1.001);
  }
  const raw = (high - low) / 5;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((s) => s >= raw);
  const ticks = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9; v += step) ticks.push(Number(v.toPrecision(6)));
  return ticks;
}

/** The canvas at the resolution of the screen: its context in CSS pixels, and its size. */
export function fresh(canvas) {
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  return { ctx, width, height };
}

/**
 * Draw axes, areas, marks, lines and dots; returns the functions from values to pixels.
 *
 * x, y : {low, high, log, title}; lines : {x, y, colour, dash}; dots : {x, mean, se, colour, cross};
 * marks : {x, text} vertical lines; areas : {x, y}; stems : {x, text}; here : a place along x
 */
export function draw(canvas, { x, y, lines = [], dots = [], marks = [], areas = [], stems = [], here = null }) {
  const { ctx, width, height } = fresh(canvas);
  const box = { left: y.bare ? 10 : 52, top: 18, right: width - 12, bottom: height - 40 };
  const scale = ({ low, high, log }, from, to) => {
    const f = log ? Math.log : (v) => v;
    return (v) => from + ((f(v) - f(low)) / (f(high) - f(low))) * (to - from);
  };
  const [px, py] = [scale(x, box.left, box.right), scale(y, box.bottom, box.top)];
  axes(ctx, box, x, y, px, py);
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.left, 0, box.right - box.left + 1, box.bottom + 1);
  ctx.clip();
  for (const area of areas) {
    ctx.fillStyle = ink("--area");
    ctx.beginPath();
    ctx.moveTo(px(area.x[0]), box.bottom);
    area.x.forEach((v, i) => ctx.lineTo(px(v), Math.max(py(area.y[i]), box.top)));
    ctx.lineTo(px(area.x[area.x.length - 1]), box.bottom);
    ctx.fill();
  }
  for (const mark of marks) vertical(ctx, px(mark.x), box, mark.text, ink("--soft"), [2, 4]);
  if (here !== null) vertical(ctx, px(here), box, "", ink("--c0"), []);
  for (const line of lines) path(ctx, line, px, py);
  for (const stem of stems) {
    ctx.strokeStyle = ctx.fillStyle = ink("--c1");
    ctx.lineWidth = 3;
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(px(stem.x), box.bottom);
    ctx.lineTo(px(stem.x), box.bottom - 0.6 * (box.bottom - box.top));
    ctx.stroke();
    ctx.fillText(stem.text, px(stem.x) + 5, box.bottom - 0.6 * (box.bottom - box.top) + 8);
  }
  ctx.restore();
  for (const group of dots) drawDots(ctx, group, px, py, box);
  return { px, py, box };
}

function axes(ctx, box, x, y, px, py) {
  ctx.lineWidth = 1;
  ctx.textAlign = "center";
  let last = -Infinity; // where the last name of a tick has ended
  for (const v of ticksOf(x)) {
    ctx.strokeStyle = ink("--grid");
    stroke(ctx, px(v), box.top, px(v), box.bottom);
    const half = ctx.measureText(say(v)).width / 2;
    if (px(v) - half < last + 6) continue;
    ctx.fillStyle = ink("--soft");
    ctx.fillText(say(v), px(v), box.bottom + 16);
    last = px(v) + half;
  }
  ctx.textAlign = "right";
  for (const v of y.bare ? [] : ticksOf(y)) {
    ctx.strokeStyle = ink("--grid");
    stroke(ctx, box.left, py(v), box.right, py(v));
    ctx.fillStyle = ink("--soft");
    ctx.fillText(say(v), box.left - 6, py(v) + 4);
  }
  ctx.textAlign = "center";
  ctx.fillStyle = ink("--soft");
  ctx.fillText(x.title, (box.left + box.right) / 2, box.bottom + 34, box.right - box.left);
  ctx.textAlign = "left";
  ctx.fillText(y.title, 4, 11);
}

function stroke(ctx, ...[a, b, c, d]) {
  ctx.beginPath();
  ctx.moveTo(a, b);
  ctx.lineTo(c, d);
  ctx.stroke();
}

function vertical(ctx, x, box, text, colour, dash) {
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = 1.2;
  ctx.setLineDash(dash);
  stroke(ctx, x, box.top, x, box.bottom);
  ctx.setLineDash([]);
  ctx.textAlign = "left";
  ctx.fillText(text, x + 4, box.top + 12);
}

/** A smooth line through its points (monotone cubic); gaps where a value is missing. */
function path(ctx, { x, y, colour, dash, width = 2.4 }, px, py) {
  ctx.strokeStyle = lineInk(colour);
  ctx.lineWidth = dash ? 1.8 : width;
  ctx.setLineDash(dash === true ? [7, 5] : dash || []);
  let run = [];
  const flush = () => {
    if (run.length > 1) smooth(ctx, run);
    run = [];
  };
  x.forEach((v, i) => (y[i] === null || y[i] === undefined ? flush() : run.push([px(v), py(y[i])])));
  flush();
  ctx.setLineDash([]);
}

/** Fritsch and Carlson's tangents: no overshoot between points. */
export function tangents(points) {
  const slopes = points.slice(1).map(([x, y], i) => (y - points[i][1]) / (x - points[i][0] || 1e-9));
  return points.map((_, i) => {
    const [a, b] = [slopes[i - 1] ?? slopes[i], slopes[i] ?? slopes[i - 1]];
    return a * b <= 0 ? 0 : (2 * a * b) / (a + b);
  });
}

function smooth(ctx, points) {
  const slope = tangents(points);
  ctx.beginPath();
  ctx.moveTo(...points[0]);
  for (let i = 1; i < points.length; i++) {
    const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
    const third = (x1 - x0) / 3;
    ctx.bezierCurveTo(x0 + third, y0 + third * slope[i - 1], x1 - third, y1 - third * slope[i], x1, y1);
  }
  ctx.stroke();
}

function drawDots(ctx, { x, mean, se = [], colour, cross = false, alpha = 1 }, px, py, box) {
  ctx.globalAlpha = alpha;
  ctx.strokeStyle = ctx.fillStyle = lineInk(colour);
  ctx.lineWidth = 1.6;
  x.forEach((v, i) => {
    const [cx, cy] = [px(v), py(mean[i])];
    if (!(cy >= box.top - 2 && cy <= box.bottom + 2)) return;
    if (cross) {
      stroke(ctx, cx - 4, cy - 4, cx + 4, cy + 4);
      stroke(ctx, cx - 4, cy + 4, cx + 4, cy - 4);
      return;
    }
    if (se[i]) stroke(ctx, cx, py(mean[i] + se[i]), cx, py(Math.max(mean[i] - se[i], 0.2 * mean[i])));
    ctx.beginPath();
    ctx.arc(cx, cy, 4, 0, 7);
    ctx.fill();
  });
  ctx.globalAlpha = 1;
}
