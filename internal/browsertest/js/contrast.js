// The contrast of all text that is seen, by WCAG 2.
() => {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = 1
  const paint = canvas.getContext('2d', {willReadFrequently: true})
  const known = new Map()
  // rgba turns any colour of CSS into red, green, blue (0 to 255) and opacity (0 to 1). A
  // canvas keeps few steps of a colour that is nearly transparent: so over black and white.
  const rgba = css => {
    if (!known.has(css)) {
      const over = base => {
        paint.fillStyle = base
        paint.fillRect(0, 0, 1, 1)
        paint.fillStyle = css
        paint.fillRect(0, 0, 1, 1)
        return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3)
      }
      const black = over('#000'), white = over('#fff')
      const a = 1 - white.reduce((n, w, i) => n + w - black[i], 0) / 3 / 255
      known.set(css, a < 0.004 ? [0, 0, 0, 0] : [...black.map(v => Math.min(255, v / a)), Math.min(1, a)])
    }
    return known.get(css)
  }
  const over = (top, under) => {
    const a = top[3] + under[3] * (1 - top[3])
    if (a === 0) return [0, 0, 0, 0]
    return [0, 1, 2].map(i => (top[i] * top[3] + under[i] * under[3] * (1 - top[3])) / a).concat(a)
  }
  const faded = (c, opacity) => [c[0], c[1], c[2], c[3] * opacity]

  const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
    const v = c[i] / 255
    return sum + weight * (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  }, 0)
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)]
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05)
  }
  const hex = c => '#' + c.slice(0, 3).map(v => Math.round(v).toString(16).padStart(2, '0')).join('')

  const rootScheme = getComputedStyle(document.documentElement).colorScheme
  const darkCanvas = rootScheme.includes('dark') && (!rootScheme.includes('light') || matchMedia('(prefers-color-scheme: dark)').matches)
  const base = darkCanvas ? [18, 18, 18, 1] : [255, 255, 255, 1]

  // behind says what a text of that colour looks like, and what is behind it: with all
  // backgrounds and opacities from el up to the root.
  const behind = (el, colour, first) => {
    let back = [0, 0, 0, 0], front = colour, unknown = ''
    const layer = style => {
      if (back[3] < 1 && style.backgroundImage !== 'none') unknown = 'there is an image behind it'
      const c = rgba(style.backgroundColor)
      back = over(back, c)
      front = over(front, c)
      back = faded(back, style.opacity)
      front = faded(front, style.opacity)
      if (style.filter !== 'none' || style.mixBlendMode !== 'normal') unknown = 'a filter changes its colours'
    }
    if (first) layer(first)
    for (let at = el; at; at = at.parentElement ?? at.getRootNode().host) layer(getComputedStyle(at))
    return {front: over(front, base), back: over(back, base), unknown}
  }

  const found = []
  const add = (el, text, style, first) => {
    const px = parseFloat(style.fontSize)
    const large = px >= 24 || px >= 18.66 && parseInt(style.fontWeight) >= 700
    const {front, back, unknown} = behind(el, rgba(style.webkitTextFillColor || style.color), first)
    found.push({
      element: describe(el), text: short(words(text)), colour: hex(front), background: hex(back),
      ratio: unknown ? 0 : Math.round(ratio(front, back) * 100) / 100, needs: large ? 3 : 4.5, unknown,
    })
  }
  const tiny = r => r.width <= 1 || r.height <= 1
  const off = el => el.closest(':disabled, [aria-disabled=true]') || (el.localName === 'label' && el.control?.matches(':disabled'))
  // What is cut off as a whole is for readers of the screen only.
  const cut = el => {
    for (let at = el; at; at = at.parentElement) {
      const style = getComputedStyle(at)
      if (style.clipPath === 'inset(50%)' || style.clip === 'rect(0px, 0px, 0px, 0px)' || style.clip === 'rect(1px, 1px, 1px, 1px)') return true
      if (style.overflow !== 'visible' && tiny(at.getBoundingClientRect())) return true
    }
    return false
  }

  const field = el => {
    const style = getComputedStyle(el)
    if (el.matches('input:not([type=checkbox], [type=radio], [type=range], [type=color], [type=image]), textarea')) {
      if (el.value) add(el, el.type === 'password' ? '•••' : el.value, style)
      else if (el.placeholder) add(el, el.placeholder, getComputedStyle(el, '::placeholder'))
    } else if (el.localName === 'select' && el.selectedOptions[0]) {
      add(el, el.selectedOptions[0].text, style)
    }
  }
  const visit = el => {
    if (['script', 'style', 'template', 'noscript', 'option', 'title'].includes(el.localName) || off(el)) return
    if (el.shadowRoot) for (const child of el.shadowRoot.children) visit(child)
    const rendered = el.checkVisibility({visibilityProperty: true})
    if (rendered && !cut(el)) {
      const style = getComputedStyle(el)
      for (const n of el.childNodes) {
        if (n.nodeType !== Node.TEXT_NODE || !words(n.data)) continue
        const range = document.createRange()
        range.selectNodeContents(n)
        if ([...range.getClientRects()].some(r => !tiny(r))) add(el, n.data, style)
      }
      for (const pseudo of ['::before', '::after']) {
        const s = getComputedStyle(el, pseudo)
        const text = /^"(.*)"/.exec(s.content)?.[1]
        if (text && words(text) && s.display !== 'none' && s.visibility === 'visible') add(el, text, s, s)
      }
      field(el)
    }
    if (el.localName !== 'textarea' && el.localName !== 'select') for (const child of el.children) visit(child)
  }
  visit(document.documentElement)
  return found
}
