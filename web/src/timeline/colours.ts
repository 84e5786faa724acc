// Colours of the style sheet for the canvas, which knows no classes. They follow light and dark mode.

export interface Colours {
  kernels: string[];
  path: string;
  range: string;
  text: string;
  soft: string;
  line: string;
  background: string;
  accent: string;
}

export function readColours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string): string => style.getPropertyValue(name).trim();
  return {
    kernels: Array.from({ length: 10 }, (_, i) => value(`--c${i}`)),
    path: value("--path"),
    range: value("--range"),
    text: value("--text"),
    soft: value("--soft"),
    line: value("--line"),
    background: value("--bg"),
    accent: value("--accent"),
  };
}
