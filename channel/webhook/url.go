package webhook

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/fault"
)

// endpoint is where a URL leads.
type endpoint struct {
	url      *url.URL
	host     string     // in lower case, without brackets
	addr     netip.Addr // of a host that is an address; else not valid
	port     uint16
	loopback bool // the URL itself names this host: localhost, 127.0.0.0/8, ::1
}

// readURL reads a URL that has one meaning for every reader. Whatever some reader
// takes for an address and [netip.ParseAddr] does not is refused, since it could be
// judged as one thing and connected to as another. No sentence shows the URL: it may
// hold a password.
func readURL(text string) (endpoint, error) {
	if err := plainURL(text); err != nil {
		return endpoint{}, err
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "":
		return endpoint{}, refused("cannot be read").Hint("Write it as https://host/path.")
	case u.User != nil:
		return endpoint{}, refused("may have no user and password: it is shown to others").Hint("Put them into headers.")
	case u.Scheme != "https" && u.Scheme != "http":
		return endpoint{}, refused("has to start with https://")
	case u.Host == "":
		return endpoint{}, refused("names no host")
	}
	e := endpoint{url: u}
	host, port := splitHost(u)
	if e.port, err = readPort(u.Scheme, port); err != nil {
		return endpoint{}, err
	}
	return e, e.readHost(host)
}

func refused(format string, args ...any) *fault.Error {
	return delivery.ErrUsage.Say("The URL "+format+".", args...)
}

// plainURL refuses what readers of URLs are known to disagree about.
func plainURL(text string) error {
	_, rest, _ := strings.Cut(text, "://")
	authority := rest
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		authority = rest[:end]
	}
	switch {
	case text == "":
		return delivery.ErrUsage.Say("A webhook needs a URL.").Hint("Write it as https://host/path.")
	case len(text) > delivery.MaxURL:
		return refused("has %d bytes; %d are allowed", len(text), delivery.MaxURL)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }):
		return refused("has a space, a backslash, or a character outside ASCII").Hint("Write such a character as %%XX, and a name as xn--….")
	case strings.Contains(text, "#"):
		return refused("has a part behind #, which is never sent")
	case strings.Contains(authority, "@"):
		return refused("may have no user and password: it is shown to others").Hint("Put them into headers.")
	case strings.Contains(authority, "%"):
		return refused("may have no %% in its host")
	}
	return nil
}

// splitHost is the host, in brackets if it has some, and what follows its colon.
func splitHost(u *url.URL) (host, port string) {
	if end := strings.IndexByte(u.Host, ']'); end >= 0 {
		return u.Host[:end+1], u.Host[end+1:]
	}
	if colon := strings.IndexByte(u.Host, ':'); colon >= 0 {
		return u.Host[:colon], u.Host[colon:]
	}
	return u.Host, ""
}

// readPort reads what follows a host: nothing, or a colon and a port.
func readPort(scheme, text string) (uint16, error) {
	if text == "" {
		return map[string]uint16{"https": 443, "http": 80}[scheme], nil
	}
	digits, colon := strings.CutPrefix(text, ":")
	n, err := strconv.ParseUint(digits, 10, 16)
	if !colon || err != nil || n == 0 || strconv.FormatUint(n, 10) != digits {
		return 0, refused("has no port between 1 and 65535 behind the colon")
	}
	return uint16(n), nil
}

// label is one part of a name. The underscore is in use, whatever the standard says.
var label = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$`)

// numeric is a last part that makes a reader take the name for an address: 2130706433,
// 0177.0.0.1, 127.1, 0x7f.1. No top-level domain looks so.
var numeric = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)

const (
	maxHostName = 253
	maxLabel    = 63
)

func (e *endpoint) readHost(host string) error {
	e.host = strings.ToLower(host)
	if inner, ok := strings.CutPrefix(e.host, "["); ok {
		return e.readIPv6(strings.TrimSuffix(inner, "]"))
	}
	if a, err := netip.ParseAddr(e.host); err == nil {
		e.addr, e.loopback = a, a.IsLoopback()
		return nil
	}
	if len(e.host) > maxHostName {
		return refused("has a name of more than %d bytes", maxHostName)
	}
	labels := strings.Split(e.host, ".")
	for _, l := range labels {
		if len(l) > maxLabel || !label.MatchString(l) {
			return refused("has a host that is neither a name nor an address").Hint("Write the name without a dot at its end, or the address as 198.51.100.7 or [2001:db8::7].")
		}
	}
	if numeric.MatchString(labels[len(labels)-1]) {
		return refused("has an address in an unusual spelling").Hint("Write it with four decimal numbers, as 198.51.100.7.")
	}
	e.loopback = e.host == "localhost"
	return nil
}

func (e *endpoint) readIPv6(text string) error {
	a, err := netip.ParseAddr(text)
	switch {
	case err != nil || !a.Is6():
		return refused("has no IPv6 address in its brackets")
	case a.Is4In6():
		return refused("has an IPv4 address in an unusual spelling").Hint("Write it with four decimal numbers, as 198.51.100.7.")
	}
	e.host, e.addr, e.loopback = text, a, a.IsLoopback()
	return nil
}

// permit refuses what this process may not reach, as it is set up.
func (c *Channel) permit(e endpoint) error {
	if e.url.Scheme == "http" && !e.loopback && !c.allowHTTP {
		return refused("has to start with https://; http:// is for localhost, 127.0.0.0/8 and [::1]").
			Hint("Whoever runs the daemon can allow it: placet serve --wake-http.")
	}
	if e.addr.IsValid() {
		if err := c.judgeFor(e, e.addr); err != nil {
			no := refused("leads to %s, which is %s; that is not allowed here", e.host, judge(e.addr).what)
			if judge(e.addr).reach == private {
				no = no.Hint("Whoever runs the daemon can allow it: placet serve --wake-private.")
			}
			return no
		}
	}
	return nil
}
