// What of the first element that a selector means: its text, value, or an attribute.
(selector, what, name) => {
  const el = all(selector)[0]
  if (!el) return {why: 'there is no ' + selector}
  switch (what) {
    case 'text': return {text: el.innerText ?? el.textContent}
    case 'value': return 'value' in el ? {text: String(el.value)} : {why: describe(el) + ' has no value'}
    case 'checked': return 'checked' in el ? {text: String(el.checked)} : {why: describe(el) + ' cannot be checked'}
    default: return {text: el.getAttribute(name) ?? '', absent: !el.hasAttribute(name)}
  }
}
