package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/placet-dev/placet/txn"
)

const keyHeader = "Idempotency-Key"

// checkParams refuses what could be understood in two ways, and keys that would be
// ignored: who sends one relies on it.
func checkParams(to *route, r *http.Request) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return ErrMalformed.Say("query: it cannot be read.").Hint("Write it like a=1&b=2, and escape what is not plain.")
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if n := len(q[name]); n > 1 {
			return ErrMalformed.Say("query.%s: given %d times.", shown(name), n).Hint("Give it once.")
		}
		if !txn.IsText(q[name][0]) {
			return ErrMalformed.Say("query.%s: expected text in UTF-8 without NUL.", shown(name))
		}
	}
	return checkKey(to, r.Header.Values(keyHeader))
}

func checkKey(to *route, keys []string) error {
	switch {
	case len(keys) == 0:
		return nil
	case !to.key:
		err := ErrMalformed.Say("header.%s: %s takes none.", keyHeader, to.id)
		if to.keyField {
			return err.Hint("Write the key into the body: idempotency_key.")
		}
		if why := unkeyed[to.id]; why != "" {
			return err.Hint("Leave it out: %s.", why)
		}
		return err.Hint("Leave it out.")
	case len(keys) > 1:
		return ErrMalformed.Say("header.%s: given %d times.", keyHeader, len(keys)).Hint("Give it once.")
	case strings.TrimSpace(keys[0]) == "":
		return ErrMalformed.Say("header.%s: it is empty.", keyHeader).Hint("Give a key of your own choice, or leave the header out.")
	case !txn.IsText(keys[0]):
		return ErrMalformed.Say("header.%s: expected text in UTF-8.", keyHeader)
	}
	return nil
}

// unkeyed are operations that may be repeated without a key, and why.
var unkeyed = map[string]string{
	"decide":           "the same answer to the same digest again is answered with what stands",
	"resolve":          "the same answer again is answered with what stands",
	"confirmCall":      "the fence is its key, and the same outcome again is fine",
	"renewCall":        "the fence is its key",
	"withdrawQuestion": "a question that is withdrawn stays so",
	"stopJob":          "a job that has ended stays so",
	"revokeToken":      "a token that is revoked stays so",
}

const longestShown = 100

// shown is a foreign word as an error may repeat it: printable, and cut to a size.
func shown(s string) string {
	s = cut(s)
	q := strconv.QuoteToGraphic(s)
	if s != "" && q[1:len(q)-1] == s && !strings.ContainsAny(s, " ,;") {
		return s
	}
	return q
}

func cut(s string) string {
	if len(s) > longestShown {
		return strings.ToValidUTF8(s[:longestShown], "") + "…"
	}
	return s
}
