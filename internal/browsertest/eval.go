package browsertest

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// Eval evaluates a JavaScript expression in the page, and waits for its promise if it is
// one. It works also where the page's own scripts are off.
func Eval[T any](p *Page, expression string) (v T) {
	p.tb.Helper()
	p.must("evaluate "+expression, func(ctx context.Context) (err error) {
		v, err = chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
		return err
	})
	return v
}

//go:embed js
var scripts embed.FS

// script is one of the functions in js, with what all of them know around it.
func script(name string, args ...any) (string, error) {
	common, err := scripts.ReadFile("js/common.js")
	if err != nil {
		return "", err
	}
	function, err := scripts.ReadFile("js/" + name + ".js")
	if err != nil {
		return "", err
	}
	var given []string
	for _, a := range args {
		b, err := json.Marshal(a)
		if err != nil {
			return "", err
		}
		given = append(given, string(b))
	}
	return fmt.Sprintf("(() => {\n%s\nreturn (\n%s\n)(%s)\n})()", common, function, strings.Join(given, ", ")), nil
}

func run[T any](ctx context.Context, name string, args ...any) (v T, err error) {
	text, err := script(name, args...)
	if err != nil {
		return v, err
	}
	return chromedp.Run(ctx, chromedp.Evaluate[T](text, chromedp.EvalAwaitPromise))
}

// mustRun runs one of the functions in js.
func mustRun[T any](p *Page, what, name string, args ...any) (v T) {
	p.tb.Helper()
	p.must(what, func(ctx context.Context) (err error) {
		v, err = run[T](ctx, name, args...)
		return err
	})
	return v
}

// tick is how often a page is looked at that is waited for.
const tick = 20 * time.Millisecond

// until looks until look is content. It returns why not, if that takes too long: what look
// said last.
func until(ctx context.Context, look func(context.Context) (why string, err error)) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last := errors.New("it does not answer")
	for {
		why, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return last
		case err != nil:
			last = err // the page may be on its way to another
		case why == "":
			return nil
		default:
			last = errors.New(why)
		}
		select {
		case <-ctx.Done():
			return last
		case <-ticker.C:
		}
	}
}
