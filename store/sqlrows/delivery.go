package sqlrows

import (
	"strings"
	"time"

	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
)

// seqGiven stands for the event's number: given, or found by the event's place in its
// stream where the database gives it.
const seqGiven = `#seq`

const (
	deliveryColumns = `id, space, target_id, pushed, ordered, seq, stream, stream_seq, type, subject, status, attempts, due_at, message, out_of_order,
		fence, owner, token, lease_until, epoch, created_at, gives_up_at, budget, ended_at, version`
	insertSeqDeliverySQL = `INSERT INTO delivery(id, space, target_id, pushed, ordered, seq, stream, stream_seq, type, subject, asks, status, attempts, due_at, message, out_of_order,
		fence, owner, try_at, try_ended, try_outcome, try_status, try_message, token, lease_until, epoch, created_at, gives_up_at, budget, ended_at, version)
		VALUES (?1, ?2, ?3, ?4, ?5, ` + seqGiven + `, ?7, ?8, ?9, ?10, ?11, ?12, 0,
			CASE WHEN CAST(?5 AS bigint) = 1 AND EXISTS (SELECT 1 FROM delivery WHERE target_id = ?3 AND stream = ?7 AND ended_at IS NULL AND ordered = 1) THEN NULL ELSE CAST(?13 AS bigint) END,
			'', 0, 0, '', NULL, NULL, NULL, 0, '', NULL, NULL, 0, ?14, ?15, 0, NULL, 1)`
	makeDueSQL = `UPDATE delivery SET due_at = ?1, version = version + 1
		WHERE id = (SELECT id FROM delivery WHERE target_id = ?2 AND stream = ?3 AND ended_at IS NULL AND ordered = 1 ORDER BY stream_seq LIMIT 1)
		AND due_at IS NULL AND status = 'pending'`

	// One step of a walk over the targets of which something pushed may be due: the index
	// is entered anew for each, so that what else waits for a target is stepped over.
	nextTargetSQL = `SELECT target_id, due_at FROM delivery WHERE due_at IS NOT NULL AND pushed = 1 AND target_id > ? ORDER BY target_id, due_at LIMIT 1`
	targetSteps   = 512

	// The last attempt stands in the delivery; before the next begins, it is put aside.
	keepAttemptSQL = `INSERT INTO delivery_attempt(delivery_id, n, owner, started_at, ended_at, outcome, status, message)
		SELECT id, fence, owner, try_at, try_ended, try_outcome, try_status, try_message FROM delivery WHERE ` + asItStood
	deliveryAttemptsSQL = `SELECT delivery_id, n, owner, started_at, ended_at, outcome, status, message FROM delivery_attempt WHERE delivery_id = ?1
		UNION ALL SELECT id, fence, owner, try_at, try_ended, try_outcome, try_status, try_message FROM delivery WHERE id = ?1 AND fence > 0 ORDER BY 2`
	asItStood = `id = ? AND version = ? AND status = ? AND fence = ? AND epoch = ?`

	// Those that have arrived are not counted: they are all the rest. What was given up of
	// a target that was removed concerns nobody.
	countDeliveriesSQL = `SELECT status, count(*) FROM delivery WHERE ` + isOpen + ` AND space = ?1 GROUP BY status
		UNION ALL SELECT status, count(*) FROM delivery WHERE space = ?1 AND (status = 'dead' OR status = 'dropped')
			AND NOT EXISTS (SELECT 1 FROM wake_target AS t WHERE t.id = delivery.target_id AND t.removed_at IS NOT NULL) GROUP BY status`
	settledSQL = `SELECT CASE WHEN status <> 'pending' OR open = 0 THEN 1 ELSE 0 END FROM decision WHERE id = ?`

	lockDeliverySQL = `SELECT 1 FROM delivery WHERE id = ?` + forChange
	// lockLaneSQL keeps what is open in a lane so until its next one has come: else that
	// would wait for one that came to its end meanwhile.
	lockLaneSQL = `SELECT 1 FROM delivery WHERE target_id = ? AND stream = ? AND ended_at IS NULL AND ordered = 1
		ORDER BY stream_seq LIMIT 1` + forChange
)

