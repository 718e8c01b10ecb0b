// The icons: one path each, drawn in the colour of the text beside it.
import { html } from "./vendor/preact-htm.js";

const PATHS = {
  again: "M19 12a7 7 0 1 1-2-5l2 2M19 4v5h-5",
  arrow: "M5 12h14M13 6l6 6-6 6",
  back: "M19 12H5M11 6l-6 6 6 6",
  bin: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  chart: "M4 20h16M7 20v-7M12 20V5M17 20v-11",
  check: "m5 12.5 4.5 4.5L19 7.5",
  chevron: "m9 6 6 6-6 6",
  clip: "m20 11-8 8a5 5 0 0 1-7-7l8-8a3.3 3.3 0 0 1 5 5l-8 8a1.7 1.7 0 0 1-2-2l7-7",
  copy: "M9 9h10v10H9zM5 15V5h10",
  cross: "m7 7 10 10M17 7 7 17",
  down: "M12 5v14M6 13l6 6 6-6",
  gate: "M4 20V9l8-5 8 5v11M9 20v-6h6v6",
  hand: "M12 3 5 6v5c0 5 3 8 7 10 4-2 7-5 7-10V6zM12 9v4M12 16v.01",
  mark: "M5 8h9a4.5 4.5 0 0 1 0 9H5M8 4.500 4.500 8 8 11.500M8 13.500 4.500 17 8 20.500",
  menu: "M4 7h16M4 12h16M4 17h10",
  pen: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
  plus: "M12 5v14M5 12h14",
  runs: "M4 6h8M8 12h8M12 18h8",
  scissors: "M6 9a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5M6 20a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5M8 8l12 9M8 16 20 7",
  search: "m20 20-4-4M11 17a6 6 0 1 0 0-12 6 6 0 0 0 0 12",
  spark: "M12 4v4M12 16v4M4 12h4M16 12h4M7 7l2 2M15 15l2 2M17 7l-2 2M9 15l-2 2",
  stop: "M7 7h10v10H7z",
  tool: "M14 7a4 4 0 0 1 5-4l-2.500 2.500 2 2L21 5a4 4 0 0 1-5 5l-8 8-3-3z",
  undo: "M9 7 4 12l5 5M4 12h10a5 5 0 0 1 5 5",
  up: "M12 19V5M6 11l6-6 6 6",
  warn: "M12 4 2.500 20h19zM12 10v4M12 17v.01",
};

export const icon = (name) =>
  html`<svg class=${`icon icon-${name}`} viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
