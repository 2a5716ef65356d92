package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
)

// search is what is found of a text, page by page.
func (w *world) search(text string, more ...func(*decision.Queued)) []string {
	w.Helper()
	q := decision.Queued{Space: event.MainSpace, Search: text, Limit: 3}
	for _, change := range more {
		change(&q)
	}
	return w.walk(q, func([]decision.Decision) {})
}

// queueSearch looks in each of the fields, and nothing is special to it: no pattern, no
// quote, no byte that is no text.
func queueSearch(w *world) {
	parts := []string{"100%", "a_b", `it's "so"`, `c:\temp`, "Ünï", "MiXed", "x%x", "sha-51", `\000`, `\134`, "  "}
	fields := []func(d *decision.Decision, s string){
		func(d *decision.Decision, s string) { d.RunID = s }, func(d *decision.Decision, s string) { d.CallID = s },
		func(d *decision.Decision, s string) { d.Tool = s }, func(d *decision.Decision, s string) { d.Kind = s },
		func(d *decision.Decision, s string) { d.RequestedBy = s }, func(d *decision.Decision, s string) { d.Reason = s },
		func(d *decision.Decision, s string) { d.Prompt = s }, func(d *decision.Decision, s string) { d.ID += s },
		func(d *decision.Decision, s string) { d.Request = []byte("\x00" + s + "\xff\xfe") },
		func(d *decision.Decision, s string) { d.Request = []byte("\xc3" + s + `\00` + s + "\\\x000") },
	}
	want := map[string][]string{}
	w.park(len(parts)*len(fields), func(i int, d *decision.Decision) {
		d.RunID, d.CallID, d.Tool, d.Kind, d.RequestedBy, d.Reason, d.Request = "", "", "", "", "", "", nil
		part := parts[i/len(fields)]
		fields[i%len(fields)](d, "<"+part+">")
		want[part] = append(want[part], d.ID)
	})
	w.park(1, func(_ int, d *decision.Decision) { d.Space = "other"; d.Reason = strings.Join(parts, "<>") })
	for _, part := range parts {
		slices.Sort(want[part]) // they expire together
		for _, text := range []string{"<" + part + ">", strings.Map(otherCase, "<"+part+">"), part} {
			w.Logf("%q", text)
			w.same(want[part], w.search(text))
			w.same(want[part], w.search(text, func(q *decision.Queued) { q.Back, q.Look = true, 7 }))
		}
	}
	for _, none := range []string{"<%>", "<___>", "100_", "c:/temp", "ünï", "a b", "<a_b><", "\uFFFD", `\377`, `>\376`} {
		w.Logf("%q", none)
		w.same([]string(nil), w.search(none))
	}
}

// otherCase changes the letters A to Z alone.
func otherCase(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z':
		return r - 'a' + 'A'
	case 'A' <= r && r <= 'Z':
		return r - 'A' + 'a'
	}
	return r
}

// queueSearchEscaped: a request is JSON, and says one text in several ways.
func queueSearchEscaped(w *world) {
	const text = "Said \"<é&\U0001F600/>\"\n\\u"
	ways := []string{
		`{"a": "Said \"<é&` + "\U0001F600" + `/>\"\n\\u"}`,
		`{"a": "Said \"\u003cé\u0026` + "\U0001F600" + `/\u003e\"\n\\u"}`,
		`{"a": "Said \"<\u00e9&\ud83d\ude00/>\"\n\\u"}`,
		`{"a": "Said \"<\u00E9&\uD83D\uDE00\/>\"\n\\u"}`,
	}
	ds := w.park(len(ways), func(i int, d *decision.Decision) { d.Request = []byte(ways[i]) })
	w.same(idsOf(ds), w.search(text))
	w.same(idsOf(ds), w.search("é&"+"\U0001F600"))
	w.same([]string(nil), w.search("É&"+"\U0001F600"))
}

// queueSearchCut looks through a few at a time, in both directions, while what was seen is
// decided: what is there is found once, and where the search got to is told.
func queueSearchCut(w *world) {
	var want []string
	w.park(40, func(i int, d *decision.Decision) {
		d.ExpiresAt = moment(int64(10 + i/15))
		if d.Reason = "no"; i%13 == 5 {
			d.Reason = "yes"
			want = append(want, d.ID)
		}
	})
	for _, back := range []bool{false, true} {
		for look := range 9 {
			for limit := range 3 {
				cut := func(q *decision.Queued) { q.Back, q.Look, q.Limit = back, look+1, limit+1 }
				w.same(want, w.search("YES", cut))
			}
		}
	}
	p := w.queue(decision.Queued{Space: event.MainSpace, Search: "yes", Look: 4})
	if len(p.Decisions) > 0 || !p.Cut || p.End.IsZero() || !p.Begin.IsZero() {
		w.Errorf("of the first four: %+v", p)
	}
	p = w.queue(decision.Queued{Space: event.MainSpace, Search: "yes", Look: 4, Back: true})
	if len(p.Decisions) > 0 || !p.Cut || p.Begin.IsZero() || !p.End.IsZero() {
		w.Errorf("of the last four: %+v", p)
	}
	got := w.walk(decision.Queued{Space: event.MainSpace, Search: "yes", Look: 4}, func(page []decision.Decision) {
		for _, d := range page {
			w.write(func(tx store.Tx) error { return tx.PutDecision(d, yes(d)) })
		}
		w.park(1, func(_ int, d *decision.Decision) { d.ExpiresAt = moment(9) })
	})
	w.same(want, got)
	w.same([]string(nil), w.search("yes"))
}

// queueSearchLarge finds what stands at the end of requests of a megabyte, of which only
// some are looked through at a time.
func queueSearchLarge(w *world) {
	large := bytes.Repeat([]byte("0123456789abcdeF"), 1<<16)
	var want []string
	w.park(20, func(i int, d *decision.Decision) {
		if d.Request = large; i%4 == 3 {
			d.Request = append(large[:len(large):len(large)], "Needle"...)
			want = append(want, d.ID)
		}
	})
	w.same(want, w.search("FNEEDLE"))
	w.same(want, w.search("fneedle", func(q *decision.Queued) { q.Back, q.Limit = true, 2 }))
}

// queueNoSearch: what no field can hold is not searched for, or picked by.
func queueNoSearch(w *world) {
	for _, s := range append(slices.Clone(noTexts), strings.Repeat("x", decision.MaxSearch+1)) {
		if _, err := try(w, func(tx store.Tx) (decision.QueuePage, error) {
			return tx.Queue(decision.Queued{Space: event.MainSpace, Search: s})
		}); !errors.Is(err, decision.ErrUsage) {
			w.Errorf("%.20q: %v", s, err)
		}
	}
	for _, s := range noTexts {
		for _, q := range []decision.Queued{{Kind: s}, {Tool: s}, {Space: s}, {Type: decision.Type(s)}, {Owner: decision.OwnerKind(s)}, {After: decision.QueuePlace{ID: s}}} {
			if _, err := try(w, func(tx store.Tx) (decision.QueuePage, error) { return tx.Queue(q) }); !errors.Is(err, decision.ErrUsage) {
				w.Errorf("%+v: %v", q, err)
			}
		}
	}
	for i, s := range hard {
		if len(s) <= decision.MaxSearch {
			d := w.park(1, func(_ int, d *decision.Decision) { d.Reason = fmt.Sprintf("%d|%s|", i, s) })[0]
			w.same([]string{d.ID}, w.search(fmt.Sprintf("%d|%s|", i, s)))
		}
	}
}
