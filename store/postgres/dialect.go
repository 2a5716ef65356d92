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

// nextTargets enters the index anew for each target, so that what else waits for one
// is stepped over.
const nextTargets = `WITH RECURSIVE walk AS (
	(SELECT target_id, due_at FROM delivery WHERE due_at IS NOT NULL AND pushed = 1 AND target_id > ? ORDER BY target_id, due_at LIMIT 1)
	UNION ALL
	SELECT n.target_id, n.due_at FROM walk, LATERAL (
		SELECT target_id, due_at FROM delivery WHERE due_at IS NOT NULL AND pushed = 1 AND target_id > walk.target_id ORDER BY target_id, due_at LIMIT 1) AS n
) SELECT target_id, due_at FROM walk LIMIT ?`

var (
	viewDialect   = sqlrows.Dialect{OwnPos: true, HasTag: hasTag, NextTargets: nextTargets}
	updateDialect = sqlrows.Dialect{
		OwnPos: true, HasTag: hasTag, NextTargets: nextTargets,
		Locking: ` FOR NO KEY UPDATE`, Claiming: ` FOR NO KEY UPDATE SKIP LOCKED`,
	}
)

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
