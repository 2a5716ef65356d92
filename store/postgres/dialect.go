package postgres

import (
	"strconv"
	"strings"
	"sync"

	"github.com/placet-dev/placet/store/sqlrows"
)

const hasTag = `EXISTS (SELECT 1 FROM json_array_elements_text(
	CASE WHEN json_typeof(convert_from(spec, 'UTF8')::json -> 'tags') = 'array' THEN convert_from(spec, 'UTF8')::json -> 'tags' ELSE '[]' END) AS t(tag)
	WHERE tag = ?)`

// holds takes each byte for a letter of LATIN1, which every byte but NUL is: what is stored
// need not be text. NULs, looked for by LIKE since that is quickest, are taken for blanks, by
// way of a form in which all bytes that are no letters, and backslashes too, are written as \nnn.
const holds = `strpos(lower(convert_from(CASE WHEN {} NOT LIKE decode('250025', 'hex') THEN {}
	ELSE decode(replace(replace(encode({}, 'escape'), chr(92) || chr(92), chr(92) || '134'), chr(92) || '000', ' '), 'escape') END, 'LATIN1') COLLATE "C"),
	convert_from(?, 'LATIN1')) > 0`

// nextTargets enters the index anew for each target, so that what else waits for one
// is stepped over.
const nextTargets = `WITH RECURSIVE walk AS (
	(SELECT target_id, due_at FROM delivery WHERE due_at IS NOT NULL AND pushed = 1 AND target_id > ? ORDER BY target_id, due_at LIMIT 1)
	UNION ALL
	SELECT n.target_id, n.due_at FROM walk, LATERAL (
		SELECT target_id, due_at FROM delivery WHERE due_at IS NOT NULL AND pushed = 1 AND target_id > walk.target_id ORDER BY target_id, due_at LIMIT 1) AS n
) SELECT target_id, due_at FROM walk LIMIT ?`

// sorts goes from one sort to the next in the index, and counts each there. Those of a long
// kind are not in it.
const (
	waits = `status = 'pending' AND open = 1 AND octet_length(kind) <= 200 AND space = ?1`
	sorts = `WITH RECURSIVE sort AS (
	(SELECT type, owner_kind, kind, tool FROM decision WHERE ` + waits + ` ORDER BY type, owner_kind, kind, tool LIMIT 1)
	UNION ALL
	SELECT n.* FROM sort, LATERAL (SELECT d.type, d.owner_kind, d.kind, d.tool FROM decision AS d WHERE ` + waits + `
		AND (d.type, d.owner_kind, d.kind, d.tool) > (sort.type, sort.owner_kind, sort.kind, sort.tool) ORDER BY d.type, d.owner_kind, d.kind, d.tool LIMIT 1) AS n
) SELECT type, owner_kind, kind, tool, (SELECT count(*) FROM decision AS d WHERE ` + waits + `
	AND d.type = sort.type AND d.owner_kind = sort.owner_kind AND d.kind = sort.kind AND d.tool = sort.tool) FROM sort
UNION ALL
SELECT type, owner_kind, kind, tool, count(*) FROM decision WHERE status = 'pending' AND open = 1 AND octet_length(kind) > 200 AND space = ?1
GROUP BY type, owner_kind, kind, tool`
)

var (
	viewDialect   = sqlrows.Dialect{OwnPos: true, HasTag: hasTag, Holds: holds, NextTargets: nextTargets, Sorts: sorts}
	updateDialect = locking(viewDialect)
)

func locking(d sqlrows.Dialect) sqlrows.Dialect {
	d.Locking, d.Claiming = ` FOR NO KEY UPDATE`, ` FOR NO KEY UPDATE SKIP LOCKED`
	return d
}

// text is a statement as it is prepared: of package sqlrows, in PostgreSQL's words.
type text struct {
	sql     string
	counted bool // it counts the rows that it changes, for the check before COMMIT
}

// translations keeps one text of each statement.
var translations sync.Map

// Whoever is quicker than a guarded write leaves it nothing to change, and that is no
// error of the server's. So guarded writes count what they change, and what stands
// before COMMIT fails unless the sum is as expected: the COMMIT is skipped then, and
// can be sent together with the writes.
const (
	countChanged = ` RETURNING set_config('placet.changed', CAST(CAST(current_setting('placet.changed') AS int) + 1 AS text), true)`
	checkSQL     = `SELECT 1 / CASE WHEN current_setting('placet.changed') = ? THEN 1 ELSE 0 END`
)

func native(t text) string {
	if s, ok := translations.Load(t); ok {
		return s.(string)
	}
	s := translate(t.sql)
	if t.counted {
		s += countChanged
	}
	translations.Store(t, s)
	return s
}

// SQLite's words for which PostgreSQL has others, or needs none.
var words = strings.NewReplacer(
	` AS ""`, ``,
	` IS ?`, ` IS NOT DISTINCT FROM ?`,
	` INDEXED BY wake_target_hears`, ``,
	` INDEXED BY wake_target_removed`, ``,
	` INDEXED BY delivery_lane`, ``,
	` INDEXED BY delivery_age`, ``,
	` CROSS JOIN `, ` JOIN `,
	`instr(`, `strpos(`,
	`queue_at`, `coalesce(expires_at, 9223372036854775807)`,
)

// translate numbers the arguments, and drops the signs by which SQLite's plans are led.
func translate(sql string) string {
	sql = words.Replace(sql)
	var b strings.Builder
	n, quoted := 0, false
	for i := 0; i < len(sql); i++ {
		c := sql[i]
		switch {
		case c == '\'':
			quoted = !quoted
			b.WriteByte(c)
		case quoted:
			b.WriteByte(c)
		case c == '?':
			b.WriteByte('$')
			if i+1 == len(sql) || sql[i+1] < '0' || sql[i+1] > '9' {
				n++
				b.WriteString(strconv.Itoa(n))
			}
		case c == '+' && i+1 < len(sql) && isSign(sql[i+1]):
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isSign(next byte) bool { return next == '?' || next >= 'a' && next <= 'z' }
