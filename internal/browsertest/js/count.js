// How many elements a selector means, and how many of them are seen.
selector => {
  const list = all(selector)
  return {all: list.length, seen: list.filter(seen).length}
}
