package tui

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// app is the program: a stack of screens, of which the top one is seen and gets the keys.
type app struct {
	Config
	ctx   context.Context
	w, h  int
	stack []screen

	hush   lull          // open, except for a moment after an answer was closed under somebody's hands
	skew   time.Duration // from our clock to the store's
	flight *flight       // an answer that is on its way; nil: none is
	away   int           // screens that cannot be read now
	err    error         // why the inbox ends by itself
}

// screen is one page.
type screen interface {
	// title is the line at the top: what this is, and where it stands.
	title() (left, right string)
	// body fills h lines of w columns, or fewer.
	body(w, h int) []string
	// keys are those that do something now, the most important first.
	keys() []binding
	// press takes a key or pasted text, of the screen that is seen.
	press(msg tea.Msg) tea.Cmd
	// hear takes everything else.
	hear(msg tea.Msg) tea.Cmd
	// close ends what the screen waits for.
	close()
}

// binding is a key with what it does, in a word or two and, where that says too little, in
// a sentence.
type binding struct{ key, does, more string }

// on is a key that two words tell enough of.
func on(key, does string) binding { return binding{key: key, does: does} }

func newApp(ctx context.Context, c Config) *app {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.After == nil {
		c.After = func(d time.Duration, msg tea.Msg) tea.Cmd { return tea.Tick(d, func(time.Time) tea.Msg { return msg }) }
	}
	a := &app{Config: c, ctx: ctx, w: 80, h: 24}
	a.hush = lull{app: a, open: true}
	a.stack = []screen{newQueue(a)}
	return a
}

// tickMsg comes once a second: what is counted down is drawn anew.
type tickMsg struct{}

// Init is tea.Model's.
func (a *app) Init() tea.Cmd {
	return tea.Batch(a.stack[0].(*queue).load(), a.After(time.Second, tickMsg{}))
}

// Update is tea.Model's.
func (a *app) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		a.w, a.h = m.Width, m.Height
	case goneMsg:
		return a, a.fail(ErrGone)
	case tickMsg:
		// A window that was resized while the program started told nobody.
		return a, tea.Batch(a.broadcast(msg), a.After(time.Second, tickMsg{}), tea.RequestWindowSize)
	case retryMsg:
		if m.gen == m.of.gen {
			return a, m.again()
		}
	case tea.KeyPressMsg:
		switch m.String() {
		case "ctrl+c":
			return a, tea.Quit
		case "ctrl+z":
			return a, tea.Suspend
		}
		if a.hush.dropped() {
			return a, nil
		}
		return a, a.top().press(msg)
	case tea.PasteMsg:
		return a, a.top().press(msg)
	default:
		return a, tea.Batch(a.hush.hear(msg), a.broadcast(msg))
	}
	return a, nil
}

func (a *app) broadcast(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	for _, s := range append([]screen(nil), a.stack...) {
		cmds = append(cmds, s.hear(msg))
	}
	return tea.Batch(cmds...)
}

func (a *app) top() screen { return a.stack[len(a.stack)-1] }

func (a *app) push(s screen) { a.stack = append(a.stack, s) }

// back leaves the screen that is seen.
func (a *app) back() {
	if len(a.stack) > 1 {
		a.top().close()
		a.stack = a.stack[:len(a.stack)-1]
	}
}

// backTo leaves all screens above s, and reports whether there were any.
func (a *app) backTo(s screen) (left bool) {
	for len(a.stack) > 1 && a.top() != s {
		a.back()
		left = true
	}
	return left
}

// fail ends the inbox.
func (a *app) fail(err error) tea.Cmd {
	if a.err == nil {
		a.err = err
	}
	return tea.Quit
}

// now is the store's time.
func (a *app) now() time.Time { return a.Now().Add(a.skew) }

// read notes the store's time as it was at a reading.
func (a *app) read(at time.Time) { a.skew = at.Sub(a.Now()) }

// The smallest window in which anything can be shown.
const (
	leastWidth  = 20
	leastHeight = 6
)

// View is tea.Model's.
func (a *app) View() tea.View {
	v := tea.NewView(a.screen())
	v.AltScreen = true
	return v
}

func (a *app) screen() string {
	if a.w < leastWidth || a.h < leastHeight {
		return "Too small."
	}
	s := a.top()
	lines := append([]string{a.headLine(s)}, ours.of(strings.Repeat("─", a.w)))
	foot := helpLine(s.keys(), a.w)
	room := a.h - len(lines) - 1
	body := s.body(a.w, room)
	body = body[:min(len(body), room)]
	lines = append(lines, body...)
	for len(lines) < a.h-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, foot), "\n")
}

func (a *app) headLine(s screen) string {
	left, right := s.title()
	if a.away > 0 {
		right = "it cannot be read, and is tried again"
	}
	room := a.w - widthOf(right) - 2
	if right == "" || room < 10 {
		return short(oneLook(left, strong), a.w)
	}
	return column(oneLook(left, strong), room) + "  " + right
}

// helpLine is the keys that fit on a line; ? leads to all of them.
func helpLine(keys []binding, width int) string {
	var spans []span
	used := 0
	for i, k := range keys {
		text := k.key + " " + k.does
		gap := 0
		if i > 0 {
			gap = 3
		}
		if used+gap+widthOf(text) > width-9 && k.key != "?" {
			continue
		}
		if used+gap+widthOf(text) > width {
			continue
		}
		used += gap + widthOf(text)
		spans = append(spans, span{strings.Repeat(" ", gap), plain}, span{k.key, strong}, span{" " + k.does, quiet})
	}
	return short(spans, width)
}
