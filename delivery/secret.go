package delivery

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
)

// Lengths of a webhook's secret in bytes, as Standard Webhooks has them.
const (
	MinSecret = 24
	MaxSecret = 64
	newSecret = 32
)

const secretPrefix = "whsec_"

// NewSecret is a secret by chance.
func NewSecret() []byte {
	b := make([]byte, newSecret)
	rand.Read(b) // it never fails: without chance the process ends
	return b
}

// FormatSecret is the form that [ParseSecret] reads: whsec_ and base64.
func FormatSecret(secret []byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// ParseSecret reads a secret as Standard Webhooks writes it. The error matches
// [ErrUsage] and repeats nothing of the text.
func ParseSecret(text string) ([]byte, error) {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, secretPrefix))
	// One spelling only: the decoder passes over line feeds and loose bits at the end.
	if err != nil || FormatSecret(secret) != text {
		return nil, ErrUsage.Say("The secret is not %s followed by base64.", secretPrefix).
			Hint("Write it as %s and the base64 (with + and /, and = at the end) of %d to %d bytes, or leave it out to have one made.", secretPrefix, MinSecret, MaxSecret)
	}
	if len(secret) < MinSecret || len(secret) > MaxSecret {
		return nil, ErrUsage.Say("The secret has %d bytes; %d to %d are allowed.", len(secret), MinSecret, MaxSecret)
	}
	return secret, nil
}
