// Panels drawn by uPlot: lines, marks with error bars, a tip at the cursor, keys to move it.

import uPlot from "./vendor/uPlot.esm.js";
import { css, el, rem, show } from "./dom.js";

export class Panel {
  /**
   * options: title, xLabel, yLabel, xLog, yLog, xRange, draw(u, pen), tip(x, index) -> lines of
   * HTML-free text [{colour, text}], series: [{label, colour, dash, width, smooth}]
   */
  constructor(parent, options) {
    this.options = options;
    this.plotBox = el("div", { class: "plot", tabIndex: 0, role: "img", "aria-label": options.title });
    this.tip = el("div", { class: "tip", hidden: true });
    this.node = el(
      "div",
      { class: "panel" + (options.wide ? " wide" : "") + (options.low ? " low" : "") + (options.small ? " small" : "") },
      el("h3", {}, options.title),
      this.plotBox,
      this.tip,
    );
    parent.append(this.node);
    this.plotBox.addEventListener("keydown", (event) => this.key(event));
    this.plotBox.addEventListener("blur", () => (this.tip.hidden = true));
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.plotBox);
  }

  /** Show data: [xs, ys…]; `y` is the range that has to be seen. */
  show(data, { series, y, yLog, x }) {
    const key = JSON.stringify([series, yLog, this.options, css("--ink")]);
    this.y = y;
    this.x = x ?? [data[0][0], data[0][data[0].length - 1]];
    this.data = data;
    if (this.u && key === this.key_) {
      this.u.setData(data);
      return;
    }
    this.key_ = key;
    this.u?.destroy();
    this.u = new uPlot(this.uOptions(series, yLog), data, this.plotBox);
  }

  uOptions(series, yLog) {
    const size = rem();
    const family = getComputedStyle(document.body).fontFamily;
    const font = `${Math.round(size * 0.82)}px ${family}`;
    const axis = {
      stroke: css("--soft"),
      font,
      labelSize: size * 1.6,
      grid: { stroke: css("--grid"), width: 1 },
      ticks: { stroke: css("--line"), width: 1, size: 5 },
    };
    const ticks = (u, splits) => splits.map((v) => (v === null ? null : show(v, 3)));
    const { xLog, xAsinh, xLabel, yLabel } = this.options;
    const { width, height } = this.size();
    const named = (label, room) => {
      const fit = Math.min(1, room / lengthOf(label, font));
      const none = this.options.small && (width < 15 * size || fit < 0.7); // no room for names of the axes
      return none ? {} : { label, labelFont: `${Math.round(size * 0.82 * fit)}px ${family}` };
    };
    return {
      ...this.size(),
      pxAlign: 0,
      padding: [size * 0.6, size * 0.8, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { size: size * 0.5 }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, distr: xAsinh ? 4 : xLog ? 3 : 1, asinh: xAsinh, range: () => this.x },
        y: { distr: yLog ? 3 : 1, range: () => this.y },
      },
      axes: [
        {
          ...axis,
          ...named(xLabel, width - size * 5),
          size: size * 2.1,
          space: size * 3.2,
          values: ticks,
          ...this.options.xAxis,
          ...(xLog ? { splits: () => logTicks(this.x), filter: (u, s) => s } : {}),
        },
        {
          ...axis,
          ...named(yLabel, height - size * 3.9),
          size: (u, texts) => size * (1.2 + 0.52 * Math.max(5, ...(texts ?? []).map((text) => text?.length ?? 0))),
          space: size * 2.4,
          values: ticks,
          ...(yLog ? { splits: () => logTicks(this.y), filter: (u, s) => s } : {}),
        },
      ],
      series: [
        {},
        ...series.map((s) => ({
          spanGaps: true,
          points: { show: false },
          ...(s.smooth ? { paths: uPlot.paths.spline() } : {}),
          ...s,
          dash: s.dash?.map((length) => length * devicePixelRatio),
          width: ((s.width ?? 1.6) * size) / 15,
        })),
      ],
      hooks: {
        drawClear: [(u) => this.options.under?.(u, pen(u))],
        draw: [(u) => this.options.draw?.(u, pen(u))],
        setCursor: [(u) => this.hover(u)],
      },
    };
  }

  hover(u) {
    const { idx, left } = u.cursor;
    if (idx === null || idx === undefined || left < 0) {
      this.tip.hidden = true;
      return;
    }
    const lines = this.options.tip?.(idx, u.posToVal(left, "x")) ?? [];
    if (!lines.length) {
      this.tip.hidden = true;
      return;
    }
    this.tip.replaceChildren(
      ...lines.map(({ colour, text, bold }) => {
        const line = el("div", {}, bold ? el("b", {}, text) : text);
        if (colour) {
          const swatch = el("span", { class: "swatch" });
          swatch.style.background = colour;
          line.prepend(swatch);
        }
        return line;
      }),
    );
    this.tip.hidden = false;
    const box = this.plotBox.getBoundingClientRect();
    const x = u.bbox.left / devicePixelRatio + left;
    const right = x > box.width / 2;
    this.tip.style.left = right ? "" : `${x + 14}px`;
    this.tip.style.right = right ? `${box.width - x + 14}px` : "";
    this.tip.style.top = `${u.bbox.top / devicePixelRatio + rem() * 1.6}px`;
    if (document.activeElement === this.plotBox) this.options.say?.(lines.map((line) => line.text).join("; "));
  }

  /** Arrow keys walk from point to point. */
  key(event) {
    const move = { ArrowRight: 1, ArrowLeft: -1, Home: -1e9, End: 1e9 }[event.key];
    if (!move || !this.u) return;
    event.preventDefault();
    const last = this.data[0].length - 1;
    const from = this.u.cursor.idx ?? (move > 0 ? -1 : last + 1);
    const index = Math.min(last, Math.max(0, from + move));
    this.u.setCursor({ left: this.u.valToPos(this.data[0][index], "x"), top: 10 });
  }

  size() {
    return { width: Math.max(120, this.plotBox.clientWidth), height: Math.max(120, this.plotBox.clientHeight) };
  }

  resize() {
    const { width, height } = this.size();
    if (this.u && (this.u.width !== width || this.u.height !== height)) this.u.setSize({ width, height });
  }

  /** Other names of the axes. */
  rename([xLabel, yLabel]) {
    Object.assign(this.options, { xLabel, yLabel });
  }

  redraw() {
    this.u?.redraw(false);
  }

  destroy() {
    this.watch.disconnect();
    this.u?.destroy();
    this.node.remove();
  }
}

