package event

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

// Break is the first place where a chain does not hold.
type Break struct {
	Stream    string
	StreamSeq int64
	Problem   string
}

// Report is what a verification found.
type Report struct {
	Streams  int
	Events   int
	Redacted int
	Cleaned  int    // of the heads that were expected, whose streams were cleaned up since
	Heads    []Head // where each stream ends; keep them elsewhere to notice a cut tail
	Break    *Break // nil: everything holds
}

// Verify walks every stream and checks numbers, hashes and the head in the
// root's row. expect names heads that were kept elsewhere: a stream that ends
// before one, or has another event there, is a break. It reads in small
// transactions, so writers go on meanwhile.
func Verify(ctx context.Context, s txn.Store, expect []Head) (Report, error) {
	v := verifier{store: s, expect: map[string][]Head{}}
	for _, h := range expect {
		v.expect[h.Stream] = append(v.expect[h.Stream], h)
	}
	after := ""
	for v.report.Break == nil {
		heads, err := v.page(ctx, after)
		if err != nil {
			return Report{}, err
		}
		if len(heads) == 0 {
			break
		}
		for _, h := range heads {
			if err := v.stream(ctx, h); err != nil || v.report.Break != nil {
				return v.report, err
			}
			after = h.Stream
		}
	}
	return v.report, v.missing(ctx)
}

// VerifyStream is [Verify] for one stream, up to its head when it begins: it reads all of
// its events, in small transactions. [ErrNoStream].
func VerifyStream(ctx context.Context, s txn.Store, stream string) (Report, error) {
	v := verifier{store: s, expect: map[string][]Head{}}
	var h Head
	err := txn.View(ctx, s, func(tx Tx) (err error) {
		h, err = tx.Head(stream)
		return err
	})
	if err == nil {
		h.Stream = stream
		err = v.stream(ctx, h)
	}
	return v.report, err
}

// missing looks for the streams that were expected and are not there: what was cleaned
// up left a tombstone.
func (v *verifier) missing(ctx context.Context) error {
	for stream, hs := range v.expect {
		end, cleaned, err := v.tombstone(ctx, stream)
		if err != nil {
			return err
		}
		for _, h := range hs {
			switch {
			case !cleaned:
				v.breakAt(stream, h.Seq, "the stream is not in this store")
			case h.Seq > end.Seq, h.Seq == end.Seq && !bytes.Equal(h.Hash, end.Hash):
				v.breakAt(stream, h.Seq, "the stream was cleaned up, but ended otherwise than the head that was kept")
			default:
				v.report.Cleaned++
			}
		}
	}
	return nil
}

func (v *verifier) tombstone(ctx context.Context, stream string) (h Head, found bool, err error) {
	err = txn.View(ctx, v.store, func(tx Tx) error {
		h, found, err = tx.Tombstone(stream)
		return err
	})
	return h, found, err
}

type verifier struct {
	store  txn.Store
	expect map[string][]Head
	report Report
}

func (v *verifier) page(ctx context.Context, after string) (heads []Head, err error) {
	err = txn.View(ctx, v.store, func(tx Tx) error {
		heads, err = tx.Heads(after, 500)
		return err
	})
	return heads, err
}

// stream checks one stream up to the head that was read before: events appended
// since are another pass's.
func (v *verifier) stream(ctx context.Context, want Head) error {
	err := v.walk(ctx, want)
	if err != nil || v.report.Break == nil {
		return err
	}
	// It may have been cleaned up under our eyes: its events go before its tombstone does.
	if _, cleaned, err := v.tombstone(ctx, want.Stream); err != nil || cleaned {
		v.report.Break = nil
		return err
	}
	return nil
}

