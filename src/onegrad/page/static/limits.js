// The limit of large n on isotropic data: constant between the borders of the degree, so drawn as steps.

export const LIMIT = "isotropic-limit";
export const isTheory = (model) => model.startsWith("theory") || model === LIMIT || model === "surrogate";

// τ at which one more degree is learned: 0, 1/4, 1/3, 3/8, …
const BORDERS = Array.from({ length: 16 }, (_, degree) => degree / (2 * degree + 2));

/** Draw the limit of one curve; against τ it jumps at the borders and nowhere else. */
export function drawLimit(pen, axis, values, limits, quantity, ink) {
  const { ctx, scale } = pen;
  ctx.strokeStyle = ink;
  ctx.lineWidth = 1.4 * scale;
  ctx.setLineDash([9 * scale, 3 * scale, 2 * scale, 3 * scale]);
  ctx.beginPath();
  let open = null; // the point before, where there is one
  values.forEach((x, i) => {
    const y = limits[i]?.[quantity];
    if (!Number.isFinite(y)) {
      open = null;
      return;
    }
    if (open === null) ctx.moveTo(pen.x(x), pen.y(y));
    else {
      const border = axis === "scaling.exponent" ? BORDERS.findLast((b) => b >= values[i - 1] && b < x) : undefined;
      if (border !== undefined) {
        ctx.lineTo(pen.x(border), pen.y(open));
        ctx.lineTo(pen.x(border), pen.y(y));
      }
      ctx.lineTo(pen.x(x), pen.y(y));
    }
    open = y;
  });
  ctx.stroke();
  ctx.setLineDash([]);
}