/** The length of a text in pixels of the page. */
function lengthOf(text, font) {
  const ctx = (lengthOf.canvas ??= el("canvas")).getContext("2d");
  ctx.font = font;
  return Math.max(1, ctx.measureText(text).width);
}

/** Ticks of a logarithmic axis: decades, or 1-2-5, or finer if it spans less. */
export function logTicks([low, high]) {
  const decades = Math.log10(high / low);
  const steps = decades > 4 ? [1] : decades > 0.9 ? [1, 2, 5] : decades > 0.35 ? [1, 1.5, 2, 3, 4, 5, 6, 8] : null;
  if (!steps) {
    // less than a factor two or so: evenly spaced round numbers
    const raw = (high - low) / 4;
    const unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * unit).find((s) => s >= raw);
    const ticks = [];
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) ticks.push(Number(v.toPrecision(6)));
    return ticks;
  }
  const ticks = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++) {
    for (const s of steps) {
      const v = Number((s * 10 ** p).toPrecision(6));
      if (v >= low * 0.999 && v <= high * 1.001) ticks.push(v);
    }
  }
  return decades > 8 ? ticks.filter((_, i) => i % 2 === 0) : ticks;
}

/** A range with some room around values; logarithmic if they span more than a factor 8. */
export function niceRange(values) {
  const seen = values.filter((v) => Number.isFinite(v));
  if (!seen.length) return { y: [0, 1], yLog: false };
  let [low, high] = [Math.min(...seen), Math.max(...seen)];
  const yLog = low > 0 && high / low > 8;
  if (yLog) return { y: [low / 1.25, high * 1.25], yLog };
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  low = low >= 0 ? Math.max(0, low - room) : low - room;
  return { y: [low, high + room], yLog };
}

