package browsertest

import (
	"context"
	"strings"

	"github.com/chromedp/chromedp"
)

// found is what js/read.js tells.
type found struct {
	Text, Why string
	Absent    bool
}

// read waits for the element.
func (p *Page) read(selector, what, name string) (f found) {
	p.tb.Helper()
	p.must("read "+what+" of "+selector, func(ctx context.Context) error {
		return until(ctx, func(ctx context.Context) (_ string, err error) {
			f, err = run[found](ctx, "read", selector, what, name)
			return f.Why, err
		})
	})
	return f
}

// Text is what the first element shows that the selector means, without the blanks around
// it, once there is one.
func (p *Page) Text(selector string) string {
	p.tb.Helper()
	return strings.TrimSpace(p.read(selector, "text", "").Text)
}

// Value is what is in a field, once there is one.
func (p *Page) Value(selector string) string {
	p.tb.Helper()
	return p.read(selector, "value", "").Text
}

// Checked reports whether a box is checked, once there is one.
func (p *Page) Checked(selector string) bool {
	p.tb.Helper()
	return p.read(selector, "checked", "").Text == "true"
}

// Attr is an attribute of the first element that the selector means, once there is one.
func (p *Page) Attr(selector, name string) (value string, ok bool) {
	p.tb.Helper()
	f := p.read(selector, "the attribute "+name, name)
	return f.Text, !f.Absent
}

// Count is how many elements the selector means now, seen or not.
func (p *Page) Count(selector string) int { p.tb.Helper(); return p.count(selector).All }

// Seen is how many elements that the selector means are seen now.
func (p *Page) Seen(selector string) int { p.tb.Helper(); return p.count(selector).Seen }

type counted struct{ All, Seen int }

func (p *Page) count(selector string) counted {
	p.tb.Helper()
	return mustRun[counted](p, "count "+selector, "count", selector)
}

// Focus describes the element that has the focus, such as button#approve "Approve"; empty
// if none has.
func (p *Page) Focus() string { p.tb.Helper(); return mustRun[string](p, "see the focus", "focus") }

// WaitFor waits until an element is seen that the selector means.
func (p *Page) WaitFor(selector string) {
	p.tb.Helper()
	p.wait("wait for "+selector, func(ctx context.Context) (string, error) {
		n, err := run[counted](ctx, "count", selector)
		switch {
		case err != nil || n.Seen > 0:
			return "", err
		case n.All > 0:
			return "it is there, and not seen", nil
		}
		return "there is none", nil
	})
}

// WaitGone waits until no element is seen that the selector means.
func (p *Page) WaitGone(selector string) {
	p.tb.Helper()
	p.wait("wait until "+selector+" is gone", func(ctx context.Context) (string, error) {
		n, err := run[counted](ctx, "count", selector)
		if err == nil && n.Seen > 0 {
			return "it is still seen", nil
		}
		return "", err
	})
}

// WaitText waits until the first element that the selector means shows that text, with
// whatever around it.
func (p *Page) WaitText(selector, text string) {
	p.tb.Helper()
	p.wait("wait until "+selector+" shows "+text, func(ctx context.Context) (string, error) {
		f, err := run[found](ctx, "read", selector, "text", "")
		if err != nil || f.Why != "" || strings.Contains(f.Text, text) {
			return f.Why, err
		}
		return "it shows " + f.Text, nil
	})
}

// WaitUntil waits until a JavaScript expression is true.
func (p *Page) WaitUntil(expression string) {
	p.tb.Helper()
	p.wait("wait until "+expression, func(ctx context.Context) (string, error) {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && !ok {
			return "it is not", nil
		}
		return "", err
	})
}

func (p *Page) wait(what string, look func(context.Context) (why string, err error)) {
	p.tb.Helper()
	p.must(what, func(ctx context.Context) error { return until(ctx, look) })
}
