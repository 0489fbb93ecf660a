// Colours of a map's values.

// Cividis: even in lightness, and the same for colour-blind eyes.
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];
const BELOW = ["#D55E00", "#f4d9c6", "#f5f5f2"]; // a loss by the step, up to none

/** A colour for a value, and the value at a height 0…1 of the colour bar. */
export function colours(layer, seen) {
  const low = Math.min(...seen),
    high = Math.max(...seen);
  if (layer === "degree") {
    const steps = [...new Set(seen)].sort((a, b) => a - b); // one colour each: near β = 1 they jump far
    return {
      levels: steps.length,
      of: (v) => blend(CIVIDIS, steps.length > 1 ? steps.indexOf(v) / (steps.length - 1) : 0.5),
      at: (u) => steps[Math.floor(u * steps.length)],
    };
  }
  if (layer === "gain") {
    const top = Math.max(high, 0.02),
      bottom = Math.min(low, 0);
    return {
      of: (v) =>
        v < 0 ? blend(BELOW, 1 - v / Math.min(bottom, -0.02)) : blend(["#f5f5f2", "#8dbfe0", "#0072B2", "#00304b"], v / top),
      at: (u) => bottom + u * (top - bottom),
    };
  }
  const log = low > 0 && high / low > 8;
  const f = log ? Math.log : (x) => x,
    g = log ? Math.exp : (x) => x;
  const span = f(high) - f(low) || 1;
  return { of: (v) => blend(CIVIDIS, (f(v) - f(low)) / span), at: (u) => g(f(low) + u * span) };
}

/** A text that is read on light cells, or on dark ones. */
export function outlined(ctx, light, text, x, y) {
  ctx.lineWidth = 3;
  ctx.strokeStyle = light ? "rgb(255 255 255 / 80%)" : "rgb(0 0 0 / 60%)";
  ctx.fillStyle = light ? "#333" : "#fff";
  for (const paint of ["strokeText", "fillText"]) ctx[paint](text, x, y);
}

function blend(stops, u) {
  const t = Math.min(1, Math.max(0, u)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(t));
  const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  const [a, b] = [rgb(stops[i]), rgb(stops[i + 1])];
  return `rgb(${a.map((v, k) => Math.round(v + (b[k] - v) * (t - i))).join(" ")})`;
}
