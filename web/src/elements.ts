// Elements of the page by id.

/** The element, or null where this report has none (a section may be absent). */
export function find<T extends Element>(id: string): T | null {
  return document.getElementById(id) as T | null;
}

/** An element that holds only text; nothing from a recording is ever parsed as markup. */
export function textElement(tag: string, text: string, className = ""): HTMLElement {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}
