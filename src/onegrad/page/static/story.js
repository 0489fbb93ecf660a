// The story: six scenes on one page, computed as they are scrolled to; each scene is a link.

import * as curve from "./curve.js";
import * as features from "./features.js";
import * as spectrum from "./spectrum.js";
import { $, el } from "./dom.js";
import { Link } from "./link.js";
import { fromPreset } from "./presets.js";
import { learnNames, sliderOf, taskOf, toHash, withTask } from "./state.js";
import { useTheme } from "./theme.js";

const VIEWS = { curve: curve.Curve, spectrum: spectrum.View, features: features.Features };
const SCENES = [
  {
    title: "One step can be worth a lot",
    task: "isotropic",
    text: "A two-layer network takes one gradient step on its first layer; then its second layer is fitted by ridge regression. The labels have a linear and a quadratic part. Without the step (dashed) the network learns the linear part alone. The larger the step, the more of the quadratic part is learned: no network was trained for the line, and trained networks land on it.",
  },
  {
    title: "The theory meets the published networks",
    preset: "demir2025/fig1a",
    text: "Data from two clouds, each stretched along one direction, and 1000 inputs. Crosses are what Demir and Dogan measured on networks that they trained; they drew one data set for the whole figure, which moves a whole curve up or down, while the line is the average over data sets.",
  },
  {
    title: "Structure in the data helps more than a large step",
    preset: "demir2025/fig1b",
    text: "Structure and step have a strength together, β, and α shares it out: all of it in the data at α = 0, all in the learning rate at α = 1. The same strength helps far more in the data.",
  },
  {
    title: "The stronger, the better, in steps of polynomials",
    preset: "demir2025/fig1c",
    text: "As β grows the network behaves like one whose activation is a polynomial, of degree one up to β = ½, two up to ⅔, three up to ¾: more strength, a higher degree, a smaller error.",
  },
  {
    title: "What was learned stands out as spikes",
    task: "isotropic",
    changes: { view: "spectrum" },
    text: "Singular values of random features form a bulk. The step adds one direction to the weights; through the activation it becomes one spike for each polynomial degree of that direction (Moniri, Lee, Hassani and Dobriban).",
  },
  {
    title: "Low degrees come first",
    task: "isotropic",
    changes: { view: "features" },
    text: "What the trained network computes along the teacher's direction, degree by degree: blue bars with the step, grey without it, outlines for the target. Degree two is what the step has added.",
  },
];

const scenes = [];
const jobs = []; // what waits to be computed, drafts first
let current = null;
let link = null;

/** The page that a view believes to live on: one scene of the story. */
function sceneOf(about, scene, index) {
  const preset = scene.preset && about.presets.flatMap((group) => group.presets).find(({ name }) => name === scene.preset);
  const state = preset ? fromPreset(about, preset) : { ...withTask(about, scene.task), ...scene.changes };
  const id = `scene-${index + 1}`;
  const [said, options, legend, panels, status] = [
    el("p", { class: "answer" }),
    el("div", { hidden: true }),
    el("div", { class: "legend" }),
    el("div", { class: "panels" }),
    el("p", { class: "status", "aria-live": "polite" }),
  ];
  const section = el(
    "section",
    { class: "scene", id },
    el("h2", {}, el("a", { href: `#${id}`, title: "A link to this scene" }, `${index + 1}. ${scene.title}`)),
    el("p", { class: "sentence" }, scene.text),
    said,
    options,
    legend,
    panels,
    status,
    el(
      "p",
      {},
      el("a", { href: `./${toHash(state)}` }, "Move its sliders"),
      preset ? ` · ${preset.title}, the published figure ${preset.name.split("fig")[1]}` : "",
    ),
  );
  const finished = () => {
    if (current?.page === page) current = null;
    next();
  };
  const page = {
    about,
    state,
    options,
    legend,
    panels,
    section,
    link,
    runs: { dots: new Map(), setting: null },
    slider: (key) => sliderOf(about, key, taskOf(state.tables)),
    sliders: () => [],
    isDrawn: () => true,
    answer: (text, numbers = "") => preset || said.replaceChildren(el("b", {}, text), ` ${numbers}`),
    say() {},
    measure() {},
    stop() {},
    progress() {},
    pressed() {},
    changed() {},
    rebuild() {},
    task() {},
    later: (ask) => {
      jobs.push({ page, ask, draft: false });
      finished();
    },
    finished,
    settled: (quality, { failed } = {}) => {
      section.dataset.quality = quality;
      status.textContent = failed ?? (quality === "coarse" ? "coarse nodes, refining…" : "");
      if (quality !== "coarse" && page.view?.beside === undefined) finished(); // pictures beside a curve still come
    },
    refuse: (text) => {
      status.textContent = text;
      section.dataset.quality = "refused";
      finished();
    },
    warn: (text) => (status.textContent = text),
    draw: () => {
      page.view?.destroy();
      panels.replaceChildren();
      page.view = new VIEWS[state.view](page);
      page.view.refresh(performance.now());
    },
  };
  return page;
}

/** Compute what waits; a scene that has just come into sight goes before refinements. */
function next() {
  if (current || !jobs.length) return;
  const draft = jobs.findIndex((job) => job.draft);
  [current] = jobs.splice(Math.max(0, draft), 1);
  current.ask();
}

function show(page) {
  jobs.push({ page, ask: page.draw, draft: true });
  if (current && !current.draft) {
    jobs.push(current);
    current = null;
  } // a refinement can wait
  next();
}

function fill(about) {
  learnNames(about);
  scenes.push(...SCENES.map((scene, i) => sceneOf(about, scene, i)));
  $("scenes").replaceChildren(...scenes.map(({ section }) => section));
  $("contents").replaceChildren(...SCENES.map(({ title }, i) => el("a", { href: `#scene-${i + 1}` }, `${i + 1}. ${title}`)));
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        seen.unobserve(target);
        show(scenes.find(({ section }) => section === target));
      }
    },
    { rootMargin: "200px" },
  );
  for (const { section } of scenes) seen.observe(section);
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

useTheme($("theme"), () => {
  for (const page of scenes) if (page.view) show(page);
});
link = new Link({
  hello(about) {
    $("offline").hidden = true;
    if (!scenes.length) fill(about);
  },
  lost() {
    $("offline").hidden = false;
  },
});
