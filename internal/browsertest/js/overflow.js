// What reaches beyond the window's width. On a phone the window itself grows with its
// content, and a page that does not fit to the device's width has another one from the
// beginning: so the width is given.
width => {
  const root = document.scrollingElement
  const found = []
  if (document.documentElement.clientWidth > width) {
    found.push(`the page is laid out for a width of ${document.documentElement.clientWidth}, and the window has ${width}: is there a meta viewport?`)
  }
  if (root.scrollWidth <= width) return found
  const inner = el => { // is cut off, or scrolls, by itself
    for (let at = el.parentElement; at && at !== document.body && at !== root; at = at.parentElement) {
      if (getComputedStyle(at).overflowX !== 'visible' && at.getBoundingClientRect().right <= width) return true
    }
    return false
  }
  const tell = (el, rects, what) => {
    const right = Math.max(...[...rects].filter(r => r.width > 0).map(r => r.right + root.scrollLeft))
    if (right > width + 0.5 && !inner(el)) found.push(`${what}${describe(el)} reaches to ${Math.round(right)} of ${width}`)
  }
  const range = document.createRange()
  for (const el of document.body.querySelectorAll('*')) {
    tell(el, [el.getBoundingClientRect()], '')
    for (const n of el.childNodes) {
      if (n.nodeType !== Node.TEXT_NODE || getComputedStyle(el).overflowX !== 'visible') continue
      range.selectNodeContents(n)
      tell(el, range.getClientRects(), 'the text of ')
    }
  }
  return found.length ? found : [`the page is ${root.scrollWidth} wide, and the window ${width}`]
}
