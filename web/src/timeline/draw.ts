// Lanes on the canvas: bins where dispatches are too many or too narrow, dispatches where they can be told apart.
import type uPlot from "uplot";
import type { Colours } from "./colours";
import { type Level, lowerBound, NO_SYMBOL, type Timeline } from "./data";

export interface Scene {
  timeline: Timeline;
  colours: Colours;
  /** Fade what is not critical. */
  dim: boolean;
  /** The only symbol to show in colour, or -1. */
  only: number;
  /** The selected entry of `kept`, or -1. */
  selected: number;
  /** The selected entry of `ranges`, or -1. */
  selectedRange: number;
}

interface View {
  ctx: CanvasRenderingContext2D;
  left: number;
  top: number;
  height: number;
  from: number;
  to: number;
  scale: number;
  ratio: number;
}

/** Where all dispatches are known: so few are drawn one by one always, so many once bins tell no more. */
const FEW = 400;
const MOST_SINGLE = 6000;
const MOST_LINKS = 500;
const NARROWEST_SINGLE = 1.5;
const FADED = 0.32;
/** Bins wider than this many pixels are drawn low, so that nobody takes them for dispatches. */
const WIDE_BIN = 8;
const LOW = 0.45;

/** Rows of ranges come first, then the lanes. */
export function rowsOf(timeline: Timeline): string[] {
  return [...timeline.ranges.rows, ...timeline.lanes];
}

function viewOf(u: uPlot, lanes: number): View {
  const { left, top, width, height } = u.bbox;
  const from = u.scales.x.min ?? 0;
  const to = u.scales.x.max ?? 1;
  return {
    ctx: u.ctx,
    left,
    top,
    height: height / lanes,
    from,
    to,
    scale: width / (to - from),
    ratio: devicePixelRatio,
  };
}

/** The finest level whose bins are at least a pixel wide. */
export function levelFor(timeline: Timeline, pixelsPerNs: number): Level {
  const levels = timeline.levels;
  return levels.find((level) => level.width * pixelsPerNs >= 1) ?? levels[levels.length - 1];
}

/** Entries of a lane's kept dispatches that may be in view. */
export function keptInView(timeline: Timeline, lane: number, from: number, to: number): [number, number] {
  const { begin, start, longest } = timeline.kept;
  const first = lowerBound(begin, from - longest[lane], start[lane], start[lane + 1]);
  return [first, lowerBound(begin, to, first, start[lane + 1])];
}

function fill(scene: Scene, symbol: number, critical: number): [string, number] {
  const entry = scene.timeline.symbols[symbol];
  if (scene.only >= 0 && symbol !== scene.only) return [scene.colours.line, 0.7];
  return [scene.colours.kernels[entry ? entry.colour : 9], scene.dim ? FADED + (1 - FADED) * critical : 1];
}

function drawBins(scene: Scene, view: View, lane: number, level: Level): void {
  const { ctx } = view;
  const bottom = view.top + lane * view.height + view.height * 0.76;
  const first = Math.max(0, Math.floor(view.from / level.width));
  const last = Math.min(level.bins - 1, Math.floor(view.to / level.width));
  const width = level.width * view.scale;
  const room = view.height * 0.7 * (width > WIDE_BIN * view.ratio ? LOW : 1);
  for (let i = first; i <= last; i += 1) {
    const at = lane * level.bins + i;
    const symbol = level.symbol[at];
    if (symbol === NO_SYMBOL) continue;
    const x = view.left + (i * level.width - view.from) * view.scale;
    const height = Math.max(2 * view.ratio, (room * level.busy[at]) / 255);
    [ctx.fillStyle, ctx.globalAlpha] = fill(scene, symbol, level.path[at] / 255);
    ctx.fillRect(x, bottom - height, width + 0.3, height);
    if (level.path[at]) drawCritical(scene, view, lane, x, width, Math.max(0.25, level.path[at] / 255));
  }
}

function drawCritical(scene: Scene, view: View, lane: number, x: number, width: number, alpha: number): void {
  const { ctx } = view;
  ctx.fillStyle = scene.colours.path;
  ctx.globalAlpha = alpha;
  const y = view.top + lane * view.height + view.height * 0.8;
  ctx.fillRect(x, y, Math.max(width, 1), Math.max(2 * view.ratio, view.height * 0.12));
}

function drawKept(scene: Scene, view: View, lane: number, first: number, end: number, narrowest: number): void {
  const { ctx } = view;
  const kept = scene.timeline.kept;
  const y = view.top + lane * view.height + view.height * 0.06;
  const height = view.height * 0.7;
  for (let i = first; i < end; i += 1) {
    const width = kept.duration[i] * view.scale;
    if (width < narrowest) continue;
    const x = view.left + (kept.begin[i] - view.from) * view.scale;
    // A gap as wide as a hair separates neighbours of one colour.
    const shown = Math.max(1, width > 4 ? width - view.ratio * 0.75 : width);
    if (narrowest > 0) {
      // Bins lie behind; a faded colour must not mix with theirs.
      ctx.fillStyle = scene.colours.background;
      ctx.globalAlpha = 1;
      ctx.fillRect(x, y, shown, height);
    }
    [ctx.fillStyle, ctx.globalAlpha] = fill(scene, kept.symbol[i], kept.path[i]);
    ctx.fillRect(x, y, shown, height);
    if (width > 60 * view.ratio) {
      const symbol = scene.timeline.symbols[kept.symbol[i]];
      const strong = ctx.globalAlpha > 0.6 && symbol?.colour !== 9;
      drawName(scene, view, symbol?.own ?? "", strong, x, width, y + height / 2);
    }
    if (kept.path[i]) drawCritical(scene, view, lane, x, width, 1);
  }
}

