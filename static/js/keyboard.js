// Shortcuts of one key: "/" searches, "?" explains, "g" and a letter go. Never while somebody types or holds
// another key, and not at all where they are turned off: software that listens to speech presses keys too.

const OFF = "shortcuts-off";
const WAIT = 1500;
const palette = document.querySelector("#palette");
const help = document.querySelector("#shortcuts");
let going = 0;

const typing = (target) =>
  target.isContentEditable || target.closest?.("input:not([type=checkbox], [type=radio]), select, textarea, .nf-log");

function open(dialog) {
  if (!dialog || document.querySelector("dialog[open]")) return;
  dialog.showModal();
  dialog.querySelector("input[type=search]")?.select();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
  if (localStorage.getItem(OFF) || typing(event.target) || document.querySelector("dialog[open]")) return;
  const { key } = event;
  if (Date.now() - going < WAIT) {
    going = 0;
    const link = help?.querySelector(`[data-go="${CSS.escape(key)}"]`);
    if (link) {
      event.preventDefault();
      link.click();
    }
  } else if (key === "g") {
    going = Date.now();
  } else if (key === "/") {
    event.preventDefault();
    open(palette);
  } else if (key === "?") {
    event.preventDefault();
    open(help);
  }
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-opens]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open(document.getElementById(link.dataset.opens));
});

// In the palette the arrows walk through what was found; Enter in the field goes to the first of it.
palette?.addEventListener("keydown", (event) => {
  const links = [...palette.querySelectorAll(".nf-palette-results a")];
  const field = palette.querySelector("input[type=search]");
  const at = links.indexOf(document.activeElement);
  if (event.key === "Escape") {
    // A search field would take the first press to empty itself, and keep the next key after it is gone.
    event.preventDefault();
    document.activeElement.blur();
    palette.close();
  } else if (event.key === "ArrowDown" && links.length) {
    event.preventDefault();
    links[Math.min(at + 1, links.length - 1)].focus();
  } else if (event.key === "ArrowUp" && at >= 0) {
    event.preventDefault();
    (links[at - 1] ?? field).focus();
  } else if (event.key === "Enter" && event.target === field && links.length && !event.isComposing) {
    event.preventDefault();
    links[0].click();
  }
});

function showSwitch() {
  for (const box of document.querySelectorAll("[data-shortcuts-switch]")) box.checked = !localStorage.getItem(OFF);
}
document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-shortcuts-switch]")) return;
  if (event.target.checked) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, "1");
  showSwitch();
});
showSwitch();
