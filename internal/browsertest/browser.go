package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/placet-dev/placet/internal/debian"
	"github.com/placet-dev/placet/internal/tidy"
)

const (
	installPatience = 10 * time.Minute
	startPatience   = 5 * time.Minute
	endPatience     = 20 * time.Second
)

// shared is the browser of this program.
var shared struct {
	sync.Mutex
	ctx context.Context
	err error
}

// browser is chromedp's context of the browser, which is started the first time.
func browser(tb testing.TB) context.Context {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.ctx == nil && shared.err == nil {
		shared.ctx, shared.err = start()
	}
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.ctx
}

// start's contexts are no test's: the browser outlives the one that happens to come first.
func start() (context.Context, error) {
	finding, cancel := context.WithTimeout(context.Background(), installPatience)
	defer cancel()
	path, err := debian.Chromium.Path(finding)
	if err != nil {
		return nil, err
	}
	home, err := tidy.Dir("browser")
	if err != nil {
		return nil, err
	}
	said := &lastWords{}
	allocator, free := chromedp.NewExecAllocator(context.Background(), options(path, home, said)...)
	// What a newer browser tells beyond the protocol that chromedp knows is no fault.
	quiet := func(string, ...any) {}
	ctx, stop := chromedp.NewContext(allocator, chromedp.WithErrorf(quiet), chromedp.WithLogf(quiet))
	if err := within(startPatience, stop, func() error { return chromedp.Do(ctx) }); err != nil {
		free()
		return nil, fmt.Errorf("start %s: %w: %s", path, err, said)
	}
	pid := chromedp.FromContext(ctx).Browser.Process().Pid
	if err := tidy.Group(pid); err != nil {
		free()
		return nil, err
	}
	tidy.AtEnd(func() error {
		closing, cancel := context.WithTimeout(ctx, endPatience)
		defer cancel()
		err := chromedp.Cancel(closing)
		free()
		return errors.Join(err, tidy.Forget(pid))
	})
	return ctx, nil
}

// within runs f, and cancels what it works on if it takes longer.
func within(limit time.Duration, cancel func(), f func() error) error {
	late := time.AfterFunc(limit, cancel)
	defer late.Stop()
	return f()
}

// resolver keeps the browser on this machine.
const resolver = "MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1, EXCLUDE [::1]"

func options(path, home string, said *lastWords) []chromedp.ExecAllocatorOption {
	all := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(filepath.Join(home, "profile")), chromedp.CombinedOutput(said),
		// Its own files lie in the folder that goes with us, wherever it thinks they belong,
		// and so its handler of crashes is found, which lives in a session of its own.
		chromedp.Env("HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "TMPDIR="+home),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", resolver), chromedp.Flag("no-proxy-server", true),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }),
	)
	if os.Geteuid() == 0 {
		all = append(all, chromedp.NoSandbox) // it refuses to run as root with one
	}
	return all
}

// lastWords keeps the end of what the browser said.
type lastWords struct {
	mu sync.Mutex
	b  []byte
}

const lastWordsSize = 4 << 10

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, p...)
	w.b = w.b[max(0, len(w.b)-lastWordsSize):]
	return len(p), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.b)
}
