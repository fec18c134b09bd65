// Short news in a corner. Good news leaves by itself unless somebody is reading it; bad news stays until it is closed.

const place = document.querySelector("#toasts");
const STAYS = 8000;

function equip(toast) {
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn-close";
  close.setAttribute("aria-label", place.dataset.closeWord);
  close.addEventListener("click", () => toast.remove());
  toast.append(close);
  if (toast.dataset.toast === "error" || toast.dataset.toast === "warning") return;
  let timer = null;
  const leave = () => (timer = setTimeout(() => toast.remove(), STAYS));
  const stay = () => clearTimeout(timer);
  for (const [type, act] of [
    ["pointerenter", stay],
    ["focusin", stay],
    ["pointerleave", leave],
    ["focusout", leave],
  ]) {
    toast.addEventListener(type, act);
  }
  leave();
}

export function toast(level, text) {
  // The same again says nothing new.
  if ([...place.querySelectorAll("[data-toast] > div")].some((one) => one.textContent === text)) return;
  const kind = document.querySelector(`[data-toast-kind="${level}"]`) ? level : "info";
  const template = document.querySelector(`[data-toast-kind="${kind}"]`);
  const box = template.content.firstElementChild.cloneNode(true);
  box.querySelector("div").textContent = text;
  equip(box);
  place.append(box);
}

if (place) {
  for (const box of place.querySelectorAll("[data-toast]")) equip(box);
  document.addEventListener("toast", (event) => toast(event.detail.level, event.detail.text));
}
