package postgres

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/placet-dev/placet/internal/whole"
	"github.com/placet-dev/placet/store/sqlrows"
)

// What this backend keeps for itself: the columns that a copy of the whole store takes
// care of without copying them.
const (
	metaKnown  = `id schema min_writer min_reader store_id epoch restored_at restored_to system_id timeline database_oid table_oid targets`
	orderKnown = `id last`
)

const (
	columnsSQL = `SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), coalesce(array_position(i.indkey::int2[], a.attnum) + 1, 0)
		FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisprimary
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') ORDER BY c.relname COLLATE "C", a.attnum`
	refersSQL = `SELECT a.relname, b.relname FROM pg_constraint AS f JOIN pg_class AS a ON a.oid = f.conrelid JOIN pg_class AS b ON b.oid = f.confrelid
		WHERE f.contype = 'f' AND f.connamespace = current_schema()::regnamespace ORDER BY 1, 2`
)

var kinds = map[string]whole.Kind{"bigint": whole.Integer, "text": whole.Text, "bytea": whole.Bytes}

// readTables finds what is copied of this store.
func (s *wholeSide) readTables() error {
	var g whole.Group
	err := s.c.run(columnsSQL, nil, func(r sqlrows.Row) error {
		kind, ok := kinds[r.Str(2)]
		if !ok {
			kind = whole.Kind(r.Str(2))
		}
		g.Add(r.Str(0), r.Str(1), kind, r.Int(3))
		return nil
	})
	if err == nil {
		err = s.c.run(refersSQL, nil, func(r sqlrows.Row) error { g.Refer(r.Str(0), r.Str(1)); return nil })
	}
	if err != nil {
		return told(err)
	}
	err = errors.Join(g.Keep("meta", metaKnown), g.Keep("event_order", orderKnown), g.Keep("sign_in", whole.SignInKnown), g.Drop("event", "pos"), g.Drop("counter", "slot"), g.Sound())
	if err != nil {
		return whole.Odd(s.at.String(), err)
	}
	s.tables = g.Tables
	return nil
}

// placed are all events with their places.
const placed = `(SELECT e.*, coalesce(pos, (SELECT greatest((SELECT last FROM event_order), (SELECT max(pos) FROM event)))
	+ row_number() OVER (PARTITION BY pos IS NULL ORDER BY seq)) AS place FROM event AS e)`

// placedSQL reads a table so that seq is a place wherever it occurs.
func placedSQL(t whole.Table) string {
	switch t.Name {
	case "event":
		return selecting(t, "seq", "place") + ` FROM ` + placed + ` AS t ORDER BY place`
	case "delivery": // without an event it has no place, which is noticed: it may not be NULL
		return selecting(t, "seq", "place") + ` FROM (SELECT d.*, e.place FROM delivery AS d LEFT JOIN ` + placed + ` AS e ON e.seq = d.seq) AS t ORDER BY ` + whole.List(t.Key)
	}
	return plainSQL(t)
}

// plainSQL reads a table as it was copied.
func plainSQL(t whole.Table) string {
	if t.Name == "counter" {
		return selecting(t, "n", "CAST(sum(n) AS bigint)") + ` FROM counter GROUP BY ` + whole.List(t.Key) + ` ORDER BY ` + whole.List(t.Key)
	}
	return selecting(t, "", "") + ` FROM ` + whole.Quoted(t.Name) + ` ORDER BY ` + whole.List(t.Key)
}

// selecting lists all columns, one of them as something else.
func selecting(t whole.Table, column, as string) string {
	list := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		list[i] = whole.Quoted(c.Name)
		if c.Name == column {
			list[i] = as
		}
	}
	return `SELECT ` + strings.Join(list, ", ")
}

// rows streams what sql answers.
func (s *wholeSide) rows(ctx context.Context, t whole.Table, sql string) whole.Rows {
	return func(yield func([]any, error) bool) {
		s.patient()
		res := s.c.pg.ExecParams(ctx, sql, nil, nil, nil, binaryResults)
		vals := make([]any, len(t.Columns))
		for res.NextRow() {
			r := row{vals: res.Values()}
			for i, c := range t.Columns {
				vals[i] = r.value(i, c.Kind)
			}
			if r.err != nil || !yield(vals, nil) {
				_, err := res.Close()
				if err = errors.Join(r.err, err); r.err != nil {
					yield(nil, fmt.Errorf("read the table %s: %w", t.Name, err))
				}
				return
			}
		}
		if _, err := res.Close(); err != nil {
			yield(nil, fmt.Errorf("read the table %s: %w", t.Name, told(err)))
		}
	}
}

func (r *row) value(i int, kind whole.Kind) any {
	switch {
	case r.Null(i):
		return nil
	case kind == whole.Integer:
		return r.Int(i)
	case kind == whole.Text:
		return r.Str(i)
	}
	return r.Bytes(i)
}

// Fill sends rows by COPY, in its binary form.
func (t *wholeTarget) Fill(ctx context.Context, tab whole.Table, rows whole.Rows) error {
	columns, extra, at := tab.Names(), any(nil), -1
	switch tab.Name {
	case "event": // its number is its place
		columns, at = append(columns, "pos"), tab.At("seq")
	case "counter": // all in one slot
		columns, extra = append(columns, "slot"), int64(0)
	}
	t.patient()
	in, out := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := encode(out, rows, len(columns) > len(tab.Columns), extra, at)
		out.CloseWithError(err) // nil ends the rows
		read <- err
	}()
	_, err := t.c.pg.CopyFrom(ctx, in, `COPY `+whole.Quoted(tab.Name)+`(`+whole.List(columns)+`) FROM STDIN WITH (FORMAT binary)`)
	in.CloseWithError(errCopyEnded)
	if own := <-read; own != nil && !errors.Is(own, errCopyEnded) {
		return own
	}
	if err != nil {
		return fmt.Errorf("write the rows of the table %s: %w", tab.Name, told(err))
	}
	return nil
}

var errCopyEnded = errors.New("the server takes no more rows")

var copyHead = []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")

// encode writes rows as COPY reads them. Where there is one more column than the rows
// have, it holds extra, or what the row has at a position.
func encode(to io.Writer, rows whole.Rows, more bool, extra any, at int) error {
	w := bufio.NewWriterSize(to, 1<<16)
	if _, err := w.Write(copyHead); err != nil {
		return err
	}
	var b []byte
	for row, err := range rows {
		if err != nil {
			return err
		}
		if more {
			if at >= 0 {
				extra = row[at]
			}
			row = append(row[:len(row):len(row)], extra)
		}
		if b, err = appendRow(b[:0], row); err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	if _, err := w.Write([]byte{0xff, 0xff}); err != nil {
		return err
	}
	return w.Flush()
}

func appendRow(b []byte, row []any) ([]byte, error) {
	b = binary.BigEndian.AppendUint16(b, uint16(len(row)))
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			b = binary.BigEndian.AppendUint32(b, 0xffffffff)
		case int64:
			b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(v))
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		case []byte:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		default:
			return nil, fmt.Errorf("a %T cannot be stored", v)
		}
	}
	return b, nil
}
