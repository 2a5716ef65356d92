package browsertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Click clicks what the selector means, once it is seen and nothing covers it. A phone is
// tapped. It returns at once: wait for what comes of it, or use [Page.Follow].
func (p *Page) Click(selector string) {
	p.tb.Helper()
	p.must("click "+selector, func(ctx context.Context) error { return p.click(ctx, selector) })
}

// Follow clicks what leads to another page, and returns once that has loaded.
func (p *Page) Follow(selector string) {
	p.tb.Helper()
	p.arrive("follow "+selector, func(ctx context.Context) error { return p.click(ctx, selector) })
}

func (p *Page) click(ctx context.Context, selector string) error {
	var at struct {
		X, Y float64
		Why  string
	}
	err := until(ctx, func(ctx context.Context) (_ string, err error) {
		at.Why = ""
		at, err = run[struct {
			X, Y float64
			Why  string
		}](ctx, "at", selector)
		return at.Why, err
	})
	if err != nil {
		return err
	}
	if p.to.touch {
		return chromedp.Do(ctx, chromedp.TapXY(at.X, at.Y))
	}
	return chromedp.Do(ctx, chromedp.MouseEvent(chromedp.MouseMoved, at.X, at.Y), chromedp.MouseClickXY(at.X, at.Y))
}

// Type clicks a field and types at the end of what is in it. A "\n" is the Enter key.
func (p *Page) Type(selector, text string) {
	p.tb.Helper()
	p.must("type into "+selector, func(ctx context.Context) error {
		if err := p.click(ctx, selector); err != nil {
			return err
		}
		if err := press(ctx, "Control+End"); err != nil {
			return err
		}
		return chromedp.Do(ctx, chromedp.KeyEvent(text))
	})
}

// Fill clicks a field and types in place of what is in it. A "\n" is the Enter key.
func (p *Page) Fill(selector, text string) {
	p.tb.Helper()
	p.must("fill "+selector, func(ctx context.Context) error {
		if err := p.click(ctx, selector); err != nil {
			return err
		}
		if err := press(ctx, "Control+a", "Delete"); err != nil {
			return err
		}
		return chromedp.Do(ctx, chromedp.KeyEvent(text))
	})
}

// Paste puts text where the cursor is, at once.
func (p *Page) Paste(text string) {
	p.tb.Helper()
	p.must("paste", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
		return err
	})
}

// Choose chooses the option of a select that has that text.
func (p *Page) Choose(selector, label string) {
	p.tb.Helper()
	p.must("choose "+label, func(ctx context.Context) error {
		why, err := run[string](ctx, "choose", selector, label)
		if err == nil && why != "" {
			err = errors.New(why)
		}
		return err
	})
}

// Press presses keys, one after the other: a character, or a name as in KeyboardEvent.key
// (Enter, Escape, Tab, ArrowDown, Space, …), with Shift, Control, Alt or Meta before it,
// as in "Shift+Tab".
func (p *Page) Press(keys ...string) {
	p.tb.Helper()
	p.must("press "+strings.Join(keys, " "), func(ctx context.Context) error { return press(ctx, keys...) })
}

// PressTo presses keys that lead to another page, and returns once that has loaded.
func (p *Page) PressTo(keys ...string) {
	p.tb.Helper()
	p.arrive("press "+strings.Join(keys, " "), func(ctx context.Context) error { return press(ctx, keys...) })
}

func press(ctx context.Context, keys ...string) error {
	for _, name := range keys {
		key, modifiers, err := keyOf(name)
		if err != nil {
			return err
		}
		if err := chromedp.Do(ctx, chromedp.KeyEvent(key, chromedp.KeyModifiers(modifiers...))); err != nil {
			return err
		}
	}
	return nil
}

var modifiers = map[string]chromedp.Modifier{
	"Shift": chromedp.ModifierShift, "Control": chromedp.ModifierCtrl, "Alt": chromedp.ModifierAlt, "Meta": chromedp.ModifierMeta,
}

func keyOf(name string) (key string, with []chromedp.Modifier, err error) {
	rest := name
	for {
		before, after, more := strings.Cut(rest, "+")
		m, ok := modifiers[before]
		if !more || !ok || after == "" {
			break
		}
		with, rest = append(with, m), after
	}
	switch {
	case rest == "Space":
		return " ", with, nil
	case utf8.RuneCountInString(rest) == 1:
		return rest, with, nil
	}
	for r, k := range kb.Keys {
		if k.Key == rest && r != '\n' { // which is Enter once more
			return string(r), with, nil
		}
	}
	return "", nil, fmt.Errorf("there is no key %q", name)
}
