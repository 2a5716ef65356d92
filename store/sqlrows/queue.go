package sqlrows

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/placet-dev/placet/decision"
)

const (
	// queued are the decisions in the indexes over the queue. By queue_at they are ordered
	// there: what never expires comes last.
	queued         = `status = 'pending' AND open = 1`
	queueOrder     = ` ORDER BY queue_at, id LIMIT +? OFFSET +?`
	queueOrderBack = ` ORDER BY queue_at DESC, id DESC LIMIT +? OFFSET +?`
	// selectSizes is for what is searched: no bytes are read to know how many they are.
	selectSizes = `SELECT queue_at, id, octet_length(reason) + coalesce(octet_length(prompt), 0) + coalesce(octet_length(request), 0) FROM decision`

	// nextSortSQL counts the sort behind another one in the index alone, where all of it lies
	// together: to group all that waits would compare each entry with the one before, and take
	// twice as long. What belongs to jobs that are being deleted has to be taken off: to see it
	// there would need every question's row.
	nextSortSQL = `SELECT type, owner_kind, kind, tool, (SELECT count(*) FROM decision AS c WHERE c.status = 'pending' AND c.open = 1
			AND c.space = d.space AND c.type = d.type AND c.owner_kind = d.owner_kind AND c.kind = d.kind AND c.tool = d.tool)
		FROM decision AS d WHERE ` + queued + ` AND space = ? AND (type, owner_kind, kind, tool) > (?, ?, ?, ?)
		ORDER BY type, owner_kind, kind, tool LIMIT 1`
	queueUnseenSQL = `SELECT d.type, d.owner_kind, d.kind, d.tool, 1 FROM job CROSS JOIN decision AS d ON d.owner_kind = 'job' AND d.owner_id = job.id
		WHERE job.cleaned_at IS NOT NULL AND job.home >= '' AND d.status = 'pending' AND d.open = 1 AND d.space = ?`

	// approvedOnce are the decisions in the index over what was approved of each tool.
	approvedOnce = `choice = 'approve' AND type = 'approval' AND tool <> '' AND kind <> 'interrupted_side_effect'`
)

var lastApprovedSQL = selectDecisions + ` WHERE ` + approvedOnce + ` AND space = ? AND tool = ? AND id < ? AND ` + seenDecision + ` ORDER BY id DESC LIMIT 1`

// behindAll is an id that is behind all.
const behindAll = "\U0010FFFF"

func (x Rows) LastApproved(space, tool, before string) (decision.Decision, error) {
	if before == "" {
		before = behindAll
	}
	return x.decision("Nothing was approved of the tool "+tool+" before.", lastApprovedSQL, space, tool, before)
}

func (x Rows) QueueCounts(space string) ([]decision.QueueCount, error) {
	cs, err := x.sorts(space)
	if err != nil {
		return nil, err
	}
	err = x.Query(queueUnseenSQL, []any{space}, func(r Row) error {
		off := scanCount(r)
		if i := slices.IndexFunc(cs, func(c decision.QueueCount) bool { off.N = c.N; return c == off }); i >= 0 {
			cs[i].N--
		}
		return nil
	})
	return slices.DeleteFunc(cs, func(c decision.QueueCount) bool { return c.N == 0 }), err
}

// sorts counts all that waits, sort by sort.
func (x Rows) sorts(space string) (cs []decision.QueueCount, err error) {
	if all := x.Dialect().Sorts; all != "" {
		err = x.Query(all, []any{space}, func(r Row) error { cs = append(cs, scanCount(r)); return nil })
		slices.SortFunc(cs, bySort)
		return cs, err
	}
	for c := (decision.QueueCount{}); ; cs = append(cs, c) {
		behind := c.Tool + "\x00" // no tool is named so; from the name itself SQLite would step over all of the sort
		found, err := x.queryRow(nextSortSQL, []any{space, string(c.Type), string(c.Owner), c.Kind, behind}, func(r Row) error {
			c = scanCount(r)
			return nil
		})
		if err != nil || !found {
			return cs, err
		}
	}
}

func scanCount(r Row) decision.QueueCount {
	return decision.QueueCount{Type: decision.Type(r.Str(0)), Owner: decision.OwnerKind(r.Str(1)), Kind: r.Str(2), Tool: r.Str(3), N: r.Int(4)}
}

func bySort(a, b decision.QueueCount) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Owner, b.Owner), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Tool, b.Tool))
}

// Queue reads one more than the page has, to know whether there is more.
func (x Rows) Queue(q decision.Queued) (p decision.QueuePage, err error) {
	limit := pageSize(q.Limit, 50, 500)
	s := stretchOf(q)
	var ds []decision.Decision
	if q.Search == "" {
		ds, err = x.within(s, limit+1)
	} else {
		ds, p.Cut, err = x.search(&s, q, limit+1)
	}
	if err != nil {
		return decision.QueuePage{}, err
	}
	var far decision.QueuePlace // where the page ends, seen from where it was begun
	switch {
	case len(ds) > limit && q.Back:
		far = ds[limit].Behind()
	case len(ds) > limit:
		far = ds[limit-1].Behind()
	case p.Cut:
		far = s.at
	}
	p.Decisions, p.Begin, p.End = ds[:min(len(ds), limit)], q.After, far
	if q.Back {
		slices.Reverse(p.Decisions)
		p.Begin, p.End = far, q.After
	}
	return p, nil
}

