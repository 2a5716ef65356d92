// Where an element can be clicked; or why it cannot.
selector => {
  const list = all(selector)
  if (!list.length) return {why: 'there is no ' + selector}
  const el = list.find(seen)
  if (!el) return {why: selector + ' is there, and not seen'}
  if (el.matches(':disabled')) return {why: describe(el) + ' is disabled'}
  const place = () => {
    const r = [...el.getClientRects()].find(r => r.width > 0 && r.height > 0)
    return {x: r.x + r.width / 2, y: r.y + r.height / 2}
  }
  const outside = p => p.x < 0 || p.y < 0 || p.x >= innerWidth || p.y >= innerHeight
  let p = place()
  if (outside(p)) {
    el.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'})
    p = place()
  }
  if (outside(p)) return {why: describe(el) + ' cannot be scrolled to'}
  const hit = document.elementFromPoint(p.x, p.y)
  if (hit !== el && !el.contains(hit) && !(hit && [...(el.labels ?? [])].some(l => l.contains(hit)))) {
    return {why: `${describe(el)} is covered by ${describe(hit)}`}
  }
  return p
}
