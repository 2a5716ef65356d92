// What the functions beside this file know.

const words = s => (s ?? '').replace(/\s+/g, ' ').trim()

const seen = el => el.checkVisibility({visibilityProperty: true, opacityProperty: true}) &&
  [...el.getClientRects()].some(r => r.width > 0 && r.height > 0)

// textOf is what an element shows; of what is not rendered, what it holds.
const textOf = el => words(el.innerText ?? el.textContent)

// all are the elements that a selector means.
const all = selector => {
  const at = selector.indexOf(' >> ')
  if (at < 0) return [...document.querySelectorAll(selector)]
  const text = words(selector.slice(at + 4))
  return [...document.querySelectorAll(selector.slice(0, at))].filter(el => textOf(el) === text)
}

const short = s => s.length > 60 ? s.slice(0, 59) + '…' : s

// nameOf is what an element is called: near enough for a message.
const nameOf = el => {
  const by = el.getAttribute('aria-labelledby')
  if (by) return words(by.split(/\s+/).map(id => document.getElementById(id)?.textContent).join(' '))
  return words(el.getAttribute('aria-label') || (el.labels?.length ? el.labels[0].textContent : '') ||
    el.getAttribute('alt') || (el.matches('select, textarea') ? '' : el.innerText) || el.getAttribute('placeholder') || el.getAttribute('title'))
}

// describe is how an element is told apart from others in a message.
const describe = el => {
  if (!el) return ''
  let s = el.localName
  if (el.id) s += '#' + el.id
  const name = el.getAttribute('name')
  if (name) s += `[name=${name}]`
  if (!el.id && !name && el.classList.length) s += '.' + [...el.classList].join('.')
  const called = short(nameOf(el))
  return called ? `${s} "${called}"` : s
}
