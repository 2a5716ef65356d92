package inbox

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var files embed.FS

// assets are the files that pages load, by names that tell what is in them: a browser
// keeps one until it changes.
type assets struct {
	style, code string // their paths
	of          map[string]asset
}

type asset struct {
	sort string
	body []byte
}

func embedded() assets {
	a := assets{of: map[string]asset{}}
	add := func(file, sort string) string {
		body, err := files.ReadFile("assets/" + file)
		if err != nil {
			panic(err) // it is built in
		}
		sum := sha256.Sum256(body)
		name := strings.TrimSuffix(file, path.Ext(file)) + "-" + hex.EncodeToString(sum[:6]) + path.Ext(file)
		a.of[name] = asset{sort, body}
		return "/assets/" + name
	}
	a.style = add("inbox.css", "text/css; charset=utf-8")
	a.code = add("inbox.js", "text/javascript; charset=utf-8")
	return a
}

func (b *Inbox) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := b.assets.of[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.sort)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(a.body)
}
