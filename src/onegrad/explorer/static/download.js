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
  const cell = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : value ?? "");
  save(name, new Blob([rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n"], { type: "text/csv" }));
}

/** All canvases of the panels on one, with title, legend and settings. */
export function savePng(name, { title, caption, panels, legend }) {
  const ratio = devicePixelRatio;
  const unit = rem() * ratio;
  const frame = panels.getBoundingClientRect();
  const entries = [...legend.children];
  const head = 2.2 * unit + (entries.length ? 1.8 * unit : 0);
  const lines = wrap(caption, Math.max(30, Math.floor(frame.width / (rem() * 0.48))));
  const canvas = el("canvas", { width: frame.width * ratio + 2 * unit, height: frame.height * ratio + head + (1.2 + 1.3 * lines.length) * unit });
  const ctx = canvas.getContext("2d");
  const family = getComputedStyle(document.body).fontFamily;
  ctx.fillStyle = css("--panel");
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.fillStyle = css("--ink");
  ctx.font = `600 ${1.1 * unit}px ${family}`;
  ctx.fillText(title, unit, 1.7 * unit);
  ctx.font = `${0.85 * unit}px ${family}`;
  let x = unit;
  for (const entry of entries) {
    const swatch = entry.querySelector("canvas");
    if (swatch) ctx.drawImage(swatch, x, 2.5 * unit);
    x += (swatch?.width ?? 0) + 0.4 * unit;
    ctx.fillText(entry.textContent, x, 3.3 * unit);
    x += ctx.measureText(entry.textContent).width + 1.2 * unit;
  }
  for (const heading of panels.querySelectorAll("h3")) {
    const box = heading.getBoundingClientRect();
    ctx.fillText(heading.textContent, unit + (box.left - frame.left) * ratio, head + (box.top - frame.top) * ratio + 0.9 * unit);
  }
  for (const source of panels.querySelectorAll("canvas")) {
    const box = source.getBoundingClientRect();
    ctx.drawImage(source, unit + (box.left - frame.left) * ratio, head + (box.top - frame.top) * ratio, box.width * ratio, box.height * ratio);
  }
  ctx.fillStyle = css("--soft");
  lines.forEach((line, i) => ctx.fillText(line, unit, head + frame.height * ratio + (1.2 + 1.3 * i) * unit));
  canvas.toBlob((blob) => save(name, blob), "image/png");
}

function wrap(text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines[lines.length - 1].length + word.length > width) lines.push("");
    lines[lines.length - 1] += (lines[lines.length - 1] ? " " : "") + word;
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
