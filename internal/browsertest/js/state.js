// What a person sees of the page.
limit => ({
  url: location.href,
  title: document.title,
  focus: document.activeElement && document.activeElement !== document.body ? describe(document.activeElement) : '',
  text: (document.body?.innerText ?? '').slice(0, limit),
})
