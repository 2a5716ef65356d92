// How far things moved without anybody's doing, once what was changed is painted.
async () => {
  let sum = 0
  const add = entries => entries.forEach(e => { if (!e.hadRecentInput) sum += e.value })
  const observer = new PerformanceObserver(list => add(list.getEntries()))
  observer.observe({type: 'layout-shift', buffered: true})
  const painted = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)))
  await painted()
  await painted()
  add(observer.takeRecords())
  observer.disconnect()
  return sum
}
