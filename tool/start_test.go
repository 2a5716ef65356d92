package tool

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errLease = errors.New("the lease ended")

// lapsing passes so many times, and then no more.
func lapsing(ctx context.Context, passes int32) context.Context {
	var asked atomic.Int32
	return WithStartCheck(ctx, func() error {
		if asked.Add(1) > passes {
			return errLease
		}
		return nil
	})
}

func TestStartCheck(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	if err := StartCheck(ctx); err != nil {
		t.Errorf("no check: %v", err)
	}
	if err := StartCheck(lapsing(ctx, 1)); err != nil {
		t.Errorf("a check that passes: %v", err)
	}
	if err := StartCheck(lapsing(ctx, 0)); !errors.Is(err, errLease) {
		t.Errorf("a check that fails: %v", err)
	}
	for _, both := range [][2]int32{{0, 1}, {1, 0}} {
		if err := StartCheck(lapsing(lapsing(ctx, both[0]), both[1])); !errors.Is(err, errLease) {
			t.Errorf("two checks: %v", err)
		}
	}
	ended, cancel := context.WithCancel(lapsing(ctx, 0))
	cancel()
	if err := StartCheck(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended: %v", err)
	}
}

func wantNotStarted(t *testing.T, what string, o Outcome) {
	t.Helper()
	if o.Status != Failed || o.Kind != KindNotStarted || !strings.Contains(o.Message, errLease.Error()) {
		t.Errorf("%s: %+v", what, o)
	}
}

// Whatever carries the tool out, it asks once more when it is about to begin.
func TestStartCheckIsAskedLast(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "ran")
	var began atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { began.Add(1) }))
	t.Cleanup(srv.Close)
	request, err := NewHTTP("POST", srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	function := MustNew("f", "x", Destructive, func(context.Context, struct{}) (int, error) { began.Add(1); return 1, nil }, nil)
	runners := map[string]Runner{
		"exec": shell(t, "touch '"+marker+"'; echo 1"), "http": request, "typed": function.Run,
	}
	for name, run := range runners {
		tl := toolOf(t, Destructive, run.Run)
		wantNotStarted(t, name+", before Invoke", Invoke(lapsing(t.Context(), 0), tl, aCall(`{}`), nil))
		wantNotStarted(t, name+", after Invoke", Invoke(lapsing(t.Context(), 1), tl, aCall(`{}`), nil))
	}
	own := toolOf(t, Destructive, func(context.Context, Call) (json.RawMessage, error) { began.Add(1); return json.RawMessage("1"), nil })
	wantNotStarted(t, "a Runner of its own", Invoke(lapsing(t.Context(), 0), own, aCall(`{}`), nil))
	if _, err := os.Stat(marker); err == nil || began.Load() != 0 {
		t.Error("something began")
	}
	for name, run := range runners {
		if name == "http" {
			continue // its server answers with nothing
		}
		if o := Invoke(lapsing(t.Context(), 2), toolOf(t, Destructive, run.Run), aCall(`{}`), nil); o.Status != Succeeded {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// A pinned program whose content took long to read.
func TestStartCheckFollowsThePin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "p.sh")
	writeProgram(t, path, "#!/bin/sh\ntouch ran\necho 1\n")
	e, err := NewExec([]string{"./p.sh"}, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	asked := false
	ctx := WithStartCheck(t.Context(), func() error { asked = true; return errLease })
	if _, err := e.Run(ctx, aCall(`{}`)); !errors.Is(err, ErrNotStarted) || asked {
		t.Errorf("Run: %v; asked before the pin was checked: %t", err, asked)
	}
	writeProgram(t, path, "#!/bin/sh\ntouch ran\necho 1\n")
	if _, err := e.Run(ctx, aCall(`{}`)); !errors.Is(err, ErrNotStarted) || !asked {
		t.Errorf("Run: %v; asked: %t", err, asked)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("the program ran")
	}
}

// Nothing of a request is written, in either version of HTTP, and no second
// connection is tried.
func TestStartCheckStopsARequest(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		var arrived, asked atomic.Int32
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			arrived.Add(int32(r.ProtoMajor))
			w.Write([]byte("1"))
		}))
		srv.EnableHTTP2 = http2
		srv.StartTLS()
		t.Cleanup(srv.Close)
		h, err := NewHTTP("POST", srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.transport.TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		if !http2 {
			h.transport.TLSClientConfig.NextProtos = nil
			h.transport.ForceAttemptHTTP2 = false
		}
		_, err = h.Run(WithStartCheck(t.Context(), func() error { asked.Add(1); return errLease }), aCall(`{"a":"`+strings.Repeat("x", 1<<16)+`"}`))
		if !errors.Is(err, ErrNotStarted) || !strings.Contains(err.Error(), errLease.Error()) {
			t.Errorf("HTTP/2 %t: %v", http2, err)
		}
		if arrived.Load() != 0 || asked.Load() != 1 {
			t.Errorf("HTTP/2 %t: arrived %d, asked %d times", http2, arrived.Load(), asked.Load())
		}
		want := int32(1)
		if http2 {
			want = 2
		}
		if out, err := h.Run(lapsing(t.Context(), 1), aCall(`{}`)); err != nil || string(out) != "1" || arrived.Load() != want {
			t.Errorf("HTTP/2 %t: Run = %s, %v; version %d arrived", http2, out, err, arrived.Load())
		}
	}
}

// The time limit may pass while the check is asked: nothing is begun then.
func TestStartCheckAfterTheTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := false
		tl := toolOf(t, Destructive, func(context.Context, Call) (json.RawMessage, error) { began = true; return json.RawMessage("1"), nil })
		late := make(chan Outcome, 1)
		ctx := WithStartCheck(t.Context(), func() error { time.Sleep(time.Hour); return nil })
		if o := Invoke(ctx, tl, aCall(`{}`), func(o Outcome) { late <- o }); o.Status != Unknown || !o.Running {
			t.Errorf("Invoke = %+v", o)
		}
		if o := <-late; o.Kind != KindNotStarted || began {
			t.Errorf("late: %+v; began: %t", o, began)
		}
	})
}