var (
	insertDeliverySQL = strings.Replace(insertSeqDeliverySQL, seqGiven, `?6`, 1)
	insertNumberedSQL = strings.Replace(insertSeqDeliverySQL, seqGiven, `(SELECT seq FROM event WHERE stream = ?7 AND stream_seq = ?6)`, 1)

	selectDeliveries = `SELECT ` + Selected(deliveryColumns) + ` FROM delivery`
	deliverySQL      = selectDeliveries + ` WHERE id = ?`
	dueOfSQL         = selectDeliveries + ` WHERE due_at IS NOT NULL AND pushed = ? AND target_id = ? AND due_at <= ? ORDER BY due_at LIMIT +?`
	claimsEndedSQL   = selectDeliveries + ` WHERE lease_until IS NOT NULL AND lease_until < ? ORDER BY lease_until LIMIT +? OFFSET +?`
	overagedSQL      = selectDeliveries + ` WHERE ended_at IS NULL AND lease_until IS NULL AND gives_up_at < ? ORDER BY gives_up_at LIMIT +? OFFSET +?`
	askedSQL         = selectDeliveries + ` WHERE asks = 1 AND ended_at IS NULL AND lease_until IS NULL AND id > ?
		AND EXISTS (SELECT 1 FROM decision WHERE decision.id = delivery.subject AND (decision.status <> 'pending' OR decision.open = 0)) ORDER BY id LIMIT +?`
	// What of a removed target is due, or waits in a lane of its. The cross joins have the
	// targets looked at first.
	removedSQL = selectDeliveries + ` WHERE id IN (
		SELECT d.id FROM wake_target AS t INDEXED BY wake_target_removed CROSS JOIN delivery AS d
			ON d.target_id = t.id AND d.due_at IS NOT NULL AND d.pushed = CASE WHEN t.kind <> 'relay' THEN 1 ELSE 0 END WHERE t.removed_at IS NOT NULL AND t.id > ''
		UNION ALL
		SELECT d.id FROM wake_target AS t INDEXED BY wake_target_removed CROSS JOIN delivery AS d INDEXED BY delivery_lane
			ON d.target_id = t.id AND d.ended_at IS NULL AND d.ordered = 1 AND d.lease_until IS NULL WHERE t.removed_at IS NOT NULL AND t.id > ''
		LIMIT +? OFFSET +?)`
	selectOpen = selectDeliveries + ` INDEXED BY delivery_age`
)

func (x Rows) InsertDelivery(d delivery.Delivery) error {
	if d.Ordered {
		if err := x.Lock(nil, lockLaneSQL, d.TargetID, d.Stream); err != nil {
			return err
		}
	}
	sql, seq := insertDeliverySQL, any(d.EventSeq)
	if x.Dialect().OwnPos {
		sql, seq = insertNumberedSQL, d.StreamSeq
	}
	return x.write(sql, d.ID, d.Space, d.TargetID, d.Pushed, d.Ordered, seq, d.Stream, d.StreamSeq, string(d.EventType), d.Subject, d.Asks(),
		string(d.Status), d.Due, d.CreatedAt, d.GivesUpAt)
}

func (x Rows) Delivery(id string) (d delivery.Delivery, err error) {
	found, err := x.queryRow(deliverySQL, []any{id}, func(r Row) error {
		d = scanDelivery(r)
		return nil
	})
	if err == nil && !found {
		err = delivery.ErrNotFound.Say("There is no delivery %s.", id)
	}
	return d, err
}

