"use strict";
// Tables: sort by a click on a head, fold what is long, say where there is more to the side.
// Without this script they are complete and in order.
const FOLDED = 12;

function element(tag, text, kind) {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = kind;
  if (tag === "button") made.type = "button";
  return made;
}

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
    const button = element("button", "", "");
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

for (const table of document.querySelectorAll("table[data-tall]")) {
  const all = `Show all ${table.dataset.tall} rows`;
  const few = `Show the first ${FOLDED} of ${table.dataset.tall} rows`;
  const button = element("button", all, "unfold");
  button.setAttribute("aria-expanded", "false");
  table.classList.add("folded");
  button.addEventListener("click", () => {
    const open = !table.classList.toggle("folded");
    button.textContent = open ? few : all;
    button.setAttribute("aria-expanded", String(open));
    if (!open) button.scrollIntoView({ block: "nearest" });
  });
  table.parentElement.after(button);
}

for (const box of document.querySelectorAll(".scroll")) {
  const hint = element("p", "Slide the table sideways to see all columns.", "hint");
  box.before(hint);
  const look = () => {
    const over = box.scrollWidth > box.clientWidth + 1;
    const end = box.scrollLeft + box.clientWidth >= box.scrollWidth - 1;
    box.classList.toggle("more", over && !end);
    hint.hidden = !over;
  };
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
  look();
}