function drawName(scene: Scene, view: View, name: string, strong: boolean, x: number, width: number, y: number): void {
  const { ctx } = view;
  const begin = Math.max(x, view.left) + 5 * view.ratio;
  const room = x + width - begin - 5 * view.ratio;
  const size = 11 * view.ratio;
  if (room < 3.4 * size || view.height < size * 1.6) return;
  ctx.font = `${size}px system-ui, sans-serif`;
  const whole = ctx.measureText(name).width;
  const letters = whole > room ? Math.floor((name.length * room) / whole) - 1 : name.length;
  if (letters < Math.min(name.length, 5)) return;
  ctx.globalAlpha = 1;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  const text = name.length > letters ? `${name.slice(0, letters)}\u2026` : name;
  if (strong) {
    // Readable on every kernel colour in both modes.
    ctx.lineWidth = 2.5 * view.ratio;
    ctx.strokeStyle = "rgba(0,0,0,0.5)";
    ctx.strokeText(text, begin, y);
  }
  ctx.fillStyle = strong ? "#fff" : scene.colours.text;
  ctx.fillText(text, begin, y);
}

/** Entries of a row that may be in view. */
export function rangesInView(timeline: Timeline, row: number, from: number, to: number): [number, number] {
  const { begin, start } = timeline.ranges;
  const first = lowerBound(begin, from, start[row], start[row + 1]);
  return [Math.max(start[row], first - 1), lowerBound(begin, to, first, start[row + 1])];
}

function drawRanges(scene: Scene, view: View, row: number): void {
  const { ctx } = view;
  const { begin, duration, name, names } = scene.timeline.ranges;
  const [first, end] = rangesInView(scene.timeline, row, view.from, view.to);
  const y = view.top + row * view.height + view.height * 0.1;
  const height = view.height * 0.76;
  for (let i = first; i < end; i += 1) {
    const x = view.left + (begin[i] - view.from) * view.scale;
    const width = Math.max(1, duration[i] * view.scale);
    ctx.globalAlpha = 1;
    ctx.fillStyle = scene.colours.range;
    ctx.fillRect(x, y, width, height);
    if (width > 4) {
      ctx.strokeStyle = scene.colours.soft;
      ctx.lineWidth = view.ratio;
      ctx.strokeRect(x, y, width, height);
    }
    if (width > 30 * view.ratio) drawName(scene, view, names[name[i]], false, x, width, y + height / 2);
  }
}

function drawLinks(scene: Scene, view: View): void {
  const { from, to, left, right } = scene.timeline.links;
  const inView: number[] = [];
  for (let i = 0; i < from.length; i += 1) {
    if (right[i] >= view.from && left[i] <= view.to) inView.push(i);
    if (inView.length > MOST_LINKS) return;
  }
  const { ctx } = view;
  ctx.globalAlpha = 0.9;
  ctx.strokeStyle = scene.colours.path;
  ctx.lineWidth = 1.25 * view.ratio;
  ctx.beginPath();
  for (const i of inView) {
    const y = (lane: number): number => view.top + (lane + 0.86) * view.height;
    ctx.moveTo(view.left + (left[i] - view.from) * view.scale, y(from[i]));
    ctx.lineTo(view.left + (right[i] - view.from) * view.scale, y(to[i]));
  }
  ctx.stroke();
}

function frame(scene: Scene, view: View, row: number, begin: number, duration: number): void {
  const { ctx } = view;
  const x = view.left + (begin - view.from) * view.scale;
  const y = view.top + row * view.height;
  ctx.globalAlpha = 1;
  ctx.strokeStyle = scene.colours.accent;
  ctx.lineWidth = 2 * view.ratio;
  ctx.strokeRect(x - 1, y + 1, Math.max(3, duration * view.scale) + 2, view.height - 2);
}

/** Draw all lanes into the plot's area. */
export function drawScene(u: uPlot, scene: Scene): void {
  const { timeline } = scene;
  const rows = viewOf(u, timeline.ranges.rows.length + timeline.lanes.length);
  const view = { ...rows, top: rows.top + timeline.ranges.rows.length * rows.height };
  const { ctx } = view;
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  const level = levelFor(timeline, view.scale);
  timeline.lanes.forEach((_, lane) => {
    const [first, end] = keptInView(timeline, lane, view.from, view.to);
    const few = end - first <= FEW || (end - first <= MOST_SINGLE && level === timeline.levels[0]);
    if (timeline.complete && few) {
      drawKept(scene, view, lane, first, end, 0);
    } else {
      drawBins(scene, view, lane, level);
      drawKept(scene, view, lane, first, end, NARROWEST_SINGLE * view.ratio);
    }
  });
  drawLinks(scene, view);
  timeline.ranges.rows.forEach((_, row) => drawRanges(scene, rows, row));
  const { kept, ranges } = timeline;
  const [one, marked] = [scene.selected, scene.selectedRange];
  if (one >= 0) frame(scene, view, kept.lane[one], kept.begin[one], kept.duration[one]);
  if (marked >= 0) frame(scene, rows, ranges.row[marked], ranges.begin[marked], ranges.duration[marked]);
  ctx.restore();
}
