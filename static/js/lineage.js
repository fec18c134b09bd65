// A wide picture opens at what the page is about.

for (const picture of document.querySelectorAll(".nf-lineage")) {
  const here = picture.querySelector("[aria-current]");
  if (!here) continue;
  const [outer, inner] = [picture.getBoundingClientRect(), here.getBoundingClientRect()];
  picture.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
  picture.scrollTop += inner.top - outer.top - (outer.height - inner.height) / 2;
}
