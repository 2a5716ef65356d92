package httpapi_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/token"
)

// Names are compared as browsers write them, and no other name is ours.
func TestHosts(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *httpapi.Config) {
		c.Hosts = append(c.Hosts, "Placet.Example:80", "secure.example:443", "other.example:7420", "bare.example")
	})
	for host, status := range map[string]int{
		"placet.example": 200, "placet.example:80": 200, "PLACET.EXAMPLE": 200, "placet.example:8080": 403, "x.placet.example": 403, "placet.example.": 403,
		"secure.example": 200, "secure.example:443": 200, "Secure.Example": 200,
		"other.example:7420": 200, "OTHER.example:7420": 200, "other.example": 403, "other.example:80": 403,
		"bare.example": 200, "bare.example:80": 200, "bare.example:7420": 403,
		"placet": 403, "Placet": 403, "placet:80": 403,
	} {
		r := w.do("agent", "GET", "/v1/tools", "", "Host", host)
		if w.want(r, status); status == 403 && r.get("reason") != "unknown_host" {
			t.Errorf("%q: %s", host, r.text)
		}
	}
	for origin, host := range map[string]string{"http://placet.example": "placet.example:80", "https://secure.example": "Secure.Example", "http://OTHER.example:7420": "other.example:7420"} {
		w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"o"}`, "Host", host, "Origin", origin), 200)
	}
	for origin, host := range map[string]string{"http://other.example": "other.example:7420", "http://placet.example:8080": "placet.example", "http://secure.example": "placet.example"} {
		w.want(w.do("agent", "POST", "/v1/tools/look_up/call", `{"order":"o"}`, "Host", host, "Origin", origin), 403, "reason", "cross_site")
	}
}

// The socket's name is good over the socket alone.
func TestSocketHost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	dir, err := os.MkdirTemp("/tmp", "placet") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	behind := &httptest.Server{Listener: l, Config: &http.Server{Handler: w.api}}
	behind.Start()
	defer behind.Close()
	c := httpapi.NewSocketClient(path, w.tokens[token.Agent])
	if _, err := c.Tools(t.Context()); err != nil {
		t.Error(err)
	}
	c.HTTP.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(w.http.URL, "http://"))
	}
	c.HTTP.CloseIdleConnections()
	if _, err := c.Tools(t.Context()); !errors.Is(err, httpapi.ErrHost) {
		t.Errorf("over TCP: %v", err)
	}
}
