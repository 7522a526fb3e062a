// What the theme leaves without a name, or out of the reach of a keyboard.
function name() {
  document.querySelectorAll(".md-option[aria-hidden]").forEach(one => { one.tabIndex = -1; });
  document.querySelectorAll(".md-code__nav").forEach((one, place) => one.setAttribute("aria-label", `Code ${place + 1}`));
  document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code").forEach(one => { one.tabIndex = 0; });
}
new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
name();