func (v *verifier) walk(ctx context.Context, want Head) error {
	at := Head{Stream: want.Stream}
	for at.Seq < want.Seq {
		var es []Event
		err := txn.View(ctx, v.store, func(tx Tx) (err error) {
			es, err = tx.Events(Query{Stream: want.Stream, After: at.Seq, Limit: 1000})
			return err
		})
		if err != nil {
			return err
		}
		if len(es) == 0 || es[0].StreamSeq > want.Seq {
			v.breakAt(want.Stream, at.Seq+1, "the stream ends here, but its root says that there is more")
			return nil
		}
		for _, e := range es {
			if e.StreamSeq > want.Seq {
				break
			}
			if problem := check(e, at); problem != "" {
				v.breakAt(want.Stream, e.StreamSeq, problem)
				return nil
			}
			at = NextHead(e)
			v.report.Events++
			if e.Redacted {
				v.report.Redacted++
			}
			v.meet(e)
		}
	}
	if !bytes.Equal(at.Hash, want.Hash) {
		v.breakAt(want.Stream, want.Seq, "the head in the root's row is another one")
		return nil
	}
	return v.end(ctx, at)
}

// meet ticks off the kept heads that e satisfies.
func (v *verifier) meet(e Event) {
	rest := v.expect[e.Stream][:0]
	for _, h := range v.expect[e.Stream] {
		switch {
		case h.Seq != e.StreamSeq:
			rest = append(rest, h)
		case !bytes.Equal(h.Hash, e.Hash):
			v.breakAt(e.Stream, e.StreamSeq, "it is another event than the head that was kept")
		}
	}
	if len(rest) == 0 {
		delete(v.expect, e.Stream)
		return
	}
	v.expect[e.Stream] = rest
}

func (v *verifier) end(ctx context.Context, at Head) error {
	v.report.Streams++
	v.report.Heads = append(v.report.Heads, at)
	if hs := v.expect[at.Stream]; len(hs) > 0 {
		v.breakAt(at.Stream, at.Seq+1, fmt.Sprintf("the stream ends here, but the head that was kept is number %d", hs[0].Seq))
	}
	delete(v.expect, at.Stream)
	return v.beyond(ctx, at)
}

// beyond notices events behind a head that was put back by hand.
func (v *verifier) beyond(ctx context.Context, at Head) error {
	return txn.View(ctx, v.store, func(tx Tx) error {
		now, err := tx.Head(at.Stream)
		if errors.Is(err, ErrNoStream) {
			v.breakAt(at.Stream, 1, "there are events, but no root that they belong to")
			return nil
		}
		if err != nil || now.Seq != at.Seq {
			return err
		}
		es, err := tx.Events(Query{Stream: at.Stream, After: at.Seq, Limit: 1})
		if len(es) > 0 {
			v.breakAt(at.Stream, es[0].StreamSeq, "it stands behind the head in the root's row")
		}
		return err
	})
}

func (v *verifier) breakAt(stream string, seq int64, problem string) {
	if v.report.Break == nil {
		v.report.Break = &Break{Stream: stream, StreamSeq: seq, Problem: problem}
	}
}

// String is the head as `verify --head` takes it: STREAM:SEQ:HASH.
func (h Head) String() string {
	return h.Stream + ":" + strconv.FormatInt(h.Seq, 10) + ":" + hex.EncodeToString(h.Hash)
}

// ParseHead reads what [Head.String] wrote.
func ParseHead(s string) (Head, error) {
	bad := fault.Sentinel(fault.Invalid, "usage", "").Say("%q is not a head.", s).Hint("Write STREAM:SEQ:HASH, as placet verify prints it.")
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return Head{}, bad
	}
	j := strings.LastIndexByte(s[:i], ':')
	if j <= 0 {
		return Head{}, bad
	}
	seq, err := strconv.ParseInt(s[j+1:i], 10, 64)
	hash, err2 := hex.DecodeString(s[i+1:])
	if err != nil || err2 != nil || seq < 1 || len(hash) != len(zeroHash) {
		return Head{}, bad
	}
	return Head{Stream: s[:j], Seq: seq, Hash: hash}, nil
}
