package browsertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// OutVariable names the folder into which pictures are written. Without it, [Page.Screenshot]
// writes into the test's own, and those of failures are kept in one of their own.
const OutVariable = "PLACET_E2E_OUT"

// statePatience bounds how long a page may take to say how it is, after something failed.
const statePatience = 5 * time.Second

const shownText = 2000

// fatalf ends the test, with what there is to see.
func (p *Page) fatalf(format string, args ...any) {
	p.tb.Helper()
	p.tb.Fatalf("%s\n%s", fmt.Sprintf(format, args...), p.state())
}

// state is what there is to see. What cannot be told is left out, or says why.
func (p *Page) state() string {
	ctx, cancel := context.WithTimeout(p.ctx, statePatience)
	defer cancel()
	var b strings.Builder
	line := func(name string, v any) { fmt.Fprintf(&b, "  %-8s %v\n", name, v) }
	p.rec.mu.Lock()
	crashed, dialogs := p.rec.crashed, p.rec.dialogs
	p.rec.mu.Unlock()
	if crashed {
		line("crashed", "the page's process is gone")
	}
	now, err := run[struct{ URL, Title, Focus, Text string }](ctx, "state", shownText)
	if err != nil {
		line("page", err)
	} else {
		line("url", now.URL)
		line("title", now.Title)
		line("focus", now.Focus)
	}
	for _, d := range dialogs {
		line("dialog", d)
	}
	for _, m := range p.Errors() {
		line("console", m)
	}
	for _, r := range failed(p.rec.requests()) {
		line("request", r)
	}
	if at, err := p.picture(ctx); err != nil {
		line("picture", err)
	} else {
		line("picture", at)
	}
	line("text", strings.ReplaceAll(now.Text, "\n", "\n           "))
	return b.String()
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// picture writes one of what failed to where it can be looked at later.
func (p *Page) picture(ctx context.Context) (path string, err error) {
	dir := p.failures
	if dir == "" {
		dir = os.Getenv(OutVariable)
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "placet-failed-"); err != nil {
			return "", err
		}
	}
	path = filepath.Join(dir, "failed-"+unfit.ReplaceAllString(p.tb.Name(), "-")+".png")
	return path, shoot(ctx, path)
}

// Screenshot writes a picture of the whole page, not only of what is in the window, to the
// folder that [OutVariable] names, and returns its path. A name may have folders in it.
func (p *Page) Screenshot(name string) (path string) {
	p.tb.Helper()
	dir := os.Getenv(OutVariable)
	if dir == "" {
		dir = p.tb.ArtifactDir()
	}
	path = filepath.Join(dir, filepath.FromSlash(name)+".png")
	p.must("take a picture", func(ctx context.Context) error { return shoot(ctx, path) })
	return path
}

func shoot(ctx context.Context, path string) error {
	beyond := true
	shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: &beyond})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, shot.Data, 0o644)
}
