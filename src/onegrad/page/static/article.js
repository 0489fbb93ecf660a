// A page of scenes that needs no server: its numbers stand in it, or beside it as story.json.

import { curveScene, WORDS } from "./scenes.js";
import { stepScene } from "./step_scene.js";

const KINDS = { step: stepScene, curves: curveScene };

const piece = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};

/** One scene: its heading is a link to it; the frame of it alone is what a slide embeds. */
function section(scene, number, home) {
  const { title, text, ask } = { ...WORDS[scene.id], ...scene.words };
  const words = piece("div", { class: "words" });
  words.innerHTML = text ?? ""; // our own words, no text from outside
  const body = piece("div", { class: "scene-body" });
  const alone = new URL(location.href.split("#")[0].split("?")[0]);
  alone.search = `?scene=${scene.id}`;
  const foot = piece("p", { class: "foot" }, ...(ask ? [piece("b", {}, "Try: "), ask, " "] : []),
    piece("a", { href: alone.href }, "This scene alone, for a slide"));
  const parts = [piece("h2", {}, piece("a", { href: `#${scene.id}` }, `${number}. ${title}`)), words, body, foot];
  const made = piece("section", { class: "scene", id: scene.id }, ...parts);
  home.append(made);
  return KINDS[scene.kind](body, scene);
}

async function read() {
  const inside = document.getElementById("data");
  return inside ? JSON.parse(inside.textContent) : (await fetch("story.json")).json();
}

async function start() {
  const { title, lead, scenes } = await read();
  if (title) document.getElementById("title").textContent = document.title = title;
  if (lead !== undefined) document.getElementById("lead").textContent = lead;
  const only = new URLSearchParams(location.search).get("scene");
  const chosen = scenes.filter((scene) => !only || scene.id === only);
  document.body.classList.toggle("alone", Boolean(only));
  const home = document.getElementById("scenes");
  const built = chosen.map((scene) => section(scene, 1 + scenes.indexOf(scene), home));
  document.getElementById("contents").replaceChildren(...scenes.map((scene, i) =>
    piece("a", { href: `#${scene.id}` }, `${i + 1}. ${{ ...WORDS[scene.id], ...scene.words }.title}`)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => built.forEach(({ paint }) => paint()));
  document.body.dataset.ready = "true";
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

if (document.getElementById("scenes")) start();
