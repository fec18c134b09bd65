// What the live check finds is said beside the fields too, but only for those that somebody has touched.

const form = document.querySelector("form[data-checked]");
const touched = new Set();

form?.addEventListener("input", ({ target }) => touched.add(target.name));
form?.addEventListener("change", ({ target }) => touched.add(target.name));

function said(name) {
  const found = form.querySelectorAll(`[data-wrong="${CSS.escape(name)}"] [data-why]`);
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

document.addEventListener("htmx:afterSwap", (event) => {
  if (!event.target.closest?.(".nf-check")) return;
  for (const field of form.elements) {
    if (field.name && field.type !== "hidden" && field.type !== "radio" && touched.has(field.name)) tell(field, said(field.name));
  }
});
