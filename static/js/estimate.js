// What the live check finds is said beside the fields too, but only for those that somebody has touched.

const form = document.querySelector("form[data-checked]");
const touched = new Set();

form?.addEventListener("input", ({ target }) => touched.add(target.name));
form?.addEventListener("change", ({ target }) => touched.add(target.name));

function said(name) {
  const found = form.querySelectorAll(`[data-error-field="${CSS.escape(name)}"] [data-error-text]`);
  return [...found].map((one) => one.textContent);
}

function tell(field, errors) {
  const place = field.closest(".nf-field");
  if (!place) return;
  const id = `${field.id}_error`;
  let box = document.getElementById(id);
  if (!errors.length) {
    box?.remove();
    field.removeAttribute("aria-invalid");
    return;
  }
  if (!box) {
    box = document.createElement("div");
    box.id = id;
    box.className = "invalid-feedback d-block";
    place.append(box);
  }
  box.textContent = errors.join(" ");
  field.setAttribute("aria-invalid", "true");
  const described = new Set((field.getAttribute("aria-describedby") ?? "").split(" ").filter(Boolean));
  field.setAttribute("aria-describedby", [...described.add(id)].join(" "));
}

// Another engine, chip or model can do other things: what cannot be chosen is greyed out, with the reason.
function offer(name, now) {
  if (!Array.isArray(now)) {
    const field = form.elements[name];
    if (!field || field instanceof RadioNodeList) return;
    field.disabled = now.disabled;
    const hint = field.closest(".nf-field")?.querySelector(".form-hint");
    if (hint) hint.textContent = now.hint;
    return;
  }
  for (const { value, label, disabled } of now) {
    const choice = form.querySelector(`[name="${CSS.escape(name)}"][value="${CSS.escape(value)}"], [name="${CSS.escape(name)}"] > option[value="${CSS.escape(value)}"]`);
    if (!choice) continue;
    choice.disabled = disabled;
    const text = choice.tagName === "OPTION" ? choice : choice.closest("label")?.querySelector(".form-check-label");
    if (text) text.textContent = label;
  }
}

document.addEventListener("htmx:afterSwap", (event) => {
  if (!event.target.closest?.(".nf-check")) return;
  const offered = form.querySelector("[data-offered]");
  if (offered) Object.entries(JSON.parse(offered.dataset.offered)).forEach(([name, now]) => offer(name, now));
  for (const field of form.elements) {
    if (field.name && field.type !== "hidden" && field.type !== "radio" && touched.has(field.name)) tell(field, said(field.name));
  }
});
