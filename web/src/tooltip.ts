// One box at the pointer for all pictures.
import { find, textElement } from "./elements";

const GAP = 14;

export function showTooltip(x: number, y: number, lines: string[]): void {
  const box = find<HTMLElement>("tooltip");
  if (!box) return;
  box.replaceChildren(...lines.map((line, i) => textElement("p", line, i === 0 ? "first" : "")));
  box.hidden = false;
  const room = box.getBoundingClientRect();
  const left = x + GAP + room.width > window.innerWidth ? x - GAP - room.width : x + GAP;
  const top = y + GAP + room.height > window.innerHeight ? y - GAP - room.height : y + GAP;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${Math.max(4, top)}px`;
}

export function hideTooltip(): void {
  const box = find<HTMLElement>("tooltip");
  if (box) box.hidden = true;
}
