"use strict";
// What the theme leaves to the mouse: names for links and switches that show none, and a stop of the
// tabulator at tables that slide.
const tidy = () => {
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a")) {
    link.setAttribute("aria-label", link.textContent.trim());
  }
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer .sphx-glr-thumbnail-title")) {
    link.setAttribute("aria-hidden", "true"); // the link says the same
  }
  for (const summary of document.querySelectorAll("summary")) {
    if (!summary.textContent.trim()) summary.setAttribute("aria-label", "Show or hide the pages below");
  }
  for (const table of document.querySelectorAll(".bd-article table")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
    else table.removeAttribute("tabindex");
  }
};
window.addEventListener("load", tidy);
window.addEventListener("resize", tidy);
