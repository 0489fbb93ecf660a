// View "map": one number over a plane of two settings, usually weighting α and strength β.

import { colours, outlined } from "./colours.js";
import { css, el, rem, show } from "./dom.js";
import { report } from "./link.js";
import { curveSelect } from "./setting.js";
import { mapSpec, mapSweep, pointOf, withSweep } from "./specs.js";
import { LAYERS, isIsotropic, mapKeys, setKey, shown, valueOf, written } from "./state.js";

export const title = "Map";
export const sentence = (page) => {
  const isotropic = isIsotropic(page.state.tables);
  const other = isotropic ? "of another width, after another step" : "at another balance of data spread and learning rate";
  const cell = `Every cell is a network ${other}`;
  return {
    test_error: `${cell}: dark cells err less.`,
    train_error: `${cell}: dark cells fit their training data better.`,
    degree:
      `The ${isotropic ? "larger the step" : "higher the strength β"}, the higher the degree of the polynomial that has the ` +
      "same errors as the network when n is large: the degree rises in steps.",
    gain: "How much of the error of untrained random features one gradient step removes: where it is zero, the step taught nothing.",
  }[page.state.layer];
};

const named = (slider) =>
  `${slider.title} ${slider.symbol}${slider.key === "scaling.weighting" ? "  (0: data spread, 1: learning rate)" : ""}`;
const SIZES = [9, 17]; // cells along each axis: first a few, then more; a preset has its own in the end

const NEAR = [0, 1, 2, 3].flatMap((di) => [0, 1, 2, 3].map((dj) => [di, dj])).sort((a, b) => a[0] + a[1] - b[0] - b[1]);

/** About `count` of the values, the first and the last among them. */
const some = (values, count) => values.filter((_, i) => i % Math.ceil(values.length / count) === 0 || i === values.length - 1);

export class Map2D {
  constructor(page) {
    this.page = page;
    this.cells = new Map();
    this.build();
  }

  axes() {
    const { page } = this;
    return mapKeys(page.state.tables).map((key) => page.slider(key));
  }

