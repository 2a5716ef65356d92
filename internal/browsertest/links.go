package browsertest

import (
	"bytes"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// linksOf are the addresses that an answer names, as they are written there, by its type.
// base is where it came from; a page may say that its addresses are meant from elsewhere.
func linksOf(seen Seen, base *url.URL) (links []string) {
	links = append(links, seen.Header.Values("Location")...)
	for _, v := range seen.Header.Values("Link") {
		links = append(links, matches(linkHeader, v)...)
	}
	if seen.Method != http.MethodGet {
		return links
	}
	switch mediaType(seen.Header) {
	case "text/html", "application/xhtml+xml", "image/svg+xml":
		return append(links, linksOfPage(seen.Body, base)...)
	case "text/css":
		return append(links, linksOfStyle(string(seen.Body))...)
	case "text/javascript", "application/javascript", "application/json", "application/manifest+json":
		return append(links, matches(inScript, string(seen.Body))...)
	}
	return links
}

var (
	linkHeader = regexp.MustCompile(`<([^>]*)>`)
	inStyle    = regexp.MustCompile(`url\(\s*["']?([^"')]+)["']?\s*\)`)
	imported   = regexp.MustCompile(`@import\s+["']([^"']+)["']`)
	// inScript finds texts that are paths.
	inScript = regexp.MustCompile("[\"'`](/[^\"'`\\s<>$]*)[\"'`]")
	refresh  = regexp.MustCompile(`(?i)url\s*=\s*["']?([^"']+)`)
)

func matches(r *regexp.Regexp, text string) (found []string) {
	for _, m := range r.FindAllStringSubmatch(text, -1) {
		found = append(found, strings.TrimSpace(m[1]))
	}
	return found
}

func linksOfStyle(css string) []string {
	return append(matches(inStyle, css), matches(imported, css)...)
}

// addressed are the attributes that always hold an address.
var addressed = []string{"href", "src", "action", "formaction", "poster", "cite", "data", "ping", "background", "manifest", "longdesc", "xlink:href"}

func linksOfPage(body []byte, base *url.URL) (links []string) {
	z := html.NewTokenizer(bytes.NewReader(body))
	within := "" // script or style
	for {
		switch z.Next() {
		case html.ErrorToken: // its end
			return links
		case html.TextToken:
			switch text := string(z.Text()); within {
			case "script":
				links = append(links, matches(inScript, text)...)
			case "style":
				links = append(links, linksOfStyle(text)...)
			}
		case html.EndTagToken:
			within = ""
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			within = t.Data
			for _, a := range t.Attr {
				if t.Data != "base" {
					links = append(links, linksOfAttribute(a)...)
				} else if b, err := base.Parse(a.Val); err == nil && a.Key == "href" {
					*base = *b
				}
			}
		}
	}
}

func linksOfAttribute(a html.Attribute) (links []string) {
	switch {
	case slices.Contains(addressed, a.Key):
		return []string{strings.TrimSpace(a.Val)}
	case a.Key == "srcset" || a.Key == "imagesrcset":
		for _, one := range strings.Split(a.Val, ",") {
			if f := strings.Fields(one); len(f) > 0 {
				links = append(links, f[0])
			}
		}
		return links
	case a.Key == "content":
		return matches(refresh, a.Val)
	case a.Key == "style":
		return linksOfStyle(a.Val)
	case strings.HasPrefix(a.Key, "on"):
		return matches(inScript, a.Val)
	case strings.HasPrefix(a.Val, "/") || strings.HasPrefix(a.Val, "http://") || strings.HasPrefix(a.Val, "https://") || strings.HasPrefix(a.Val, "?"):
		return []string{a.Val} // what a script of the page may use, such as data-url
	}
	return nil
}
