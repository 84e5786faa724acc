// The timeline by keyboard: move, zoom, step through the dispatches of a row; what is selected is spoken.
import { lowerBound } from "./data";
import type { Controller } from "./start";

export function connectKeys(control: Controller, target: HTMLElement): void {
  target.tabIndex = 0;
  target.setAttribute("role", "application");
  target.setAttribute("aria-label", "Timeline of streams");
  target.setAttribute("aria-describedby", "timeline-hint timeline-visible");
  const { scene } = control;
  const { kept, lanes, ranges } = scene.timeline;
  const sizes = lanes.map((_, i) => kept.start[i + 1] - kept.start[i]);
  const marked = ranges.rows.length;
  let row = marked + sizes.indexOf(Math.max(...sizes));

  /** What the row holds, which entry of it is selected, and how another one is. */
  const current = (): [typeof kept | typeof ranges, number, number, (entry: number) => void] =>
    row < marked
      ? [ranges, row, scene.selectedRange, control.selectRange]
      : [kept, row - marked, scene.selected, control.select];

  const step = (by: number): void => {
    const [held, at, selected, select] = current();
    const [first, end] = [held.start[at], held.start[at + 1]];
    if (first === end) return;
    const begin = control.lanes.scales.x.min ?? 0;
    const inLane = selected >= first && selected < end;
    const wanted = inLane ? selected + by : lowerBound(held.begin, begin, first, end);
    select(Math.max(first, Math.min(end - 1, wanted)));
  };

  const place = (): number => {
    if (scene.selectedRange >= 0) return ranges.begin[scene.selectedRange];
    return scene.selected >= 0 ? kept.begin[scene.selected] : (control.lanes.scales.x.min ?? 0);
  };

  const change = (by: number): void => {
    if (row + by < 0 || row + by >= marked + lanes.length) return;
    const begin = place();
    row += by;
    const [held, at, , select] = current();
    const [first, end] = [held.start[at], held.start[at + 1]];
    if (first === end) return;
    select(Math.min(end - 1, lowerBound(held.begin, begin, first, end)));
  };

  const actions: Record<string, () => void> = {
    "+": () => control.scale(0.5),
    "=": () => control.scale(0.5),
    "-": () => control.scale(2),
    ArrowLeft: () => control.pan(-0.25),
    ArrowRight: () => control.pan(0.25),
    ArrowUp: () => change(-1),
    ArrowDown: () => change(1),
    Home: () => control.whole(),
    n: () => step(1),
    p: () => step(-1),
  };
  target.addEventListener("keydown", (event) => {
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
