// The kernel table: sort by any column, find by name or label.
import { find } from "./elements";

type Direction = "ascending" | "descending";

function keyOf(row: HTMLTableRowElement, column: number): string {
  return row.cells[column].dataset.key ?? "";
}

/** Unknown values come last in both directions. */
function compare(left: string, right: string, numeric: boolean, direction: Direction): number {
  if (left === "" || right === "") return Number(left === "") - Number(right === "");
  const order = numeric ? Number(left) - Number(right) : left.localeCompare(right);
  return direction === "ascending" ? order : -order;
}

function sort(table: HTMLTableElement, column: number): void {
  const heads = [...table.tHead!.rows[0].cells];
  const head = heads[column];
  const numeric = head.dataset.kind === "number";
  const before = head.getAttribute("aria-sort");
  const first: Direction = numeric ? "descending" : "ascending";
  const other: Direction = numeric ? "ascending" : "descending";
  const direction = before === first ? other : first;
  for (const each of heads) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", direction);
  const body = table.tBodies[0];
  const rows = [...body.rows];
  rows.sort((a, b) => compare(keyOf(a, column), keyOf(b, column), numeric, direction));
  body.append(...rows);
}

function filter(table: HTMLTableElement, wanted: string, count: HTMLElement): void {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  const rows = [...table.tBodies[0].rows];
  for (const row of rows) {
    const text = (row.textContent ?? "").toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    if (!row.hidden) shown += 1;
  }
  count.textContent = words.length ? `${shown} of ${rows.length} kernels` : "";
}

export function enhanceKernelTable(): void {
  const table = find<HTMLTableElement>("kernel-table");
  if (!table) return;
  [...table.tHead!.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, column));
    head.append(button);
  });
  const input = find<HTMLInputElement>("kernel-find");
  const count = find<HTMLElement>("kernel-count");
  if (input && count) input.addEventListener("input", () => filter(table, input.value, count));
}
