package view

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// versionOf tells what a region shows apart from what it showed before. It is a digest,
// since what is shown may be foreign, and long.
func versionOf(parts ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q", parts)))
	return hex.EncodeToString(sum[:8])
}
