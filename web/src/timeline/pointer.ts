// Moving with Shift and drag, zooming with the wheel and Ctrl (which is what pinching a touchpad sends).
import type { Controller } from "./start";

export function connectPointer(control: Controller): void {
  const area = control.lanes.over;
  area.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const at = control.lanes.posToVal(event.clientX - area.getBoundingClientRect().left, "x");
      control.scale(Math.exp(event.deltaY / 300), at);
    },
    { passive: false },
  );
  area.addEventListener("pointerdown", (down) => {
    if (!down.shiftKey) return;
    area.setPointerCapture(down.pointerId);
    let last = down.clientX;
    const move = (event: PointerEvent): void => {
      control.pan((last - event.clientX) / area.clientWidth);
      last = event.clientX;
    };
    area.addEventListener("pointermove", move);
    area.addEventListener("pointerup", () => area.removeEventListener("pointermove", move), { once: true });
  });
}
