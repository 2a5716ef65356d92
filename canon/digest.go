package canon

import (
	"crypto/sha256"
	"encoding/hex"
)

// DigestPrefix stands in front of every digest of this profile.
const DigestPrefix = "sha256-" + Profile + ":"

// Domains say what a digested value is. A new meaning gets a new domain, never
// an old one.
const (
	DomainApproval = "placet/approval/v1" // kind, capability, presentation and request of an approval
	DomainTool     = "placet/tool/v1"     // a tool's specification
	DomainArgs     = "placet/args/v1"     // the arguments of a call
	DomainEdited   = "placet/edited/v1"   // an approval's digest with that of the edited arguments
	DomainFlow     = "placet/flow/v1"     // a flow's definition
)

// Digest returns [DigestPrefix] and the lower-case hexadecimal SHA-256 of domain,
// a line feed and the canonical form of the one JSON value in src. The error is a
// [*SyntaxError], and the digest then empty.
func Digest(domain string, src []byte) (string, error) {
	e := newEncoder(src)
	defer e.free()
	if err := e.document(); err != nil {
		return "", err
	}
	// One contiguous piece of scratch: hashing it takes neither a hash.Hash nor a copy of domain.
	e.result = append(append(e.result, domain...), '\n')
	e.result = e.appendTo(e.result)
	sum := sha256.Sum256(e.result)
	var digest [len(DigestPrefix) + 2*sha256.Size]byte
	hex.Encode(digest[copy(digest[:], DigestPrefix):], sum[:])
	return string(digest[:]), nil
}
