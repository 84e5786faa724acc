// The two plots: how much ran at once over the whole run, and the lanes of the visible part.
import uPlot from "uplot";
import { ticks } from "../units";
import type { Timeline } from "./data";
import { drawScene, rowsOf, type Scene } from "./draw";

const LETTER = 6.6;
const OVERVIEW_HEIGHT = 76;
const MOST_OVERVIEW_BINS = 1100;
const PAD_RIGHT = 28;

const timeAxis = (scene: Scene): uPlot.Axis => ({
  stroke: () => scene.colours.soft,
  grid: { stroke: () => scene.colours.line, width: 1 },
  ticks: { stroke: () => scene.colours.line, width: 1, size: 4 },
  font: "11px system-ui, sans-serif",
  space: 90,
  size: 30,
  values: (_u, values) => ticks(values),
});

/** Room for the longest row label; both plots need the same, so that their times line up. */
export function labelRoom(timeline: Timeline): number {
  const longest = Math.max(...rowsOf(timeline).map((label) => label.length));
  return Math.min(280, Math.max(84, Math.ceil(longest * LETTER) + 12));
}

const pixels = (u: uPlot, from: number, to: number): { left: number; width: number } => {
  const left = Math.max(0, u.valToPos(from, "x"));
  return { left, width: Math.max(2, u.valToPos(to, "x") - left) };
};

/** Mean number of busy lanes, and the share of time in which the critical path is at work, per bin. */
function load(timeline: Timeline): [number[], number[], number[]] {
  const level = timeline.levels.find((each) => each.bins <= MOST_OVERVIEW_BINS) ?? timeline.levels.at(-1)!;
  const at: number[] = [];
  const busy: number[] = [];
  const path: number[] = [];
  for (let bin = 0; bin < level.bins; bin += 1) {
    let running = 0;
    let critical = 0;
    for (let cell = bin; cell < level.busy.length; cell += level.bins) {
      running += level.busy[cell] / 255;
      critical += level.path[cell] / 255;
    }
    at.push(bin * level.width);
    busy.push(running);
    path.push(Math.min(1, critical));
  }
  at.push(level.bins * level.width);
  busy.push(0);
  path.push(0);
  return [at, busy, path];
}

export function overviewPlot(
  target: HTMLElement,
  scene: Scene,
  width: number,
  zoom: (from: number, to: number) => void,
): uPlot {
  const stepped = uPlot.paths.stepped!({ align: 1 });
  const options: uPlot.Options = {
    width,
    height: OVERVIEW_HEIGHT,
    legend: { show: false },
    padding: [12, PAD_RIGHT, 6, 0],
    cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false }, y: false },
    scales: { x: { time: false, range: [0, scene.timeline.span] }, y: { range: (_u, _low, high) => [0, Math.max(1, high)] } },
    axes: [
      { ...timeAxis(scene), show: false },
      {
        size: labelRoom(scene.timeline),
        stroke: () => scene.colours.soft,
        font: "11px system-ui, sans-serif",
        grid: { show: false },
        ticks: { show: false },
        splits: (u) => [0, Math.ceil(u.scales.y.max ?? 1)],
        values: (_u, values) => values.map((value) => (value ? `${value} at once` : "0")),
      },
    ],
    series: [
      {},
      { paths: stepped, stroke: () => scene.colours.soft, fill: () => `${scene.colours.accent}33`, width: 1, points: { show: false } },
      { paths: stepped, fill: () => `${scene.colours.path}55`, width: 0, points: { show: false } },
    ],
    hooks: {
      setSelect: [
        (u) => {
          // A selection that the other plot reports back is no request.
          if (u.cursor.left! < 0 || u.select.width < 3) return;
          zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
        },
      ],
    },
  };
  return new uPlot(options, load(scene.timeline), target);
}

/** Show in the overview which part the lanes show. */
export function markRange(overview: uPlot, from: number, to: number, span: number): void {
  const whole = from <= 0 && to >= span;
  const { left, width } = whole ? { left: 0, width: 0 } : pixels(overview, from, to);
  overview.setSelect({ left, width, top: 0, height: whole ? 0 : overview.over.clientHeight }, false);
}

export function lanesPlot(
  target: HTMLElement,
  scene: Scene,
  width: number,
  height: number,
  changed: (from: number, to: number) => void,
  hovered: (u: uPlot) => void,
): uPlot {
  const { timeline } = scene;
  const rows = rowsOf(timeline);
  const options: uPlot.Options = {
    width,
    height,
    legend: { show: false },
    padding: [4, PAD_RIGHT, 0, 0],
    cursor: {
      drag: { x: true, y: false, setScale: true, dist: 4 },
      points: { show: false },
      y: false,
      bind: {
        mousedown: (_u, _target, handler) => (event) => {
          if (!event.shiftKey) handler(event);
          return null;
        },
      },
    },
    scales: {
      x: { time: false, range: (_u, low, high) => [Math.max(0, low), Math.min(timeline.span, high)] },
      y: { range: [0, rows.length], dir: -1 },
    },
    axes: [
      timeAxis(scene),
      {
        size: labelRoom(scene.timeline),
        stroke: () => scene.colours.text,
        font: "12px system-ui, sans-serif",
        grid: { show: false },
        ticks: { show: false },
        splits: () => rows.map((_, i) => i + 0.45),
        values: () => rows,
      },
    ],
    series: [{}, { show: true, stroke: "transparent", points: { show: false } }],
    hooks: {
      draw: [(u) => drawScene(u, scene)],
      setScale: [
        (u, key) => {
          if (key === "x") changed(u.scales.x.min ?? 0, u.scales.x.max ?? timeline.span);
        },
      ],
      setCursor: [hovered],
    },
  };
  return new uPlot(options, [[0, timeline.span], [0, 0]], target);
}