  build() {
    const { page } = this;
    const pick = el("select", {
      id: "layer",
      onchange: (event) => {
        page.state.layer = event.target.value;
        page.rebuild();
      },
    });
    for (const [name, text] of Object.entries(LAYERS))
      pick.append(el("option", { value: name, selected: name === page.state.layer }, text));
    page.options.replaceChildren(
      el("label", {}, "show", pick),
      ...curveSelect(page),
      el("span", {}, `activation: ${page.state.tables.network.activation}. Click a cell to go there.`),
    );
    page.legend.replaceChildren();
    this.canvas = el("canvas", {
      class: "map",
      tabIndex: 0,
      role: "img",
      "aria-label": `Map of the ${LAYERS[page.state.layer]}; arrow keys move, Enter goes there`,
    });
    this.tip = el("div", { class: "tip", hidden: true });
    const plot = el("div", { class: "plot" }, this.canvas);
    this.node = el("div", { class: "panel wide" }, el("h3", {}, LAYERS[page.state.layer]), plot, this.tip);
    page.panels.append(this.node);
    this.canvas.addEventListener("mousemove", (event) => this.point(this.cellAt(event)));
    this.canvas.addEventListener("mouseleave", () => this.point(null));
    this.canvas.addEventListener("click", (event) => this.go(this.cellAt(event)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.watch = new ResizeObserver(() => this.paint());
    this.watch.observe(plot);
  }

  refresh(started) {
    const { page } = this;
    const [ax, ay] = this.axes();
    const setting = JSON.stringify([page.state.tables, page.state.layer === "gain"], (key, value) =>
      [ax.key, ay.key].some((k) => k.endsWith("." + key)) ? undefined : value,
    );
    const ask = (size, coarse) => {
      const whole = mapSweep(page.about, page.state, size);
      const sweep = size === SIZES[0] ? Object.fromEntries(Object.entries(whole).map(([key, v]) => [key, some(v, size)])) : whole;
      const [xs, ys] = [ax, ay].map((slider) => sweep[slider.key].map((v) => shown(slider, v, page.state.tables)));
      const spec = withSweep(pointOf(page.state), sweep);
      Object.assign(this, { xs, ys });
      page.link.ask(
        "theory",
        { type: "map", spec, coarse, gain: page.state.layer === "gain" },
        {
          part: (index, value) => {
            if (setting !== this.setting) this.cells.clear(); // those of other settings stayed until now
            this.setting = setting;
            this.cells.set(`${xs[Math.floor(index / ys.length)]} ${ys[index % ys.length]}`, { ...value, coarse });
            this.soon ??= requestAnimationFrame(() => {
              this.soon = null;
              this.paint();
            });
          },
          done: (parts) => {
            if (size === SIZES[0]) page.measure("first map", started);
            document.body.dataset.cells = this.cells.size;
            page.settled(coarse ? "coarse" : "accurate", report(parts));
            if (size === SIZES[0]) ask(SIZES[1], true);
            else if (coarse) page.later(() => ask(size, false));
          },
          error: (text) => page.refuse(text),
        },
      );
    };
    ask(SIZES[0], true);
    this.paint();
  }

  value(i, j) {
    const { xs, ys, cells } = this;
    // until a cell of the finer grid comes, a neighbour of the coarser one stands in
    const cell = NEAR.map(([di, dj]) => cells.get(`${xs[i - di]} ${ys[j - dj]}`)).find(Boolean);
    return cell?.[this.page.state.layer] ?? null;
  }

  layout() {
    const box = this.canvas.parentElement.getBoundingClientRect();
    const unit = rem();
    const plot = { left: unit * 4.4, top: unit * 0.6, width: box.width - unit * 11, height: box.height - unit * 4.6 };
    return { box, unit, plot };
  }

  paint() {
    if (!this.xs) return;
    const { box, unit, plot } = this.layout();
    const ratio = devicePixelRatio;
    this.canvas.width = box.width * ratio;
    this.canvas.height = box.height * ratio;
    const ctx = this.canvas.getContext("2d");
    ctx.scale(ratio, ratio);
    const { layer } = this.page.state;
    const values = this.xs.flatMap((_, i) => this.ys.map((__, j) => this.value(i, j)));
    const seen = values.filter((v) => v !== null);
    const scale = colours(layer, seen);
    const [nx, ny] = [this.xs.length, this.ys.length];
    const [dx, dy] = [plot.width / nx, plot.height / ny];
    for (let i = 0; i < nx; i++) {
      for (let j = 0; j < ny; j++) {
        const v = this.value(i, j);
        ctx.fillStyle = v === null ? css("--grid") : scale.of(v);
        ctx.fillRect(plot.left + i * dx, plot.top + plot.height - (j + 1) * dy, dx + 0.6, dy + 0.6);
      }
    }
    this.steps(ctx, plot, unit);
    this.here(ctx, plot, unit);
    const font = `${unit * 0.82}px ${getComputedStyle(document.body).fontFamily}`;
    this.labels(ctx, plot, unit, font);
    this.bar(ctx, plot, unit, scale, seen);
  }

  /** Position 0…1 of a value on an axis whose cells are centred on their values. */
  along(slider, values, v) {
    const log = slider.kind === "log";
    const f = log ? Math.log : (x) => x;
    const [a, b] = [f(values[0]), f(values[values.length - 1])];
    const u = (f(v) - a) / (b - a);
    return (0.5 + u * (values.length - 1)) / values.length;
  }

  /** Lines where the degree changes: β = 1/2, 2/3, 3/4; the rule ends with degree 4. */
  steps(ctx, plot, unit) {
    const [ax, ay] = this.axes();
    const isotropic = ax.key === "scaling.exponent";
    const light = this.page.state.layer === "gain";
    if (ax.key === "training.rate" || (!isotropic && (this.page.state.tables.data.rank ?? 1) === 0)) return;
    ctx.font = `600 ${unit * 0.74}px ${getComputedStyle(document.body).fontFamily}`;
    const line = (...ends) => {
      for (const [ink, width] of [
        ["rgb(0 0 0 / 45%)", 3],
        ["#fff", 1.4],
      ]) {
        ctx.strokeStyle = ink;
        ctx.lineWidth = width;
        ctx.setLineDash([5, 4]);
        ctx.beginPath();
        ctx.moveTo(ends[0], ends[1]);
        ctx.lineTo(ends[2], ends[3]);
        ctx.stroke();
      }
      ctx.setLineDash([]);
    };
    for (let degree = 1; degree <= 4; degree++) {
      const [from, to] = [(degree - 1) / degree, degree < 4 ? degree / (degree + 1) : 1];
      if (isotropic) {
        const x = (exponent) => plot.left + plot.width * Math.min(1, Math.max(0, this.along(ax, this.xs, exponent)));
        if (degree < 4) line(x(to / 2), plot.top, x(to / 2), plot.top + plot.height);
        const room = x(to / 2) - x(from / 2);
        const name = room > 5 * unit ? `degree ${degree}` : `${degree}`;
        if (room > unit)
          outlined(
            ctx,
            light,
            name,
            degree === 1 ? x(to / 2) - 5 * unit : (x(from / 2) + x(to / 2)) / 2 - unit * (name.length > 1 ? 1.6 : 0.2),
            plot.top + unit,
          );
        continue;
      }
      const y = (beta) => plot.top + plot.height * (1 - this.along(ay, this.ys, beta));
      if (degree < 4) line(plot.left, y(to), plot.left + plot.width, y(to));
      if (y(from) - y(to) < unit * 0.8) continue; // no room for its name
      outlined(ctx, light, `degree ${degree}`, plot.left + 6, (y(from) + y(to)) / 2 + unit * 0.27);
    }
  }

  /** A ring at the current setting. */
  here(ctx, plot, unit) {
    const [ax, ay] = this.axes();
    const [x, y] = [valueOf(ax, this.page.state.tables), valueOf(ay, this.page.state.tables)];
    if (x === null || y === null) return;
    const px = plot.left + plot.width * this.along(ax, this.xs, x);
    const py = plot.top + plot.height * (1 - this.along(ay, this.ys, y));
    for (const [colour, width] of [
      ["#000", 4],
      ["#fff", 2],
    ]) {
      ctx.strokeStyle = colour;
      ctx.lineWidth = width;
      ctx.beginPath();
      ctx.arc(px, py, unit * 0.45, 0, 7);
      ctx.stroke();
    }
  }

  labels(ctx, plot, unit, font) {
    const [ax, ay] = this.axes();
    ctx.fillStyle = css("--soft");
    ctx.font = font;
    ctx.textAlign = "center";
    const ticks = ({ kind, low, high }) => {
      if (kind === "log") return [0.1, 0.3, 1, 3, 10];
      const step = 0.2 * 10 ** Math.round(Math.log10(high - low)); // 0.2 for exponents, 200 for learning rates
      const first = Math.ceil(low / step - 1e-9);
      return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
    };
    for (const v of ticks(ax))
      ctx.fillText(show(v), plot.left + plot.width * this.along(ax, this.xs, v), plot.top + plot.height + unit * 1.2);
    ctx.fillText(named(ax), plot.left + plot.width / 2, plot.top + plot.height + unit * 2.8);
    ctx.textAlign = "right";
    for (const v of ticks(ay))
      ctx.fillText(show(v), plot.left - unit * 0.4, plot.top + plot.height * (1 - this.along(ay, this.ys, v)) + unit * 0.3);
    ctx.save();
    ctx.translate(unit, plot.top + plot.height / 2);
    ctx.rotate(-Math.PI / 2);
    ctx.textAlign = "center";
    ctx.fillText(named(ay), 0, 0);
    ctx.restore();
  }

  bar(ctx, plot, unit, scale, seen) {
    if (!seen.length) return;
    const left = plot.left + plot.width + unit * 1.2;
    const steps = scale.levels ?? 64;
    ctx.textAlign = "left";
    for (let i = 0; i < steps; i++) {
      ctx.fillStyle = scale.of(scale.at((i + 0.5) / steps));
      ctx.fillRect(left, plot.top + plot.height * (1 - (i + 1) / steps), unit, plot.height / steps + 0.6);
    }
    ctx.fillStyle = css("--soft");
    const marks = scale.levels ? Array.from({ length: steps }, (_, i) => (i + 0.5) / steps) : [0, 0.25, 0.5, 0.75, 1];
    for (const u of marks) {
      const v = scale.at(u);
      const text =
        this.page.state.layer === "gain" ? `${Math.round(100 * v)} %` : scale.levels ? String(Math.round(v)) : show(v, 2);
      ctx.fillText(text, left + unit * 1.4, plot.top + plot.height * (1 - u) + unit * 0.3);
    }
  }

  // --- pointing -----------------------------------------------------------------------------

  cellAt(event) {
    const { plot } = this.layout();
    const box = this.canvas.getBoundingClientRect();
    const i = Math.floor(((event.clientX - box.left - plot.left) / plot.width) * this.xs.length);
    const j = Math.floor((1 - (event.clientY - box.top - plot.top) / plot.height) * this.ys.length);
    return i >= 0 && j >= 0 && i < this.xs.length && j < this.ys.length ? [i, j] : null;
  }

  point(where) {
    this.where = where;
    const cell = where && this.cells.get(`${this.xs[where[0]]} ${this.ys[where[1]]}`);
    this.tip.hidden = !cell;
    if (!cell) return;
    const { plot, unit } = this.layout();
    const [ax, ay] = this.axes();
    const lines = [`${ax.symbol} = ${show(this.xs[where[0]])}, ${ay.symbol} = ${show(this.ys[where[1]])}`];
    if (cell.error) lines.push("no theory here");
    else {
      lines.push(
        `test error ${show(cell.test_error)}${cell.coarse ? " (coarse)" : ""}`,
        `training error ${show(cell.train_error)}`,
      );
      if (cell.degree !== undefined) lines.push(cell.degree === null ? "no degree rule" : `degree ${cell.degree}`);
      if (cell.gain !== undefined) lines.push(`gain ${show(100 * cell.gain, 3)} %`);
    }
    this.tip.replaceChildren(...lines.map((text, i) => el("div", {}, i ? text : el("b", {}, text))));
    const x = plot.left + ((where[0] + 1) * plot.width) / this.xs.length;
    const right = x > plot.left + plot.width / 2;
    this.tip.style.left = right ? "" : `${x + 8}px`;
    this.tip.style.right = right ? `${this.canvas.clientWidth - x + plot.width / this.xs.length + 8}px` : "";
    this.tip.style.top = `${plot.top + plot.height * (1 - (where[1] + 1) / this.ys.length) + unit}px`;
    this.page.say(lines.join("; "));
  }

  go(where) {
    if (!where) return;
    const [ax, ay] = this.axes();
    const { tables } = this.page.state;
    setKey(tables, ax.key, written(ax, this.xs[where[0]], tables));
    setKey(tables, ay.key, written(ay, this.ys[where[1]], tables));
    this.page.changed("value");
  }

  key(event) {
    const move = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (event.key === "Enter") this.go(this.where);
    if (!move || !this.xs) return;
    event.preventDefault();
    const [i, j] = this.where ?? [Math.floor(this.xs.length / 2), Math.floor(this.ys.length / 2)];
    const clamp = (v, n) => Math.min(n - 1, Math.max(0, v));
    this.point([clamp(i + move[0], this.xs.length), clamp(j + move[1], this.ys.length)]);
  }

  spec() {
    return mapSpec(this.page.about, this.page.state, SIZES[0]);
  }

  table() {
    const [ax, ay] = this.axes();
    const rows = [[ax.key, ay.key, ...Object.keys(LAYERS), "nodes"]];
    for (const x of this.xs) {
      for (const y of this.ys) {
        const cell = this.cells.get(`${x} ${y}`) ?? {};
        rows.push([
          x,
          y,
          ...Object.keys(LAYERS).map((layer) => cell[layer] ?? ""),
          cell.coarse === undefined ? "" : cell.coarse ? "coarse" : "accurate",
        ]);
      }
    }
    return rows;
  }

  destroy() {
    this.watch.disconnect();
    this.node.remove();
  }
}
