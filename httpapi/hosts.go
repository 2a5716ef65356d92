package httpapi

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// SocketHost is the host of requests over the Unix socket, and of no others.
const SocketHost = "placet"

// hosts are the names that a server goes by.
type hosts map[string]bool

func hostsOf(names []string) hosts {
	h := hosts{}
	for _, n := range names {
		h[spelt(n)] = true
	}
	return h
}

// knows reports whether the request is for one of them.
func (h hosts) knows(r *http.Request) bool {
	name := spelt(r.Host)
	return h[name] || name == SocketHost && overSocket(r)
}

// spelt is the one spelling of a host: in lower case, without the port that a browser
// leaves out.
func spelt(host string) string {
	host = strings.ToLower(host)
	for _, usual := range []string{":80", ":443"} {
		if name, ok := strings.CutSuffix(host, usual); ok {
			return name
		}
	}
	return host
}

func overSocket(r *http.Request) bool {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && a.Network() == "unix"
}

var crossOrigin = http.NewCrossOriginProtection()

// sameSite refuses what a page of another site sent. The standard library's check
// lets every GET pass, and whatever has neither header.
func sameSite(r *http.Request) error {
	host := spelt(r.Host)
	origins := r.Header.Values("Origin")
	if len(origins) > 1 {
		return ErrCrossSite
	}
	if len(origins) == 1 && origins[0] != "" {
		u, err := url.Parse(origins[0])
		if err != nil || spelt(u.Host) != host {
			return ErrCrossSite
		}
		host = u.Host // as the standard library compares it
	}
	if crossOrigin.Check(&http.Request{Method: r.Method, Host: host, Header: r.Header, URL: r.URL}) != nil {
		return ErrCrossSite
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return nil
	}
	return ErrCrossSite
}
