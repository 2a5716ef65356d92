package inbox

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
)

type nonceKey struct{}

func nonceOf(ctx context.Context) string {
	nonce, _ := ctx.Value(nonceKey{}).(string)
	return nonce
}

// guard sets what a browser is told of every answer: run only the script and style that
// this answer names, load nothing from elsewhere, send forms nowhere else, show it in
// nobody's frame, keep no copy. The referrer policy is not no-referrer: that would make
// browsers hide the origin of our own forms, by which other sites' are told apart.
func guard(h http.Header) (nonce string) {
	var random [16]byte
	rand.Read(random[:]) // never fails
	nonce = base64.RawStdEncoding.EncodeToString(random[:])
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'nonce-"+nonce+"'; style-src 'nonce-"+nonce+
		"'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	return nonce
}
