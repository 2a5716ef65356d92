package sqlite

import (
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
)

const eventColumns = `v, seq, space, stream, stream_seq, id, at, type, subject, actor, payload, salt, body_hash, prev_hash, hash`

// insertEventsSQL takes several rows: a transition often writes two.
var insertEventsSQL = func() (sql [5]string) {
	const one = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	for n := 1; n < len(sql); n++ {
		sql[n] = `INSERT INTO event(` + eventColumns + `) VALUES ` +
			one + strings.Repeat(`, `+one, n-1)
	}
	return sql
}()

func (x rows) InsertEvents(es []event.Event) error {
	var room [len(insertEventsSQL) * 15]any
	for len(es) > 0 {
		n := min(len(es), len(insertEventsSQL)-1)
		args := room[:0]
		for _, e := range es[:n] {
			args = append(args, e.V, e.Seq, e.Space, e.Stream, e.StreamSeq, e.ID, e.At, string(e.Type), e.Subject,
				e.Actor, []byte(e.Payload), e.Salt, e.BodyHash, e.PrevHash, e.Hash)
		}
		_, err := x.h.exec(insertEventsSQL[n], args...)
		if code(err) == sqlite3.SQLITE_CONSTRAINT_UNIQUE { // appended behind a head that is not the stream's end any more
			return decision.Moved("Stream %s", es[0].Stream)
		}
		if err != nil {
			return err
		}
		es = es[n:]
	}
	return nil
}

// Those of a stream that is being deleted are not seen: it has a tombstone.
const (
	eventsOfStreamSQL = `SELECT ` + eventColumns + ` FROM event WHERE stream = ? AND stream_seq > ?
		AND NOT EXISTS (SELECT 1 FROM tombstone WHERE tombstone.stream = event.stream)`
	eventsOfAllSQL = `SELECT ` + eventColumns + ` FROM event WHERE seq > ?
		AND NOT EXISTS (SELECT 1 FROM tombstone WHERE tombstone.stream = event.stream)`
)

// Events finds those of a stream, or of all, in their order. Types and subject
// are looked at row by row: within a stream there are few.
func (x rows) Events(q event.Query) ([]event.Event, error) {
	sql, order, args := eventsOfAllSQL, ` ORDER BY seq LIMIT +?`, []any{q.After}
	if q.Stream != "" {
		sql, order, args = eventsOfStreamSQL, ` ORDER BY stream_seq LIMIT +?`, []any{q.Stream, q.After}
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
	err := x.h.query(sql+order, append(args, pageSize(q.Limit, 100, 1000)), func(r row) error {
		es = append(es, scanEvent(r))
		return nil
	})
	return es, err
}

func (x rows) LastPos() (n int64, err error) {
	_, err = x.h.queryRow(lastRowSQL, nil, func(r row) error { n = r.int(0); return nil })
	return n, err
}

func scanEvent(r row) event.Event {
	e := event.Event{
		V: r.int(0), Seq: r.int(1), Pos: r.int(1), Space: r.str(2), Stream: r.str(3), StreamSeq: r.int(4), ID: r.str(5), At: r.time(6),
		Type: event.Type(r.str(7)), Subject: r.str(8), Actor: r.str(9), Payload: r.bytes(10), Salt: r.bytes(11),
		BodyHash: r.bytes(12), PrevHash: r.bytes(13), Hash: r.bytes(14),
	}
	e.Redacted = r.null(10)
	return e
}

const emptyEventSQL = `UPDATE event SET actor = NULL, payload = NULL, salt = NULL WHERE stream = ? AND stream_seq = ? AND payload IS NOT NULL`

func (x rows) EmptyEvent(stream string, streamSeq int64) (bool, error) {
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
func (x rows) Heads(after string, limit int) ([]event.Head, error) {
	var hs []event.Head
	add := func(r row) error {
		hs = append(hs, event.Head{Stream: r.str(0), Seq: r.int(1), Hash: r.bytes(2)})
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
		if err := x.h.query(t.heads, []any{afterID, limit}, add); err != nil || len(hs) > 0 {
			return hs, err
		}
		afterID = ""
	}
	_, err := x.h.queryRow(orphanSQL, nil, func(r row) error {
		hs = append(hs, event.Head{Stream: r.str(0)})
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

func (x rows) RootHead(stream string) (h event.Head, space string, err error) {
	for _, t := range roots {
		id, ok := strings.CutPrefix(stream, t.prefix)
		if !ok {
			continue
		}
		found, err := x.h.queryRow(t.head, []any{id}, func(r row) error {
			h, space = event.Head{Stream: stream, Seq: r.int(0), Hash: r.bytes(1)}, r.str(2)
			return nil
		})
		if err == nil && !found {
			err = event.ErrNoStream.Say("There is no stream %s.", stream)
		}
		return h, space, err
	}
	return h, "", event.ErrBadStream.Say("%q is not a stream.", stream).Hint("Write run:ID, call:ID or job:ID.")
}

func (x rows) PutHead(prev, h event.Head) (bool, error) {
	for _, t := range roots {
		if id, ok := strings.CutPrefix(h.Stream, t.prefix); ok {
			return x.one(t.put, h.Seq, h.Hash, id, prev.Seq, prev.Hash)
		}
	}
	return false, event.ErrBadStream.Say("%q is not a stream.", h.Stream)
}
