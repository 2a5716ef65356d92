package pgtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

func msg(kind byte, body string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))
	return append(b, body...)
}

// A COMMIT has its place among the answers of its group, whatever stands around it.
func TestTalkPlacesCommits(t *testing.T) {
	t.Parallel()
	k := newTalk()
	say := func(kind byte, body string) asked { return k.fromClient(msg(kind, body)) }
	say('Q', "select 1\x00")
	say('P', "c\x00commit\x00\x00\x00")
	say('P', "\x00select 2\x00\x00\x00")
	say('B', "\x00\x00")
	if a := say('E', "\x00\x00\x00\x00\x00"); a.commits {
		t.Error("a statement without a name is taken for the one named c")
	}
	say('B', "p\x00c\x00")
	if a := say('E', "p\x00\x00\x00\x00\x00"); !a.commits || a.group != 2 || a.pos != 1 || len(a.texts) != 3 {
		t.Errorf("a prepared commit: %+v", a)
	}
	say('S', "")
	if a := say('Q', "begin; end\x00"); !a.commits || a.group != 3 || a.pos != 1 || len(a.texts) != 1 {
		t.Errorf("a commit in a text: %+v", a)
	}
	for _, m := range [][]byte{msg('Z', "I"), msg('C', "SELECT 1\x00"), msg('Z', "I"), msg('C', "SELECT 1\x00")} {
		k.fromServer(m)
	}
	if a := k.fromServer(msg('C', "COMMIT\x00")); a.tag != "COMMIT" || a.group != 2 || a.pos != 1 {
		t.Errorf("its answer: %+v", a)
	}
	if a := k.fromServer(msg('E', "SERROR\x00C40001\x00Mmessage\x00\x00")); a.tag != "ERROR 40001" {
		t.Errorf("an error: %+v", a)
	}
}

func TestReadMessageRefuses(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string][]byte{"Short": {'Q', 0, 0, 0, 3}, "Long": {'Q', 255, 0, 0, 0}} {
		if _, err := readMessage(bytes.NewReader(raw)); !errors.Is(err, errNotPostgres) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := readStartup(bytes.NewReader([]byte{0, 0, 0, 4})); !errors.Is(err, errNotPostgres) {
		t.Errorf("a start without a code: %v", err)
	}
	if _, err := readMessage(bytes.NewReader(msg('Q', "select 1\x00")[:9])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a message: %v", err)
	}
}

// Whatever either side says, it is followed without a panic, and no byte is changed.
func FuzzTalk(f *testing.F) {
	f.Add(bytes.Join([][]byte{msg('P', "\x00commit\x00"), msg('B', "\x00\x00"), msg('E', "\x00"), msg('S', "")}, nil))
	f.Add(bytes.Join([][]byte{msg('E', "C"), msg('C', ""), msg('Z', ""), msg('Q', "")}, nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		k, r, whole := newTalk(), bytes.NewReader(raw), []byte{}
		for {
			// Not every length that is announced is worth the memory.
			if at := len(raw) - r.Len(); r.Len() >= 5 && binary.BigEndian.Uint32(raw[at+1:]) > 1<<16 {
				break
			}
			m, err := readMessage(r)
			if err != nil {
				break
			}
			k.fromClient(m)
			k.fromServer(m)
			whole = append(whole, m...)
		}
		if !bytes.HasPrefix(raw, whole) {
			t.Error("what was read is not what came")
		}
	})
}
