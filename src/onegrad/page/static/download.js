// What one takes home: a picture, the numbers, the spec.

import { $, css, el, rem } from "./dom.js";

function save(name, blob) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 5000);
}

export function saveCsv(name, rows) {
  const cell = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : (value ?? ""));
  save(name, new Blob([rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n"], { type: "text/csv" }));
}

/** All canvases of the panels on one, with title, legend and settings. */
export function savePng(name, { title, caption, panels, legend }) {
  const ratio = devicePixelRatio;
  const unit = rem() * ratio;
  const frame = panels.getBoundingClientRect();
  const width = panels.scrollWidth; // in a narrow window the panels stand beside each other
  const place = (node) => {
    const box = node.getBoundingClientRect();
    return { left: unit + (box.left - frame.left + panels.scrollLeft) * ratio, top: head + (box.top - frame.top) * ratio, box };
  };
  const family = getComputedStyle(document.body).fontFamily;
  const rows = legendRows([...legend.children], width * ratio, unit, `${0.85 * unit}px ${family}`);
  const head = (2.2 + 1.8 * rows.length) * unit;
  const lines = wrap(caption, Math.max(30, Math.floor(width / (rem() * 0.48))));
  const canvas = el("canvas", {
    width: width * ratio + 2 * unit,
    height: frame.height * ratio + head + (1.2 + 1.3 * lines.length) * unit,
  });
  const ctx = canvas.getContext("2d");
  ctx.fillStyle = css("--panel");
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = css("--ink");
  ctx.font = `600 ${1.1 * unit}px ${family}`;
  ctx.fillText(title, unit, 1.7 * unit);
  ctx.font = `${0.85 * unit}px ${family}`;
  rows.forEach((row, i) =>
    row.forEach(({ swatch, text, x }) => {
      ctx.drawImage(swatch, unit + x, (2.5 + 1.8 * i) * unit);
      ctx.fillText(text, unit + x + swatch.width + 0.4 * unit, (3.3 + 1.8 * i) * unit);
    }),
  );
  for (const heading of panels.querySelectorAll("h3")) {
    const { left, top } = place(heading);
    ctx.fillText(heading.textContent, left, top + 0.9 * unit);
  }
  for (const source of panels.querySelectorAll("canvas")) {
    const { left, top, box } = place(source);
    ctx.drawImage(source, left, top, box.width * ratio, box.height * ratio);
  }
  ctx.fillStyle = css("--soft");
  lines.forEach((line, i) => ctx.fillText(line, unit, head + frame.height * ratio + (1.2 + 1.3 * i) * unit));
  canvas.toBlob((blob) => save(name, blob), "image/png");
}

/** The entries of the legend in rows that fit into `width`, each with its place. */
function legendRows(entries, width, unit, font) {
  const ctx = el("canvas").getContext("2d");
  ctx.font = font;
  const rows = [];
  let x = Infinity;
  for (const entry of entries) {
    const swatch = entry.querySelector("canvas");
    const text = entry.textContent;
    const wide = swatch.width + 0.4 * unit + ctx.measureText(text).width;
    if (x + wide > width) {
      rows.push([]);
      x = 0;
    }
    rows[rows.length - 1].push({ swatch, text, x });
    x += wide + 1.2 * unit;
  }
  return rows;
}

/** Lines of at most `width` characters; a link may also break after its signs &. */
function wrap(text, width) {
  const lines = [""];
  for (const part of text.split(/(?<=[ &])/)) {
    if (lines[lines.length - 1].length + part.length > width) lines.push("");
    lines[lines.length - 1] += part;
  }
  return lines;
}

/** A dialog with a text to copy. */
export function showText(title, help, text) {
  $("dialog-title").textContent = title;
  $("dialog-help").textContent = help;
  $("dialog-text").value = text;
  $("dialog-copy").textContent = "Copy";
  $("dialog-copy").onclick = async () => {
    const done = await copyText(text);
    $("dialog-copy").textContent = done ? "Copied" : "Press Ctrl-C";
    if (!done) $("dialog-text").select();
  };
  $("dialog").showModal();
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
