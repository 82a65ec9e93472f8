"use strict";
// Sort a table by a click on a column's head; without this script the tables are complete, in order.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, j) => {
    const value = row.cells[j].dataset.sort;
    return value === undefined ? row.cells[j].textContent.trim() : Number(value);
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  heads.forEach((head, j) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      const sign = up ? 1 : -1;
      const missing = (row) =>
        row.cells[j].classList.contains("number") && !/\d/.test(row.cells[j].textContent);
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => missing(a) - missing(b) || sign * compare(key(a, j), key(b, j)));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      table.tBodies[0].append(...rows);
    });
  });
}
