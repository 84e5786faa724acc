// The timeline as the page holds it, decoded into typed arrays.

export interface TimelineSymbol {
  name: string;
  /** Without types and parameters, for inside of boxes. */
  own: string;
  colour: number;
  target: string | null;
}

/** Dispatches and copies that can be told apart, by (lane, begin). Times in ns. */
export interface Kept {
  lane: Uint16Array;
  symbol: Uint16Array;
  begin: Float64Array;
  duration: Float64Array;
  slack: Float64Array;
  path: Uint8Array;
  /** The dispatch id plus 1, 0 for copies. */
  id: Float64Array;
  /** First entry of each lane, and one past the last. */
  start: number[];
  /** The longest entry of each lane. */
  longest: number[];
}

/** Bins of one width, lanes after each other; shares in 255ths. */
export interface Level {
  width: number;
  bins: number;
  busy: Uint8Array;
  path: Uint8Array;
  symbol: Uint16Array;
  count: Uint32Array;
}

export interface Links {
  from: Uint16Array;
  to: Uint16Array;
  left: Float64Array;
  right: Float64Array;
}

/** What the application marked, in rows above the lanes, by (row, begin); those of a row are disjoint. */
export interface Ranges {
  rows: string[];
  names: string[];
  row: Uint16Array;
  name: Uint16Array;
  begin: Float64Array;
  duration: Float64Array;
  /** First entry of each row, and one past the last. */
  start: number[];
}

export interface Timeline {
  span: number;
  complete: boolean;
  lanes: string[];
  symbols: TimelineSymbol[];
  kept: Kept;
  levels: Level[];
  links: Links;
  ranges: Ranges;
}

export const NO_SYMBOL = 0xffff;

interface RawKept {
  lane: string;
  symbol: string;
  begin: Counts;
  duration: Counts;
  slack: Counts;
  path: string;
  id: Counts;
}

interface RawLevel {
  width: number;
  bins: number;
  busy: string;
  path: string;
  symbol: string;
  count: string;
}

function bytes(text: string): ArrayBuffer {
  const binary = atob(text);
  const found = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) found[i] = binary.charCodeAt(i);
  return found.buffer;
}

const u8 = (text: string): Uint8Array => new Uint8Array(bytes(text));
const u16 = (text: string): Uint16Array => new Uint16Array(bytes(text));
const u32 = (text: string): Uint32Array => new Uint32Array(bytes(text));

/** Whole numbers; small ones come in 4 bytes each. */
interface Counts {
  kind: "u4" | "f8";
  data: string;
}

function counts(raw: Counts): Float64Array {
  return raw.kind === "u4" ? Float64Array.from(u32(raw.data)) : new Float64Array(bytes(raw.data));
}

/** First entry of each lane, and one past the last, of entries by lane. */
function starts(lane: Uint16Array, lanes: number): number[] {
  const start = new Array<number>(lanes + 1).fill(lane.length);
  for (let i = lane.length - 1; i >= 0; i -= 1) start[lane[i]] = i;
  for (let i = lanes - 1; i >= 0; i -= 1) start[i] = Math.min(start[i], start[i + 1]);
  return start;
}

function kept(raw: RawKept, lanes: number): Kept {
  const lane = u16(raw.lane);
  const duration = counts(raw.duration);
  const start = starts(lane, lanes);
  const longest = new Array<number>(lanes).fill(0);
  for (let i = 0; i < lane.length; i += 1) longest[lane[i]] = Math.max(longest[lane[i]], duration[i]);
  return {
    lane,
    duration,
    symbol: u16(raw.symbol),
    begin: counts(raw.begin),
    slack: counts(raw.slack),
    path: u8(raw.path),
    id: counts(raw.id),
    start,
    longest,
  };
}

function level(raw: RawLevel): Level {
  return {
    width: raw.width,
    bins: raw.bins,
    busy: u8(raw.busy),
    path: u8(raw.path),
    symbol: u16(raw.symbol),
    count: u32(raw.count),
  };
}

interface RawRanges {
  rows: string[];
  names: string[];
  row: string;
  name: string;
  begin: string;
  duration: Counts;
}

function ranges(raw: RawRanges): Ranges {
  const row = u16(raw.row);
  return {
    row,
    rows: raw.rows,
    names: raw.names,
    name: u16(raw.name),
    begin: new Float64Array(bytes(raw.begin)),
    duration: counts(raw.duration),
    start: starts(row, raw.rows.length),
  };
}

export function decode(text: string): Timeline {
  const raw = JSON.parse(text);
  return {
    span: raw.span,
    complete: raw.complete,
    lanes: raw.lanes,
    symbols: raw.symbols,
    kept: kept(raw.kept, raw.lanes.length),
    levels: raw.levels.map(level),
    ranges: ranges(raw.ranges),
    links: { from: u16(raw.links.from), to: u16(raw.links.to), left: counts(raw.links.left), right: counts(raw.links.right) },
  };
}

/** First index in [low, high) whose value is at least `wanted`; `values` ascend there. */
export function lowerBound(values: Float64Array, wanted: number, low: number, high: number): number {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
