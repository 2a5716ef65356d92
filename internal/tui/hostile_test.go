package tui

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
)

// What would rewrite a terminal, hide in it or pass for something else (113, 115, 117).
const hostile = "\r\x1b[2Kok\x1b]8;;http://x\a\x1b]52;c;AAAA\a\u009b31m\u0085\x7f\b\v\n\t\u202e\u2066\u200b\u00ad\ufeff\u2060\U000e0041\ufe0f\u3164p\u0430y[link](javascript:x)<b>"

// tidy is what may be part of names and ids, where less is allowed.
const tidy = "\u009b31m\u0085\u202e\u200b\u00ad\U000e0041p\u0430y"

func quote(s string) string { b, _ := json.Marshal(s); return string(b) }

// hostileWorld has such text wherever somebody else supplies it.
func hostileWorld(t *testing.T) (w *world, approvals []string, question string) {
	w = newWorld(t)
	w.ruling = func(request.Request) policy.Ruling {
		doc := json.RawMessage(`{` + quote("title"+hostile) + `:` + quote(hostile) + `}`)
		return policy.Ruling{Outcome: policy.RequireApproval, Reason: "why " + hostile, Kind: "kind" + tidy, Presentation: doc, Capability: doc}
	}
	w.useTools("About " + hostile)
	args := `{` + quote("name"+hostile) + `:` + quote(hostile) + `,"list":[` + quote(hostile) + `,{` + quote(hostile) + `:null}]}`
	opts := []call.Option{call.As("asker" + tidy), call.WithMetadata(map[string]string{"meta": hostile})}
	before := w.park("wipe", args, opts...).ApprovalID
	if _, err := w.operator("bob"+tidy).Decide(t.Context(), before, decision.Answer{Approved: true, By: "by" + hostile, Note: "note" + hostile}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ex.Resume(t.Context(), before, nil); err != nil {
		t.Fatal(err)
	}
	now := w.park("wipe", strings.Replace(args, "null", "1", 1), opts...).ApprovalID
	question = w.ask(decision.Asking{
		Prompt: "Go on? " + hostile, Options: []string{"yes " + hostile, "no " + hostile}, By: "asker" + tidy,
		Form: []byte(`{"type":"object","properties":{` + quote("field"+hostile) + `:{"type":"string","title":` + quote(hostile) + `,"enum":[` + quote(hostile) + `]}}}`),
	})
	return w, []string{before, now}, question
}

// No control character, no escape sequence and nothing that cannot be seen gets from data
// to the terminal, on whichever screen.
func TestHostileText(t *testing.T) {
	t.Parallel()
	w, approvals, question := hostileWorld(t)
	p := w.at("ana", 100, 300)
	var screens []string
	show := func(texts ...string) {
		t.Helper()
		p.until(texts...)
		p.mu.Lock()
		screens = append(screens, p.raw)
		p.mu.Unlock()
	}
	show("2 wait", "F filter")
	p.keys("F")
	show("What to show")
	p.keys("esc", "?")
	show("Keys")
	p.keys("esc")
	for _, id := range approvals {
		p.open(id)
		show("Arguments", "Marked above", "U+202E RIGHT-TO-LEFT OVERRIDE", "‹а›")
		p.keys("t")
		show("the exact text")
		p.keys("a")
		p.sync()
		show("What ")
		p.keys("esc")
		p.sync()
		p.keys("esc")
	}
	p.open(question)
	show("A job asks", "Go on?")
	p.keys("a")
	show("It also asks for", "nothing")
	p.keys("right")
	show("ok")
	p.keys("enter")
	show("Answer with this?")
	p.settle()
	p.types("answer\n")
	show("Recorded")
	p.keys("esc")
	_ = p.tm.Quit()
	p.tm.WaitFinished(t)
	for _, s := range screens {
		checkOutput(t, []byte(s), func(seq string) bool {
			return seq == "\n" || strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m")
		})
	}
	sent, err := io.ReadAll(p.tm.Output())
	if err != nil {
		t.Fatal(err)
	}
	checkOutput(t, sent, renderers)
}

// renderers are what the renderer itself sends besides text: what moves, colours and
// switches modes.
func renderers(seq string) bool {
	last := rune(seq[len(seq)-1])
	switch {
	case len(seq) == 1:
		return strings.ContainsRune("\r\n\b\t", last)
	case strings.HasPrefix(seq, "\x1b[?") && strings.HasSuffix(seq, "$p"), seq == "\x1bM":
		return true
	}
	return strings.HasPrefix(seq, "\x1b[") && strings.ContainsRune("ABCDGHIJKLMPSTXZ@`abdefghlmnqrsu", last)
}

// checkOutput takes what goes to a terminal apart: text that can be seen, and sequences
// that may be there.
func checkOutput(t *testing.T, out []byte, may func(seq string) bool) {
	t.Helper()
	if len(out) < 500 {
		t.Fatalf("only %d bytes", len(out))
	}
	parser := ansi.NewParser()
	var state byte
	for len(out) > 0 {
		seq, width, n, next := ansi.DecodeSequence(out, state, parser)
		state, out = next, out[n:]
		switch {
		case width > 0:
			for _, r := range string(seq) {
				if display.Hidden(r) || r == utf8.RuneError {
					t.Fatalf("%U was sent", r)
				}
			}
		case !may(string(seq)):
			t.Fatalf("%q was sent", seq)
		}
	}
}

// Whatever is put where and however wide the window is: no line is wider than it, so that
// nothing is cut off unsaid.
func TestNoLineIsTooWide(t *testing.T) {
	t.Parallel()
	w, approvals, question := hostileWorld(t)
	wide := w.park("wipe", `{"wide":`+quote(strings.Repeat("漢字かな交じり文", 40))+`,"marks":"e\u0301\u0301\u0301\u0301\u0301","flag":"🇩🇪👩🏽","`+strings.Repeat("x", 200)+`":1}`).ApprovalID
	p := w.at("ana", 80, 400)
	for _, id := range append(approvals, wide, question) {
		p.open(id)
		p.until("History")
		p.keys("o")
		for width := leastWidth; width <= 130; width += 5 {
			p.tm.Send(sizeOf(width, 400))
			p.sync()
			p.mu.Lock()
			for _, l := range strings.Split(p.seen, "\n") {
				if widthOf(l) > width {
					t.Fatalf("at %d columns a line has %d: %q", width, widthOf(l), l)
				}
			}
			p.mu.Unlock()
		}
		p.keys("esc")
	}
}