/** Canvas coordinates and marks in the plot's own units. */
export function pen(u) {
  const { ctx } = u;
  const x = (v) => u.valToPos(v, "x", true);
  const y = (v) => u.valToPos(v, "y", true);
  const scale = devicePixelRatio * (rem() / 15);
  return {
    ctx,
    x,
    y,
    scale,
    box: u.bbox,
    mark(shape, px, py, colour, filled = shape === "o") {
      drawMark(ctx, shape, px, py, scale, colour, filled);
    },
    bar(px, low, high, colour) {
      ctx.strokeStyle = colour;
      ctx.lineWidth = 1.2 * scale;
      ctx.setLineDash([]);
      ctx.beginPath();
      ctx.moveTo(px, low);
      ctx.lineTo(px, high);
      for (const end of [low, high]) {
        ctx.moveTo(px - 3 * scale, end);
        ctx.lineTo(px + 3 * scale, end);
      }
      ctx.stroke();
    },
  };
}

export function drawMark(ctx, shape, x, y, scale, colour, filled) {
  const r = 4 * scale;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = 1.5 * scale;
  ctx.beginPath();
  if (shape === "o") ctx.arc(x, y, 0.9 * r, 0, 7);
  else if (shape === "s") ctx.rect(x - 1.15 * r, y - 1.15 * r, 2.3 * r, 2.3 * r);
  else if (shape === "x" || shape === "+") {
    const [a, b] = shape === "x" ? [r, r] : [1.3 * r, 0];
    ctx.moveTo(x - a, y - b);
    ctx.lineTo(x + a, y + b);
    ctx.moveTo(x - b, y + a);
    ctx.lineTo(x + b, y - a);
  } else {
    const corners = {
      "^": [
        [0, -1.5],
        [1.4, 1],
        [-1.4, 1],
      ],
      v: [
        [0, 1.5],
        [1.4, -1],
        [-1.4, -1],
      ],
      D: [
        [0, -1.5],
        [1.5, 0],
        [0, 1.5],
        [-1.5, 0],
      ],
    }[shape] ?? [
      [0, -1.6],
      [0.5, 0],
      [0, 1.6],
      [-0.5, 0],
    ];
    corners.forEach(([dx, dy], i) => (i ? ctx.lineTo(x + dx * r, y + dy * r) : ctx.moveTo(x + dx * r, y + dy * r)));
    ctx.closePath();
  }
  if (filled && !"x+".includes(shape)) ctx.fill();
  else ctx.stroke();
  ctx.restore();
}

/** One entry of the legend above the panels: a line, a mark or a block, and its text. */
export function legendEntry(text, paint) {
  const scale = devicePixelRatio * (rem() / 15);
  const canvas = el("canvas", { width: 26 * scale, height: 17 * scale, "aria-hidden": "true" });
  paint(canvas.getContext("2d"), canvas.width, canvas.height, scale);
  return el("span", {}, canvas, text);
}

export const legendLine = (text, colour, dash = []) =>
  legendEntry(text, (ctx, w, h, s) => {
    ctx.strokeStyle = colour;
    ctx.lineWidth = 2.2 * s;
    ctx.setLineDash(dash.map((d) => d * s));
    ctx.beginPath();
    ctx.moveTo(0, h / 2);
    ctx.lineTo(w, h / 2);
    ctx.stroke();
  });
export const legendMark = (text, shape, colour, filled) =>
  legendEntry(text, (ctx, w, h, s) => drawMark(ctx, shape, w / 2, h / 2, s, colour, filled));
export const legendBlock = (text, colour, alpha = 1) =>
  legendEntry(text, (ctx, w, h) => {
    ctx.globalAlpha = alpha;
    ctx.fillStyle = colour;
    ctx.fillRect(w * 0.15, h * 0.15, w * 0.7, h * 0.7);
  });
