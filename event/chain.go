package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
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
	var scratch [512]byte
	b := appendText(scratch[:0], bodyDomain)
	b = appendBytes(b, e.Salt)
	b = appendText(b, e.Actor)
	b = appendBytes(b, e.Payload)
	return hashOf(b)
}

func envelopeHash(e Event) []byte {
	var scratch [512]byte
	b := appendText(scratch[:0], eventDomain)
	b = appendInt(b, e.V)
	b = appendText(b, e.Space)
	b = appendText(b, e.Stream)
	b = appendInt(b, e.StreamSeq)
	b = appendText(b, e.ID)
	b = appendInt(b, e.At.UnixMicro())
	b = appendText(b, string(e.Type))
	b = appendText(b, e.Subject)
	b = appendBytes(b, e.BodyHash)
	b = appendBytes(b, e.PrevHash)
	return hashOf(b)
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

// What is hashed are fields, each behind its length as 8 bytes, big endian; the
// domain is the first field. Integers are 8 bytes, big endian.

func appendBytes(b, field []byte) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(field))), field...)
}

func appendText(b []byte, field string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(field))), field...)
}

func appendInt(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, 8), uint64(n))
}

func hashOf(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}
