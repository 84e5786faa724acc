// Points of the roofline show their details at once, and on focus too.
import { hideTooltip, showTooltip } from "./tooltip";

export function enhanceRoofline(): void {
  for (const point of document.querySelectorAll<SVGAElement>("#roofline .point")) {
    const title = point.querySelector("title");
    const lines = (title?.textContent ?? "").split("\n").map((line) => line.trim()).filter(Boolean);
    // The browser's own tooltip would come on top; the label for screen readers stays.
    title?.remove();
    const show = (): void => {
      const box = point.getBoundingClientRect();
      showTooltip(box.right, box.top, lines);
    };
    point.addEventListener("pointerenter", show);
    point.addEventListener("focus", show);
    point.addEventListener("pointerleave", hideTooltip);
    point.addEventListener("blur", hideTooltip);
  }
}
