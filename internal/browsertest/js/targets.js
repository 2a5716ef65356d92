// What can be tapped and is smaller than it has to be.
size => {
  const selector = 'a[href], button, input:not([type=hidden]), select, textarea, summary, label[for], ' +
    '[role=button], [role=link], [role=checkbox], [role=radio], [role=switch], [role=tab], [role=menuitem], [role=option], [tabindex], [contenteditable=true]'
  // Within text, the size of a link is that of the line.
  const inText = el => el.matches('a[href], [role=link]') && getComputedStyle(el).display === 'inline' &&
    [...el.parentElement.childNodes].some(n => n !== el && n.nodeType === Node.TEXT_NODE && /\p{L}|\p{N}/u.test(n.data))
  const hidden = r => r.width <= 1 && r.height <= 1 // for readers of the screen only
  const join = (a, b) => {
    const left = Math.min(a.left, b.left), top = Math.min(a.top, b.top)
    return {left, top, right: Math.max(a.right, b.right), bottom: Math.max(a.bottom, b.bottom),
      width: Math.max(a.right, b.right) - left, height: Math.max(a.bottom, b.bottom) - top}
  }
  const found = []
  for (const el of document.querySelectorAll(selector)) {
    if (!seen(el) || el.matches(':disabled') || el.tabIndex < 0 && el.hasAttribute('tabindex') || inText(el)) continue
    if (el.localName === 'label' && el.control && seen(el.control)) continue // counted with its field
    let r = el.getBoundingClientRect()
    if (hidden(r)) continue
    for (const l of el.labels ?? []) if (seen(l)) r = join(r, l.getBoundingClientRect())
    if (r.width < size - 0.01 || r.height < size - 0.01) found.push({element: describe(el), width: r.width, height: r.height})
  }
  return found
}
