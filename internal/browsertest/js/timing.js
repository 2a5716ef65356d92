// What the browser has measured.
() => {
  const [page] = performance.getEntriesByType('navigation')
  const rest = performance.getEntriesByType('resource')
  const size = list => ({
    wire: list.reduce((n, e) => n + e.transferSize, 0),
    decoded: list.reduce((n, e) => n + e.decodedBodySize, 0),
  })
  return {
    firstByte: page.responseStart - page.requestStart,
    parsed: page.domContentLoadedEventEnd,
    loaded: page.loadEventEnd,
    document: size([page]),
    all: size([page, ...rest]),
    requests: 1 + rest.length,
  }
}