func scanDelivery(r Row) delivery.Delivery {
	return delivery.Delivery{
		ID: r.Str(0), Space: r.Str(1), TargetID: r.Str(2), Pushed: r.Bool(3), Ordered: r.Bool(4), EventSeq: r.Int(5), Stream: r.Str(6), StreamSeq: r.Int(7),
		EventType: event.Type(r.Str(8)), Subject: r.Str(9), Status: delivery.Status(r.Str(10)), Attempts: r.Int(11), Due: r.Time(12), Message: r.Str(13),
		OutOfOrder: r.Bool(14), Fence: r.Int(15), Owner: r.Str(16), Token: r.Bytes(17), LeaseUntil: r.Time(18), Epoch: r.Int(19),
		CreatedAt: r.Time(20), GivesUpAt: r.Time(21), Budget: r.Int(22), EndedAt: r.Time(23), Version: r.Int(24),
	}
}

// isOpen is written so that the index of these is entered, and not the table.
const isOpen = `ended_at IS NULL AND gives_up_at > 0`

// Deliveries lists newest first: ids sort by time.
func (x Rows) Deliveries(q delivery.Query) ([]delivery.Delivery, error) {
	from, w := selectDeliveries, where{}
	w.and(`space = ?`, q.Space)
	w.and(`target_id = ?`, q.TargetID, q.TargetID != "")
	w.and(`seq IN (SELECT event.seq FROM event WHERE event.stream = ?)`, q.Stream, q.Stream != "")
	w.and(`status = ?`, string(q.Status), q.Status != "")
	switch {
	case q.Status.Open() && q.TargetID == "" && q.Stream == "":
		from = selectOpen // all the others may be many
		w.and(isOpen)
	case q.Status == delivery.Dead, q.Status == delivery.Dropped:
		w.and(`(status = 'dead' OR status = 'dropped')`)
	}
	w.and(`target_id IN (SELECT id FROM wake_target WHERE principal = ?)`, q.Principal, q.Principal != "")
	w.and(`id < ?`, q.After, q.After != "")
	w.prefix(`id`, q.Prefix)
	return x.deliveries(from+w.sql+` ORDER BY id DESC LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500))...)
}

func (x Rows) deliveries(sql string, args ...any) (ds []delivery.Delivery, err error) {
	err = x.Query(sql, args, func(r Row) error {
		ds = append(ds, scanDelivery(r))
		return nil
	})
	return ds, err
}

func (x Rows) CountDeliveries(space string) (map[delivery.Status]int64, error) {
	n := map[delivery.Status]int64{}
	return n, x.Query(countDeliveriesSQL, []any{space}, func(r Row) error {
		n[delivery.Status(r.Str(0))] = r.Int(1)
		return nil
	})
}

// UpdateDeliveries writes those that change alike in one statement.
func (x Rows) UpdateDeliveries(prev []delivery.Delivery, chs []delivery.Change) (won []bool, err error) {
	won = make([]bool, len(prev))
	us := make([]*update, len(prev)) // nil: written
	defer func() {
		for _, u := range us {
			u.free()
		}
	}()
	for i := range prev {
		if len(prev) > 1 && !again(prev[i], chs[i]) {
			us[i] = updateOf(prev[i], chs[i])
		} else if won[i], err = x.updateDelivery(prev[i], chs[i]); err != nil {
			return nil, err
		}
	}
	var alike []int
	for i, u := range us {
		if u == nil {
			continue
		}
		alike = append(alike[:0], i)
		for j := i + 1; j < len(us) && len(alike) < mostAlike; j++ {
			if us[j].like(u) && asOne(prev[j], prev[i]) {
				us[j] = us[j].free()
				alike = append(alike, j)
			}
		}
		us[i] = nil
		if err := x.updateAlike(u, prev, alike, won); err != nil {
			return nil, err
		}
	}
	return won, nil
}

// again reports that another attempt begins: the one before it is put aside.
func again(prev delivery.Delivery, ch delivery.Change) bool { return ch.Began != nil && prev.Fence > 0 }

// asOne reports whether both have to stand the same.
func asOne(a, b delivery.Delivery) bool {
	return a.Version == b.Version && a.Status == b.Status && a.Fence == b.Fence && a.Epoch == b.Epoch
}

func (x Rows) updateDelivery(prev delivery.Delivery, ch delivery.Change) (bool, error) {
	guard := []any{prev.ID, prev.Version, string(prev.Status), prev.Fence, prev.Epoch}
	if again(prev, ch) {
		if err := x.Lock(nil, lockDeliverySQL, prev.ID); err != nil { // what is put aside must be what is changed then
			return false, err
		}
		if kept, err := x.one(keepAttemptSQL, guard...); err != nil || !kept {
			return false, err
		}
	}
	u := updateOf(prev, ch)
	u.where(asItStood, guard...)
	return u.won(x)
}

// mostAlike is how many rows one statement takes.
const mostAlike = 64

// upTo makes a statement for each of some numbers of rows, up to so many: few are enough,
// since one with room for more names the last row again.
func upTo(most int, before, after string) map[int]string {
	m := map[int]string{}
	for n := 1; n <= most; n *= 2 {
		m[n] = before + `(?` + strings.Repeat(`, ?`, n-1) + `)` + after
	}
	return m
}

// roomFor is the least of those numbers that is enough for n.
func roomFor(n int) int {
	room := 1
	for room < n {
		room *= 2
	}
	return room
}

// The sign before status keeps the statement from being prepared anew for each value, in
// case an index of that status alone would do.
var alikeStood = upTo(mostAlike, `version = ? AND +status = ? AND fence = ? AND epoch = ? AND id IN `, ` RETURNING id`)

// updateAlike runs u for some of prev, and notes which were as expected.
func (x Rows) updateAlike(u *update, prev []delivery.Delivery, some []int, won []bool) error {
	n := roomFor(len(some))
	first := prev[some[0]]
	u.where(alikeStood[n], first.Version, string(first.Status), first.Fence, first.Epoch)
	for i := range n {
		u.args = append(u.args, prev[some[min(i, len(some)-1)]].ID)
	}
	at := 0 // they mostly come back in the order in which they were made
	err := x.Query(updates.text(u.sql), u.args, func(r Row) error {
		id := r.Str(0)
		for range some {
			i := some[at]
			at = (at + 1) % len(some)
			if prev[i].ID == id && !won[i] {
				won[i] = true
				break
			}
		}
		return nil
	})
	u.free()
	return err
}

// updateOf writes what differs.
func updateOf(prev delivery.Delivery, ch delivery.Change) *update {
	d := ch.Next
	u := newUpdate(`delivery`)
	u.bool(`ordered`, prev.Ordered, d.Ordered)
	u.str(`status`, string(prev.Status), string(d.Status))
	u.int(`attempts`, prev.Attempts, d.Attempts)
	u.time(`due_at`, prev.Due, d.Due)
	u.str(`message`, prev.Message, d.Message)
	u.bool(`out_of_order`, prev.OutOfOrder, d.OutOfOrder)
	u.int(`fence`, prev.Fence, d.Fence)
	u.str(`owner`, prev.Owner, d.Owner)
	u.bytes(`token`, prev.Token, d.Token)
	u.time(`lease_until`, prev.LeaseUntil, d.LeaseUntil)
	u.int(`epoch`, prev.Epoch, d.Epoch)
	u.time(`gives_up_at`, prev.GivesUpAt, d.GivesUpAt)
	u.int(`budget`, prev.Budget, d.Budget)
	u.time(`ended_at`, prev.EndedAt, d.EndedAt)
	if a := ch.Began; a != nil {
		u.set(`try_at`, a.StartedAt)
		if prev.Fence > 0 {
			u.set(`try_ended`, nil)
			u.set(`try_outcome`, nil)
			u.set(`try_status`, 0)
			u.set(`try_message`, "")
		}
	}
	if a := ch.Ended; a != nil {
		u.set(`try_ended`, a.EndedAt)
		u.set(`try_outcome`, string(a.Outcome))
		u.int(`try_status`, 0, int64(a.Status))
		u.str(`try_message`, "", a.Message)
	}
	return u
}

func (x Rows) MakeDue(targetID, stream string, now time.Time) error {
	return x.write(makeDueSQL, now, targetID, stream)
}

func (x Rows) DeliveryAttempts(deliveryID string) (as []delivery.Attempt, err error) {
	err = x.Query(deliveryAttemptsSQL, []any{deliveryID}, func(r Row) error {
		as = append(as, delivery.Attempt{
			DeliveryID: r.Str(0), N: r.Int(1), Owner: r.Str(2), StartedAt: r.Time(3), EndedAt: r.Time(4),
			Outcome: delivery.AttemptOutcome(r.Str(5)), Status: int(r.Int(6)), Message: r.Str(7),
		})
		return nil
	})
	return as, err
}

func (x Rows) DueTargets(now time.Time, after string, limit int) (ids []string, at string, next time.Time, err error) {
	if sql := x.Dialect().NextTargets; sql != "" {
		return x.dueTargets(sql, now, after, limit)
	}
	at = after
	for range targetSteps {
		due := time.Time{}
		found, err := x.queryRow(nextTargetSQL, []any{at}, func(r Row) error {
			at, due = r.Str(0), r.Time(1)
			return nil
		})
		switch {
		case err != nil:
			return nil, "", next, err
		case !found:
			return ids, "", next, nil
		case due.After(now):
			if next.IsZero() || due.Before(next) {
				next = due
			}
			continue
		}
		if ids = append(ids, at); len(ids) == limit {
			break
		}
	}
	return ids, at, next, nil
}

// dueTargets takes all steps of the walk in one statement.
func (x Rows) dueTargets(sql string, now time.Time, after string, limit int) (ids []string, at string, next time.Time, err error) {
	steps, over := 0, false
	err = x.Query(sql, []any{after, targetSteps}, func(r Row) error {
		steps++
		if over {
			return nil
		}
		due := r.Time(1)
		switch {
		case !due.After(now):
			ids = append(ids, r.Str(0))
		case next.IsZero() || due.Before(next):
			next = due
		}
		at, over = r.Str(0), len(ids) == limit
		return nil
	})
	if err == nil && steps < targetSteps && !over {
		at = ""
	}
	return ids, at, next, err
}

func (x Rows) DueOf(t delivery.Target, now time.Time, limit int) ([]delivery.Delivery, error) {
	return x.deliveries(x.claiming(dueOfSQL), t.Pushed(), t.ID, now, limit)
}

func (x Rows) ClaimsEnded(now time.Time, skip, limit int) ([]delivery.Delivery, error) {
	return x.deliveries(claimsEndedSQL, now, limit, skip)
}

func (x Rows) Overaged(now time.Time, skip, limit int) ([]delivery.Delivery, error) {
	return x.deliveries(overagedSQL, now, limit, skip)
}

func (x Rows) OfRemoved(skip, limit int) ([]delivery.Delivery, error) {
	return x.deliveries(removedSQL, limit, skip)
}

func (x Rows) AskingSettled(after string, limit int) ([]delivery.Delivery, error) {
	return x.deliveries(askedSQL, after, limit)
}

func (x Rows) EventsOf(ds []delivery.Delivery) ([]*event.Event, error) {
	es := make([]*event.Event, len(ds))
	for from := 0; from < len(ds); from += mostAlike {
		some := ds[from:min(from+mostAlike, len(ds))]
		n := roomFor(len(some))
		args := make([]any, n)
		for i := range args {
			args[i] = some[min(i, len(some)-1)].EventSeq
		}
		if err := x.Query(x.events().of[n], args, func(r Row) error {
			e := scanEvent(r)
			for i, d := range some {
				if d.EventSeq == e.Seq {
					es[from+i] = &e
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return es, nil
}

func (x Rows) Settled(subject string) (settled bool, err error) {
	_, err = x.queryRow(settledSQL, []any{subject}, func(r Row) error {
		settled = r.Bool(0)
		return nil
	})
	return settled, err
}
