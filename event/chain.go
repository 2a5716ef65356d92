package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"
)

const (
	bodyDomain  = "placet/event-body/v1"
	eventDomain = "placet/event/v1"
	saltBytes   = 16
)

var zeroHash = make([]byte, sha256.Size)

// Seal gives e its place after head: number, hashes, envelope. salt is 16 random
// bytes; they keep a redacted body from being guessed.
func Seal(e Event, head Head, space, id string, at time.Time, salt []byte) Event {
	e.V, e.ID, e.Space, e.Stream, e.At = Version, id, space, head.Stream, at
	e.StreamSeq = head.Seq + 1
	e.Salt = salt
	e.PrevHash = head.Hash
	if head.Seq == 0 {
		e.PrevHash = zeroHash
	}
	e.BodyHash = bodyHash(e)
	e.Hash = envelopeHash(e)
	return e
}

// NextHead is the head once e is appended.
func NextHead(e Event) Head { return Head{Stream: e.Stream, Seq: e.StreamSeq, Hash: e.Hash} }

func bodyHash(e Event) []byte {
	h := newFieldHash(bodyDomain)
	h.bytes(e.Salt)
	h.text(e.Actor)
	h.bytes(e.Payload)
	return h.sum()
}

func envelopeHash(e Event) []byte {
	h := newFieldHash(eventDomain)
	h.int(e.V)
	h.text(e.Space)
	h.text(e.Stream)
	h.int(e.StreamSeq)
	h.text(e.ID)
	h.int(e.At.UnixMicro())
	h.text(string(e.Type))
	h.text(e.Subject)
	h.bytes(e.BodyHash)
	h.bytes(e.PrevHash)
	return h.sum()
}

// check says what is wrong with e as the event after head; empty: nothing.
func check(e Event, head Head) string {
	prev := head.Hash
	if head.Seq == 0 {
		prev = zeroHash
	}
	switch {
	case e.StreamSeq != head.Seq+1:
		return "an event is missing before it"
	case !bytes.Equal(e.PrevHash, prev):
		return "it does not follow the event before it"
	case !bytes.Equal(e.Hash, envelopeHash(e)):
		return "its envelope was altered"
	case !e.Redacted && !bytes.Equal(e.BodyHash, bodyHash(e)), e.Redacted && (e.Actor != "" || e.Salt != nil):
		return "its body was altered"
	}
	return ""
}

// fieldHash hashes fields, each behind its length as 8 bytes, big endian; the
// domain is the first field. Integers are 8 bytes, big endian.
type fieldHash struct {
	h   hash.Hash
	buf [8]byte
}

func newFieldHash(domain string) *fieldHash {
	h := &fieldHash{h: sha256.New()}
	h.text(domain)
	return h
}

func (f *fieldHash) bytes(b []byte) {
	binary.BigEndian.PutUint64(f.buf[:], uint64(len(b)))
	f.h.Write(f.buf[:])
	f.h.Write(b)
}

func (f *fieldHash) text(s string) { f.bytes([]byte(s)) }

func (f *fieldHash) int(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	f.bytes(b[:])
}

func (f *fieldHash) sum() []byte { return f.h.Sum(nil) }