// stretch is what lies between two places of the queue.
type stretch struct {
	only  where // what is not left out, by the columns of the index
	at    decision.QueuePlace
	until decision.QueuePlace // zero: the end
	back  bool                // from at to what comes before it
	held  where               // what is searched for
}

func stretchOf(q decision.Queued) stretch {
	w := where{}
	w.and(queued)
	w.and(`space = ?`, q.Space)
	w.and(`type = ?`, string(q.Type), q.Type != "")
	w.and(`owner_kind = ?`, string(q.Owner), q.Owner != "")
	w.and(`kind = ? AND substr(kind, 1, 100) = substr(?, 1, 100)`, q.Kind, q.Kind, q.Kind != "") // PostgreSQL's index has no more of it
	w.and(`tool = ?`, q.Tool, q.Tool != "")
	w.and(`created_at < ?`, q.Before, !q.Before.IsZero())
	return stretch{only: w, at: q.After, back: q.Back}
}

// sql selects what lies in the stretch, and for which all of conds is true; it wants a limit
// and an offset besides.
func (s stretch) sql(sel string, conds ...string) (sql string, args []any) {
	w := where{s.only.sql, slices.Clone(s.only.args)}
	from, to, order := `(queue_at, id) > (?, ?)`, `(queue_at, id) <= (?, ?)`, queueOrder
	if s.back {
		from, to, order = to, from, queueOrderBack
	}
	w.and(from, queuePlace(s.at), s.at.ID, !s.at.IsZero())
	w.and(to, queuePlace(s.until), s.until.ID, !s.until.IsZero())
	if s.held.sql != "" {
		w.and(s.held.sql, s.held.args...)
	}
	for _, c := range conds {
		w.and(c)
	}
	return sel + w.sql + order, w.args
}

// queuePlace is a deadline as the queue is ordered by it.
func queuePlace(p decision.QueuePlace) int64 {
	if p.ExpiresAt.IsZero() {
		return math.MaxInt64
	}
	return p.ExpiresAt.UnixMicro()
}

func (x Rows) within(s stretch, limit int) ([]decision.Decision, error) {
	sql, args := s.sql(selectDecisions, seenDecision)
	return x.decisions(sql, append(args, limit, 0)...)
}

// A search looks through a few at first, then through ever more at a time, and never through
// more bytes than are quickly looked through: a view does not last. Somebody waits for the
// page, so that it ends soon once it has looked through enough to have been worth asking.
const (
	firstLook  = 100
	fewest     = 16
	heaviest   = 2 << 20
	longLook   = 300 * time.Millisecond
	enoughLook = 5000
	quickLook  = 60 * time.Millisecond
)

// nextLook is how many to look through next, after so many in all; 0: it took long enough.
func nextLook(last, all int, took time.Duration) int {
	n := max(2*last, fewest)
	switch {
	case took > longLook:
		return 0
	case all < enoughLook:
		return min(n, max(enoughLook-all, fewest))
	}
	if n = min(n, int(float64(all)*float64(quickLook-took)/float64(max(took, 1)))); n < fewest {
		return 0 // the next look would be over before it is worth its two statements
	}
	return n
}

// search looks through the stretch, piece by piece, up to where it has to be cut.
func (x Rows) search(s *stretch, q decision.Queued, limit int) (ds []decision.Decision, cut bool, err error) {
	held := x.holding(q.Search)
	most, all, began := pageSize(q.Look, decision.MaxLooked, decision.MaxLooked), 0, time.Now()
	for n := min(firstLook, most); n > 0; {
		p, err := x.piece(*s, n)
		if err != nil {
			return nil, false, err
		}
		part := *s
		part.held, part.until = held, p.until
		found, err := x.within(part, limit-len(ds))
		if err != nil {
			return nil, false, err
		}
		ds = append(ds, found...)
		if p.last || len(ds) == limit {
			return ds, false, nil
		}
		s.at = p.until
		all += p.n
		n = min(nextLook(p.n, all, time.Since(began)), most-all)
	}
	return ds, true, nil
}

// piece is a part of a stretch that is looked through at once.
type piece struct {
	until decision.QueuePlace
	n     int  // decisions in it
	last  bool // nothing comes behind it
}

// piece takes up to n of the stretch, fewer if they are large, and one at least.
func (x Rows) piece(s stretch, n int) (p piece, err error) {
	p.last = true
	bytes := int64(0)
	sql, args := s.sql(selectSizes)
	err = x.Query(sql, append(args, n+1, 0), func(r Row) error {
		if !p.last {
			return nil
		}
		at := decision.QueuePlace{ID: r.Str(1)}
		if r.Int(0) != math.MaxInt64 {
			at.ExpiresAt = r.Time(0)
		}
		bytes += r.Int(2)
		if p.last = p.n < n && (bytes <= heaviest || p.n == 0); p.last {
			p.n++
		}
		if p.last != s.back { // a place is behind a decision: forward the last of the piece, backward the first that is not in it
			p.until = at
		}
		return nil
	})
	if p.last {
		p.until = decision.QueuePlace{}
	}
	return p, err
}
