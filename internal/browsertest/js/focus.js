// What has the focus; empty if nothing has.
() => {
  let el = document.activeElement
  while (el?.shadowRoot?.activeElement) el = el.shadowRoot.activeElement
  return !el || el === document.body || el === document.documentElement ? '' : describe(el)
}
