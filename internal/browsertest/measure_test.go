package browsertest

import (
	"compress/gzip"
	"net/http"
	"strings"
	"testing"
)

func TestLayoutShift(t *testing.T) {
	t.Parallel()
	const still = `<style>body { margin: 0 }</style><div id=box style="height:300px;background:#ccc">box</div>`
	calm := open(t, still)
	if got := calm.LayoutShift(); got != 0 {
		t.Errorf("nothing moves, and it is %f", got)
	}
	jumps := open(t, still+`<script>requestAnimationFrame(() => requestAnimationFrame(() => {
		box.before(Object.assign(document.createElement('div'), {style: 'height:200px', textContent: 'late'})); document.title = 'moved' }))</script>`)
	jumps.WaitUntil("document.title === 'moved'")
	if got := jumps.LayoutShift(); got < 0.05 {
		t.Errorf("it moves, and it is %f", got)
	}
	jumps.Reload()
	jumps.WaitUntil("document.title === 'moved'")
	if got := jumps.LayoutShift(); got < 0.05 || got > 1 {
		t.Errorf("after a reload it is %f", got)
	}
	calm.ScriptOff()
	mustSay(t, mustFail(t, calm, func(p *Page) { p.LayoutShift() }), "needs the page's scripts")
}

func TestTiming(t *testing.T) {
	t.Parallel()
	style := strings.Repeat("p { color: red } ", 1000)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			write(w, `<link rel=stylesheet href=/a.css><h1>x</h1>`)
			return
		}
		w.Header().Set("Content-Type", "text/css")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		z.Write([]byte(style))
		z.Close()
	}))
	p := New(t)
	p.Open(url + "/")
	m := p.Timing()
	if m.FirstByte <= 0 || m.Parsed < m.FirstByte || m.Loaded < m.Parsed {
		t.Errorf("%+v", m)
	}
	if body := m.All.Decoded - m.Document.Decoded; body != int64(len(style)) || m.Requests != 2 {
		t.Errorf("the sheet has %d bytes: %+v", body, m)
	}
	if wire := m.All.Wire - m.Document.Wire; wire <= 0 || wire > 1000 || m.Document.Wire <= m.Document.Decoded {
		t.Errorf("the sheet took %d bytes: %+v", wire, m)
	}
}
