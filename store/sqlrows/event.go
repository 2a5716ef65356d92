package sqlrows

import (
	"math"
	"strings"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
)

const (
	numberedColumns = `v, space, stream, stream_seq, id, at, type, subject, actor, payload, salt, body_hash, prev_hash, hash`
	eventColumns    = numberedColumns + `, seq`

	// Those of a stream that is being deleted are not seen: it has a tombstone.
	notCleaned = ` AND NOT EXISTS (SELECT 1 FROM tombstone WHERE tombstone.stream = event.stream)`
)

// eventSQL are the statements in which the public order of events shows.
type eventSQL struct {
	insert           [5]string // for so many rows: a transition often writes two
	ofStream, ofAll  string
	orderOfAll, last string
	// The same from the end of the log.
	backOfStream, backOfAll, backOrder string

	of map[int]string
}

// Where events have no order of their own, they have that of their numbers.
var inOwnOrder, inOrderOfSeq = newEventSQL(true), newEventSQL(false)

func newEventSQL(ownPos bool) *eventSQL {
	inserted, one, pos, read := eventColumns, `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, `seq`, eventColumns+`, seq`
	if ownPos {
		inserted, one, pos, read = numberedColumns, `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, `pos`, eventColumns+`, pos`
	}
	s := &eventSQL{
		ofStream:   `SELECT ` + read + ` FROM event WHERE stream = ? AND stream_seq > ?` + notCleaned,
		ofAll:      `SELECT ` + read + ` FROM event WHERE ` + pos + ` > ?` + notCleaned,
		orderOfAll: ` ORDER BY ` + pos + ` LIMIT +?`,

		backOfStream: `SELECT ` + read + ` FROM event WHERE stream = ? AND stream_seq < ?` + notCleaned,
		backOfAll:    `SELECT ` + read + ` FROM event WHERE ` + pos + ` < ?` + notCleaned,
		backOrder:    ` ORDER BY ` + pos + ` DESC LIMIT +?`,

		last: `SELECT coalesce(max(` + pos + `), 0) FROM event`,
		of:   upTo(mostAlike, `SELECT `+read+` FROM event WHERE seq IN `, notCleaned),
	}
	for n := 1; n < len(s.insert); n++ {
		s.insert[n] = `INSERT INTO event(` + inserted + `) VALUES ` + one + strings.Repeat(`, `+one, n-1)
	}
	return s
}

func (x Rows) events() *eventSQL {
	if x.Dialect().OwnPos {
		return inOwnOrder
	}
	return inOrderOfSeq
}

// InsertEvents fails with decision.ErrMoved where they are appended behind a head that
// is not the stream's end any more.
func (x Rows) InsertEvents(es []event.Event) error {
	if err := x.Number(es); err != nil {
		return err
	}
	s, numbered := x.events(), !x.Dialect().OwnPos
	var room [len(s.insert) * 15]any
	for len(es) > 0 {
		n := min(len(es), len(s.insert)-1)
		args := room[:0]
		for _, e := range es[:n] {
			args = append(args, e.V, e.Space, e.Stream, e.StreamSeq, e.ID, e.At, string(e.Type), e.Subject,
				e.Actor, []byte(e.Payload), e.Salt, e.BodyHash, e.PrevHash, e.Hash)
			if numbered {
				args = append(args, e.Seq)
			}
		}
		stream := es[0].Stream
		if err := x.Write(Write{SQL: s.insert[n], Args: args, Taken: func() error { return decision.Moved("Stream %s", stream) }}); err != nil {
			return err
		}
		es = es[n:]
	}
	return nil
}

// from is where q begins to read, and in which order.
func (s *eventSQL) from(q event.Query) (sql, order string, args []any) {
	at := q.After
	if q.Newest && at == 0 {
		at = math.MaxInt64
	}
	switch {
	case q.Stream == "" && q.Newest:
		return s.backOfAll, s.backOrder, []any{at}
	case q.Stream == "":
		return s.ofAll, s.orderOfAll, []any{at}
	case q.Newest:
		return s.backOfStream, ` ORDER BY stream_seq DESC LIMIT +?`, []any{q.Stream, at}
	}
	return s.ofStream, ` ORDER BY stream_seq LIMIT +?`, []any{q.Stream, at}
}

// Events finds those of a stream, or of all, in their order. Types and subject
// are looked at row by row: within a stream there are few.
func (x Rows) Events(q event.Query) ([]event.Event, error) {
	sql, order, args := x.events().from(q)
	if q.Stream == "" {
		if err := x.Arrange(); err != nil {
			return nil, err
		}
	}
	if q.Subject != "" {
		sql, args = sql+` AND subject = ?`, append(args, q.Subject)
	}
	if len(q.Types) > 0 {
		sql += ` AND type IN (?` + strings.Repeat(`, ?`, len(q.Types)-1) + `)`
	}
	for _, t := range q.Types {
		args = append(args, string(t))
	}
	var es []event.Event
	err := x.Query(sql+order, append(args, pageSize(q.Limit, 100, 1000)), func(r Row) error {
		es = append(es, scanEvent(r))
		return nil
	})
	return es, err
}

func (x Rows) LastPos() (n int64, err error) {
	if err := x.Arrange(); err != nil {
		return 0, err
	}
	_, err = x.queryRow(x.events().last, nil, func(r Row) error { n = r.Int(0); return nil })
	return n, err
}

