package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const tolerance = 5 * time.Minute

// verify says whether these bytes come from who has the secret, and are not old. The
// secret is the text whsec_…, and body what came, before anything was parsed.
func verify(secret string, header http.Header, body []byte, now time.Time) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return errors.New("the secret is not whsec_ and base64")
	}
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil {
		return errors.New("it has no webhook-id or no webhook-timestamp")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return errors.New("it is of another time")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	// While a secret is rotated there are two signatures; one that fits is enough.
	for _, given := range strings.Split(header.Get("webhook-signature"), " ") {
		if hmac.Equal(want, []byte(given)) {
			return nil
		}
	}
	return errors.New("no signature fits")
}
