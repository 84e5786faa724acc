// Starts the timeline: decodes its data, makes the plots, connects buttons, pointer and keys.
import type uPlot from "uplot";
import { find } from "../elements";
import { hideTooltip, showTooltip } from "../tooltip";
import { duration, moment } from "../units";
import { readColours } from "./colours";
import { decode, type Timeline } from "./data";
import { rowsOf, type Scene } from "./draw";
import { connectKeys } from "./keys";
import { connectPointer } from "./pointer";
import { describeBin, describeKept, describeRange, pickKept, pickRange } from "./pick";
import { lanesPlot, markRange, overviewPlot } from "./plots";

const TALLEST = 620;
const AXIS = 36;
/** Nobody needs to see less than this many ns. */
const NARROWEST = 20;

/** What buttons, pointer and keys can do with the timeline. */
export interface Controller {
  scene: Scene;
  lanes: uPlot;
  zoom(from: number, to: number): void;
  /** Zoom by a factor around a time; below 1 shows less. */
  scale(factor: number, around?: number): void;
  pan(share: number): void;
  whole(): void;
  select(entry: number): void;
  selectRange(entry: number): void;
}

function laneHeight(lanes: number): number {
  return Math.max(15, Math.min(40, Math.floor(TALLEST / lanes)));
}

function range(u: uPlot, timeline: Timeline): [number, number] {
  return [u.scales.x.min ?? 0, u.scales.x.max ?? timeline.span];
}

function describeAt(timeline: Timeline, row: number, at: number, pixelsPerNs: number): string[] | null {
  const lane = row - timeline.ranges.rows.length;
  if (lane < 0) {
    const marked = pickRange(timeline, row, at, 2 / pixelsPerNs);
    return marked >= 0 ? describeRange(timeline, marked) : null;
  }
  const found = pickKept(timeline, lane, at, 2 / pixelsPerNs);
  const wide = found >= 0 && timeline.kept.duration[found] * pixelsPerNs >= 1.5;
  return found >= 0 && (wide || timeline.complete)
    ? describeKept(timeline, found)
    : describeBin(timeline, lane, at, pixelsPerNs * devicePixelRatio);
}

function hover(u: uPlot, scene: Scene): void {
  const { left, top } = u.cursor;
  if (left === undefined || top === undefined || left < 0 || top < 0) {
    hideTooltip();
    return;
  }
  const { timeline } = scene;
  const rows = rowsOf(timeline).length;
  const row = Math.min(rows - 1, Math.floor((top / u.over.clientHeight) * rows));
  const at = u.posToVal(left, "x");
  const pixelsPerNs = u.over.clientWidth / (u.posToVal(u.over.clientWidth, "x") - u.posToVal(0, "x"));
  const lines = describeAt(timeline, row, at, pixelsPerNs);
  if (!lines) {
    hideTooltip();
    return;
  }
  const box = u.over.getBoundingClientRect();
  showTooltip(box.left + left, box.top + top, lines);
}

function controller(scene: Scene, overview: uPlot, lanes: uPlot): Controller {
  const { timeline } = scene;
  const zoom = (from: number, to: number): void => {
    const width = Math.max(NARROWEST, Math.min(to - from, timeline.span));
    const low = Math.max(0, Math.min(from, timeline.span - width));
    lanes.setScale("x", { min: low, max: low + width });
  };
  const show = (begin: number, length: number, lines: string[]): void => {
    const [from, to] = range(lanes, timeline);
    const width = Math.max(to - from > 60 * length ? 30 * length : to - from, NARROWEST);
    const outside = begin < from || begin + length > to;
    if (outside || width !== to - from) zoom(begin + length / 2 - width / 2, begin + length / 2 + width / 2);
    lanes.redraw(false);
    const spoken = find<HTMLElement>("timeline-spoken");
    if (spoken) spoken.textContent = lines.join(", ");
    overview.redraw(false);
  };
  return {
    scene,
    lanes,
    zoom,
    scale(factor, around) {
      const [from, to] = range(lanes, timeline);
      const middle = around ?? (from + to) / 2;
      zoom(middle - (middle - from) * factor, middle + (to - middle) * factor);
    },
    pan(share) {
      const [from, to] = range(lanes, timeline);
      zoom(from + (to - from) * share, to + (to - from) * share);
    },
    whole: () => zoom(0, timeline.span),
    select(entry) {
      [scene.selected, scene.selectedRange] = [entry, -1];
      show(timeline.kept.begin[entry], timeline.kept.duration[entry], describeKept(timeline, entry));
    },
    selectRange(entry) {
      [scene.selected, scene.selectedRange] = [-1, entry];
      const from = Math.max(0, timeline.ranges.begin[entry]);
      const to = Math.min(timeline.span, timeline.ranges.begin[entry] + timeline.ranges.duration[entry]);
      show(from, to - from, describeRange(timeline, entry));
    },
  };
}

function connectControls(control: Controller): void {
  const actions: Record<string, () => void> = {
    in: () => control.scale(0.5),
    out: () => control.scale(2),
    left: () => control.pan(-0.5),
    right: () => control.pan(0.5),
    all: () => control.whole(),
  };
  for (const button of document.querySelectorAll<HTMLButtonElement>("#timeline-controls [data-do]")) {
    button.addEventListener("click", () => actions[button.dataset.do ?? ""]?.());
  }
  const { scene, lanes } = control;
  const dim = find<HTMLInputElement>("timeline-dim");
  dim?.addEventListener("change", () => {
    scene.dim = dim.checked;
    lanes.redraw(false);
  });
  const only = find<HTMLSelectElement>("timeline-only");
  if (!only) return;
  scene.timeline.symbols.slice(0, 100).forEach((symbol, i) => only.append(new Option(symbol.name, String(i))));
  only.addEventListener("change", () => {
    scene.only = only.value === "" ? -1 : Number(only.value);
    lanes.redraw(false);
  });
}

export function startTimeline(): void {
  const source = find<HTMLScriptElement>("timeline-data");
  const target = find<HTMLElement>("timeline-plots");
  if (!source || !target) return;
  const timeline = decode(source.textContent ?? "");
  target.replaceChildren(); // what kept the room of the plots
  const scene: Scene = { timeline, colours: readColours(), dim: true, only: -1, selected: -1, selectedRange: -1 };
  const output = find<HTMLOutputElement>("timeline-range");
  const rows = rowsOf(timeline).length;
  const height = laneHeight(rows) * rows + AXIS;
  const width = (): number => Math.max(320, target.clientWidth);
  const overview = overviewPlot(target, scene, width(), (from, to) => control.zoom(from, to));
  const shown = (from: number, to: number): void => {
    markRange(overview, from, to, timeline.span);
    const apart = (to - from) / 1000;
    if (output) output.textContent = `${moment(from, apart)} to ${moment(to, apart)}: ${duration(to - from)}`;
  };
  const lanes = lanesPlot(target, scene, width(), height, shown, (u) => hover(u, scene));
  const control = controller(scene, overview, lanes);
  shown(0, timeline.span);
  connectControls(control);
  connectPointer(control);
  connectKeys(control, target);
  new ResizeObserver(() => {
    overview.setSize({ width: width(), height: overview.height });
    lanes.setSize({ width: width(), height });
    shown(...range(lanes, timeline));
  }).observe(target);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    scene.colours = readColours();
    overview.redraw(false, true);
    lanes.redraw(false, true);
  });
}
