package delivery

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
)

const secretPrefix = "whsec_"

// NewSecret draws a webhook's secret: 32 random bytes.
func NewSecret() []byte {
	b := make([]byte, 32)
	rand.Read(b)
	return b
}

// ParseSecret reads a secret as Standard Webhooks writes it: whsec_ and the base64 of
// 24 to 64 bytes. [ErrUsage].
func ParseSecret(text string) ([]byte, error) {
	rest, ok := strings.CutPrefix(text, secretPrefix)
	b, err := base64.StdEncoding.DecodeString(rest)
	if !ok || err != nil || len(b) < 24 || len(b) > 64 {
		return nil, ErrUsage.Say("This is no webhook's secret.").Hint("Write whsec_ and the base64 of 24 to 64 random bytes, or leave it out to have one made.")
	}
	return b, nil
}

// FormatSecret writes a secret as [ParseSecret] reads it.
func FormatSecret(b []byte) string { return secretPrefix + base64.StdEncoding.EncodeToString(b) }
