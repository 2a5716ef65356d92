package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// timestamp is how a signature's time is written: in seconds.
func timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// Sign is the webhook-signature of a message: one signature of `id.timestamp.body`
// for each secret, parted by spaces, as Standard Webhooks has it.
func Sign(secrets [][]byte, id string, at time.Time, body []byte) string {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + timestamp(at) + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
