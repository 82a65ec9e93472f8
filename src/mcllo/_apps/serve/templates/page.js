"use strict";
// On top of plain forms: dropping a file, following progress, colours of a form.
// Without this script every page is whole.

for (const made of document.querySelectorAll(".scripted")) made.hidden = false;

const form = document.querySelector("[data-upload]");
if (form) {
  const input = form.querySelector("input[type=file]");
  const zone = form.querySelector("[data-drop]");
  const chosen = form.querySelector("[data-chosen]");
  const button = form.querySelector("button");
  const most = Number(form.dataset.most);
  const megabytes = (size) => `${(size / 1e6).toLocaleString("en", { maximumFractionDigits: 1 })} MB`;
  const fits = () => {
    const file = input.files[0];
    const large = Boolean(file) && file.size > most;
    chosen.classList.toggle("wrong", large);
    chosen.textContent = !file ? "" : large
      ? `${file.name} has ${megabytes(file.size)}; a table may have ${megabytes(most)} here. Use fewer rows, or the command line.`
      : `Chosen: ${file.name}, ${megabytes(file.size)}`;
    button.disabled = large;
    return Boolean(file) && !large;
  };
  input.addEventListener("change", fits);
  let depth = 0;
  const over = (event, step) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    depth = Math.max(0, depth + step);
    zone.classList.toggle("over", depth > 0);
  };
  // wherever it is dropped: a browser would open the file instead
  window.addEventListener("dragenter", (event) => over(event, 1));
  window.addEventListener("dragleave", (event) => over(event, -1));
  window.addEventListener("dragover", (event) => over(event, 0));
  window.addEventListener("drop", (event) => {
    over(event, -depth);
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    input.files = event.dataTransfer.files;
    if (fits()) form.requestSubmit();
  });
  form.addEventListener("submit", () => {
    button.disabled = true;
    chosen.textContent = "Reading …";
  });
  window.addEventListener("pageshow", fits);
}

for (const select of document.querySelectorAll("[data-role]")) {
  select.addEventListener("change", () => {
    select.closest("tr").className = select.value || "unused";
  });
}

const busy = document.querySelector("[data-busy]");
if (busy) {
  const doing = busy.querySelector("[data-doing]");
  const seconds = busy.querySelector("[data-seconds]");
  const look = async () => {
    try {
      const answer = await fetch(busy.dataset.busy, { headers: { accept: "application/json" } });
      const found = answer.ok ? await answer.json() : { busy: false };
      if (!found.busy) {
        location.replace(busy.dataset.then);
        return;
      }
      if (doing.textContent !== found.doing) doing.textContent = found.doing;
      seconds.textContent = found.seconds;
    } catch {
      doing.textContent = "mcllo serve does not answer: was it ended? Start it again.";
    }
    setTimeout(look, 400);
  };
  setTimeout(look, 300);
}
