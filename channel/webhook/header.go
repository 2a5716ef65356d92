package webhook

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/internal/display"
)

// ownHeaders are set here, belong to the connection, or are a browser's.
var ownHeaders = []string{
	"Connection", "Cookie", "Cookie2", "Date", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authorization", "Proxy-Connection", "Set-Cookie", "Set-Cookie2", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// ownPrefixes begin the names of headers that say something of the message.
var ownPrefixes = []string{"Content-", "Webhook-"}

// checkHeaders refuses headers that cannot be sent. It never shows a value.
func checkHeaders(headers map[string]string) error {
	if len(headers) > delivery.MaxHeaders {
		return delivery.ErrUsage.Say("There are %d headers; %d are allowed.", len(headers), delivery.MaxHeaders)
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if err := checkHeader(name, headers[name]); err != nil {
			return err
		}
		key := http.CanonicalHeaderKey(name)
		if seen[key] {
			return delivery.ErrUsage.Say("The header %s is given twice.", display.Short(key, maxShown))
		}
		seen[key] = true
	}
	return nil
}

func checkHeader(name, value string) error {
	shown := display.Short(name, maxShown)
	key := http.CanonicalHeaderKey(name)
	switch {
	case !isToken(name):
		return delivery.ErrUsage.Say("The header name %q is not allowed.", shown)
	case slices.Contains(ownHeaders, key), slices.ContainsFunc(ownPrefixes, func(p string) bool { return strings.HasPrefix(key, p) }):
		return delivery.ErrUsage.Say("The header %s cannot be given: it is set by Placet, or never sent.", shown)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return delivery.ErrUsage.Say("The value of the header %s has a control character or is not valid UTF-8.", shown)
	}
	return nil
}

const maxShown = 100 // characters of a header's name

// isToken is the rule of HTTP for names of headers.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		alnum := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
