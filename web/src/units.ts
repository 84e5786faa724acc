// How times look, as in the page's text.

const UNITS: [string, number][] = [
  ["s", 1e9],
  ["ms", 1e6],
  ["\u00b5s", 1e3],
  ["ns", 1],
];

function digits(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** A duration in the unit that keeps it between 1 and 1000. */
export function duration(ns: number): string {
  for (const [unit, size] of UNITS) {
    if (Math.abs(ns) >= size) return `${digits(ns / size)} ${unit}`;
  }
  return `${digits(ns)} ns`;
}

/** A point of time, with as many decimals as it takes to tell it from one `apart` ns later. */
export function moment(ns: number, apart: number): string {
  const [unit, size] = UNITS.find(([, candidate]) => Math.abs(ns) >= candidate) ?? ["ns", 1];
  const decimals = Math.ceil(Math.log10(size / Math.max(apart, 1)) - 1e-9);
  return `${Number((ns / size).toFixed(Math.min(9, Math.max(0, decimals))))} ${unit}`;
}

/** Ticks of an axis in one unit, with as many decimals as neighbours need to differ. */
export function ticks(values: number[]): string[] {
  const last = Math.max(...values.map(Math.abs), 1);
  const [unit, size] = UNITS.find(([, candidate]) => last >= candidate) ?? ["ns", 1];
  const step = values.length > 1 ? Math.abs(values[1] - values[0]) / size : 1;
  const decimals = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
  return values.map((value) => `${(value / size).toFixed(decimals)} ${unit}`);
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
