// What is at a place of the timeline, in words.
import { duration, moment, percent } from "../units";
import { type Timeline, NO_SYMBOL } from "./data";
import { keptInView, levelFor, rangesInView } from "./draw";

/** The dispatch at a time, or -1. `tolerance` in ns makes narrow ones easier to hit. */
export function pickKept(timeline: Timeline, lane: number, at: number, tolerance: number): number {
  const [first, end] = keptInView(timeline, lane, at - tolerance, at + tolerance);
  const { begin, duration: length } = timeline.kept;
  let best = -1;
  let distance = tolerance;
  for (let i = first; i < end; i += 1) {
    const away = Math.max(begin[i] - at, at - begin[i] - length[i], 0);
    if (away === 0) return i;
    if (away < distance) [best, distance] = [i, away];
  }
  return best;
}

/** The range of a row at a time, or -1. */
export function pickRange(timeline: Timeline, row: number, at: number, tolerance: number): number {
  const [first, end] = rangesInView(timeline, row, at - tolerance, at + tolerance);
  const { begin, duration: length } = timeline.ranges;
  for (let i = end - 1; i >= first; i -= 1) {
    if (begin[i] - tolerance <= at && at <= begin[i] + length[i] + tolerance) return i;
  }
  return -1;
}

export function describeRange(timeline: Timeline, entry: number): string[] {
  const { ranges } = timeline;
  return [
    ranges.names[ranges.name[entry]],
    `${duration(ranges.duration[entry])} from ${moment(ranges.begin[entry], ranges.duration[entry] / 10)} on`,
    ranges.rows[ranges.row[entry]],
  ];
}

export function describeKept(timeline: Timeline, entry: number): string[] {
  const { kept } = timeline;
  const lines = [
    timeline.symbols[kept.symbol[entry]].name,
    `${duration(kept.duration[entry])} from ${moment(kept.begin[entry], kept.duration[entry] / 10)} on`,
    timeline.lanes[kept.lane[entry]] + (kept.id[entry] > 0 ? `, dispatch ${kept.id[entry] - 1}` : ", copy"),
  ];
  if (kept.path[entry]) lines.push("on the critical path");
  else lines.push(kept.slack[entry] > 0 ? `slack ${duration(kept.slack[entry])}` : "critical, on another path of the same length");
  return lines;
}

export function describeBin(timeline: Timeline, lane: number, at: number, pixelsPerNs: number): string[] | null {
  const level = levelFor(timeline, pixelsPerNs);
  const bin = Math.floor(at / level.width);
  if (bin < 0 || bin >= level.bins) return null;
  const cell = lane * level.bins + bin;
  if (level.symbol[cell] === NO_SYMBOL) return null;
  return [
    `${duration(level.width)} from ${moment(bin * level.width, level.width / 10)} on`,
    timeline.lanes[lane],
    `busy ${percent(level.busy[cell] / 255)}, critical ${percent(level.path[cell] / 255)}`,
    `${level.count[cell]} dispatches begin here`,
    `mostly ${timeline.symbols[level.symbol[cell]].name}`,
  ];
}
