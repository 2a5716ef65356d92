// Chooses the option of a select that has a text, as a person does.
(selector, label) => {
  const el = all(selector)[0]
  if (!el) return 'there is no ' + selector
  if (el.localName !== 'select') return describe(el) + ' is no select'
  if (el.matches(':disabled')) return describe(el) + ' is disabled'
  const option = [...el.options].find(o => words(o.text) === words(label))
  if (!option) return `${describe(el)} has no option "${label}", but ${[...el.options].map(o => `"${words(o.text)}"`).join(', ')}`
  if (option.disabled) return `the option "${label}" is disabled`
  el.focus()
  option.selected = true
  el.dispatchEvent(new Event('input', {bubbles: true}))
  el.dispatchEvent(new Event('change', {bubbles: true}))
  return ''
}