func scanEvent(r Row) event.Event {
	return event.Event{
		V: r.Int(0), Space: r.Str(1), Stream: r.Str(2), StreamSeq: r.Int(3), ID: r.Str(4), At: r.Time(5),
		Type: event.Type(r.Str(6)), Subject: r.Str(7), Actor: r.Str(8), Payload: r.Bytes(9), Salt: r.Bytes(10),
		BodyHash: r.Bytes(11), PrevHash: r.Bytes(12), Hash: r.Bytes(13), Seq: r.Int(14), Pos: r.Int(15),
		Redacted: r.Null(9),
	}
}

const emptyEventSQL = `UPDATE event SET actor = NULL, payload = NULL, salt = NULL WHERE stream = ? AND stream_seq = ? AND payload IS NOT NULL`

func (x Rows) EmptyEvent(stream string, streamSeq int64) (bool, error) {
	return x.one(emptyEventSQL, stream, streamSeq)
}

const (
	callHeadsSQL = `SELECT 'call:' || id, head_seq, head FROM call WHERE step_id IS NULL AND id > ? ORDER BY id LIMIT +?`
	runHeadsSQL  = `SELECT 'run:' || id, head_seq, head FROM run WHERE id > ? ORDER BY id LIMIT +?`
	jobHeadsSQL  = `SELECT 'job:' || id, head_seq, head FROM job WHERE cleaned_at IS NULL AND id > ? ORDER BY id LIMIT +?`
	// orphanSQL finds a stream that has events but neither a root nor a tombstone.
	orphanSQL = `SELECT stream FROM (SELECT DISTINCT stream FROM event) AS s
		WHERE NOT EXISTS (SELECT 1 FROM call WHERE 'call:' || id = s.stream AND step_id IS NULL)
		AND NOT EXISTS (SELECT 1 FROM run WHERE 'run:' || id = s.stream)
		AND NOT EXISTS (SELECT 1 FROM job WHERE 'job:' || id = s.stream AND cleaned_at IS NULL)
		AND NOT EXISTS (SELECT 1 FROM tombstone AS t WHERE t.stream = s.stream)
		LIMIT 1`
)

// roots are the tables in which heads lie, in the order in which they are listed.
var roots = []struct{ prefix, heads, head, put string }{
	{callPrefix, callHeadsSQL, callHeadSQL, putCallHeadSQL},
	{runPrefix, runHeadsSQL, runHeadSQL, putRunHeadSQL},
	{jobPrefix, jobHeadsSQL, jobHeadSQL, putJobHeadSQL},
}

// Heads lists the roots' heads; behind the last one, a stream without a root if there is any.
func (x Rows) Heads(after string, limit int) ([]event.Head, error) {
	var hs []event.Head
	add := func(r Row) error {
		hs = append(hs, event.Head{Stream: r.Str(0), Seq: r.Int(1), Hash: r.Bytes(2)})
		return nil
	}
	begin, afterID := 0, ""
	if after != "" {
		begin = len(roots)
		for i, t := range roots {
			if id, ok := strings.CutPrefix(after, t.prefix); ok {
				begin, afterID = i, id
			}
		}
	}
	for _, t := range roots[begin:] {
		if err := x.Query(t.heads, []any{afterID, limit}, add); err != nil || len(hs) > 0 {
			return hs, err
		}
		afterID = ""
	}
	_, err := x.queryRow(orphanSQL, nil, func(r Row) error {
		hs = append(hs, event.Head{Stream: r.Str(0)})
		return nil
	})
	return hs, err
}

const (
	callPrefix = string(decision.OwnerCall) + ":"
	runPrefix  = string(decision.OwnerRun) + ":"
	jobPrefix  = string(decision.OwnerJob) + ":"

	callHeadSQL = `SELECT head_seq, head, space FROM call WHERE id = ? AND step_id IS NULL`
	runHeadSQL  = `SELECT head_seq, head, space FROM run WHERE id = ?`
	jobHeadSQL  = `SELECT head_seq, head, space FROM job WHERE id = ? AND cleaned_at IS NULL`

	putCallHeadSQL = `UPDATE call SET head_seq = ?, head = ?, version = version + 1 WHERE id = ? AND head_seq = ? AND head IS ?`
	putRunHeadSQL  = `UPDATE run SET head_seq = ?, head = ?, version = version + 1 WHERE id = ? AND head_seq = ? AND head IS ?`
	putJobHeadSQL  = `UPDATE job SET head_seq = ?, head = ?, version = version + 1 WHERE id = ? AND head_seq = ? AND head IS ?`
)

func (x Rows) RootHead(stream string) (h event.Head, space string, err error) {
	for _, t := range roots {
		id, ok := strings.CutPrefix(stream, t.prefix)
		if !ok {
			continue
		}
		found, err := x.queryRow(x.locking(t.head), []any{id}, func(r Row) error {
			h, space = event.Head{Stream: stream, Seq: r.Int(0), Hash: r.Bytes(1)}, r.Str(2)
			return nil
		})
		if err == nil && !found {
			err = event.ErrNoStream.Say("There is no stream %s.", stream)
		}
		return h, space, err
	}
	return h, "", event.ErrBadStream.Say("%q is not a stream.", stream).Hint("Write run:ID, call:ID or job:ID.")
}

func (x Rows) PutHead(prev, h event.Head) error {
	x.ahead.call = call.Call{}
	for _, t := range roots {
		if id, ok := strings.CutPrefix(h.Stream, t.prefix); ok {
			return x.Write(Write{SQL: t.put, Args: []any{h.Seq, h.Hash, id, prev.Seq, prev.Hash}, Lost: func() error {
				return decision.Moved("Stream %s", h.Stream)
			}})
		}
	}
	return event.ErrBadStream.Say("%q is not a stream.", h.Stream)
}
