// The timeline by keyboard: move, zoom, step through the dispatches of a row; what is selected is spoken.
import { lowerBound } from "./data";
import type { Controller } from "./start";

export function connectKeys(control: Controller, target: HTMLElement): void {
  target.tabIndex = 0;
  target.setAttribute("role", "application");
  target.setAttribute("aria-label", "Timeline of streams");
  target.setAttribute("aria-describedby", "timeline-hint timeline-visible");
  const { scene } = control;
  const { kept, lanes } = scene.timeline;
  const sizes = lanes.map((_, i) => kept.start[i + 1] - kept.start[i]);
  let lane = sizes.indexOf(Math.max(...sizes));

  const step = (by: number): void => {
    const [first, end] = [kept.start[lane], kept.start[lane + 1]];
    if (first === end) return;
    const begin = control.lanes.scales.x.min ?? 0;
    const inLane = scene.selected >= first && scene.selected < end;
    const next = inLane ? scene.selected + by : lowerBound(kept.begin, begin, first, end);
    control.select(Math.max(first, Math.min(end - 1, next)));
  };

  const change = (by: number): void => {
    const next = lane + by;
    if (next < 0 || next >= lanes.length) return;
    lane = next;
    const [first, end] = [kept.start[lane], kept.start[lane + 1]];
    if (first === end) return;
    const at = scene.selected >= 0 ? kept.begin[scene.selected] : (control.lanes.scales.x.min ?? 0);
    control.select(Math.min(end - 1, lowerBound(kept.begin, at, first, end)));
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
