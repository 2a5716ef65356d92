package daemon

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/placet-dev/placet/internal/place"
)

// The socket is its user's alone, takes the place of one that nobody listens on, and of
// nothing else; what a killed daemon left is cleared away, and a closed one leaves nothing.
func TestSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, err := HomeOf(place.File(filepath.Join(dir, "p.db")))
	if err != nil {
		t.Fatal(err)
	}
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: h.Socket()})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	if err := os.MkdirAll(filepath.Join(h.Socket()+"d", "s"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := h.listenSocket()
	if err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(h.Socket()); err != nil || fi.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
	c, err := net.Dial("unix", h.Socket())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}

	if err := os.WriteFile(h.Socket(), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err == nil {
		t.Error("closed twice")
	}
	if l, err := h.listenSocket(); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("%v %v", l, err)
	}
	if b, err := os.ReadFile(h.Socket()); err != nil || string(b) != "mine" {
		t.Errorf("%q %v", b, err)
	}
}
