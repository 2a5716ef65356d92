package sqlrows

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/placet-dev/placet/delivery"
)

const (
	targetColumns = `id, space, kind, stream, name, events, principal, url, headers, command, secret, old_secret, old_until,
		max_attempts, retry_delay, timeout, max_age, unordered, created_at, disabled_at, disabled, removed_at, version`
	insertTargetSQL = `INSERT INTO wake_target(` + targetColumns + `)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateTargetSQL = `UPDATE wake_target SET name = ?, events = ?, url = ?, headers = ?, command = ?, secret = ?, old_secret = ?, old_until = ?,
		max_attempts = ?, retry_delay = ?, timeout = ?, max_age = ?, unordered = ?, disabled_at = ?, disabled = ?, removed_at = ?, version = version + 1
		WHERE id = ? AND version = ?`

	dropTargetSQL = `DELETE FROM wake_target WHERE id = ? AND removed_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.target_id = wake_target.id)`

	inUse          = ` AND disabled_at IS NULL AND removed_at IS NULL`
	countGlobalSQL = `SELECT count(*) FROM wake_target WHERE space = ? AND stream = ''` + inUse
	countOfSQL     = `SELECT count(*) FROM wake_target WHERE space = ? AND stream = ?` + inUse
	// Those of a root that has ended hear of nothing any more.
	countMostSQL = `SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM wake_target INDEXED BY wake_target_hears WHERE space = ? AND stream > ''` + inUse + `
		AND NOT EXISTS (SELECT 1 FROM job WHERE job.id = substr(stream, 5) AND job.ended_at IS NOT NULL)
		AND NOT EXISTS (SELECT 1 FROM run WHERE run.id = substr(stream, 5) AND run.finished_at IS NOT NULL) GROUP BY stream) AS each`
	anyRootedSQL = `SELECT 1 FROM wake_target INDEXED BY wake_target_hears WHERE stream > ''` + inUse + ` LIMIT 1`
)

var (
	selectTargets = `SELECT ` + Selected(targetColumns) + ` FROM wake_target`
	targetSQL     = selectTargets + ` WHERE id = ?`
	globalSQL     = selectTargets + ` WHERE stream = ''` + inUse + ` ORDER BY id`
	rootedSQL     = selectTargets + ` WHERE space = ? AND stream = ?` + inUse + ` ORDER BY id`
)

// Hearing is what a backend keeps in memory of the wake targets: they are asked for at
// every event.
type Hearing struct {
	global map[string][]delivery.Target // by space
	rooted bool                         // some hear of one root
}

func (x Rows) WakeTargets(space, stream string) ([]delivery.Target, error) {
	h, err := x.Hearing(x.readHearing)
	if err != nil {
		return nil, err
	}
	if !h.rooted {
		return h.global[space], nil
	}
	own, err := x.targets(rootedSQL, space, stream)
	own = slices.DeleteFunc(own, func(t delivery.Target) bool { return !t.InUse() })
	if len(own) == 0 {
		return h.global[space], err
	}
	return append(own, h.global[space]...), err
}

func (x Rows) readHearing() (*Hearing, error) {
	h := &Hearing{global: map[string][]delivery.Target{}}
	all, err := x.targets(globalSQL)
	for _, t := range all {
		if t.InUse() {
			h.global[t.Space] = append(h.global[t.Space], t)
		}
	}
	if err == nil {
		h.rooted, err = x.queryRow(anyRootedSQL, nil, func(Row) error { return nil })
	}
	return h, err
}

func (x Rows) Target(id string) (t delivery.Target, err error) {
	found, err := x.queryRow(targetSQL, []any{id}, func(r Row) (err error) {
		t, err = scanTarget(r)
		return err
	})
	if err == nil && !found {
		err = delivery.ErrNotFound.Say("There is no target %s.", id)
	}
	return t, err
}

// Targets lists newest first: ids sort by time.
func (x Rows) Targets(q delivery.TargetQuery) ([]delivery.Target, error) {
	w := where{}
	w.and(`space = ?`, q.Space)
	w.and(`removed_at IS NULL`)
	w.and(`stream = ?`, q.Stream, q.Stream != "")
	if q.Global {
		w.and(`stream = ''`)
	}
	w.and(`principal = ?`, q.Principal, q.Principal != "")
	w.and(`name = ?`, q.Name, q.Name != "")
	w.and(`kind = ?`, string(q.Kind), q.Kind != "")
	w.and(`id < ?`, q.After, q.After != "")
	w.prefix(`id`, q.Prefix)
	return x.targets(selectTargets+w.sql+` ORDER BY id DESC LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500))...)
}

func (x Rows) targets(sql string, args ...any) (ts []delivery.Target, err error) {
	err = x.Query(sql, args, func(r Row) error {
		t, err := scanTarget(r)
		ts = append(ts, t)
		return err
	})
	return ts, err
}

func scanTarget(r Row) (delivery.Target, error) {
	t := delivery.Target{
		ID: r.Str(0), Space: r.Str(1), Kind: delivery.Kind(r.Str(2)), Stream: r.Str(3), Name: r.Str(4), Principal: r.Str(6), URL: r.Str(7),
		Secret: r.Bytes(10), OldSecret: r.Bytes(11), OldUntil: r.Time(12), MaxAttempts: r.Int(13),
		RetryDelay: duration(r.Int(14)), Timeout: duration(r.Int(15)), MaxAge: duration(r.Int(16)), Unordered: r.Bool(17),
		CreatedAt: r.Time(18), DisabledAt: r.Time(19), Disabled: r.Str(20), RemovedAt: r.Time(21), Version: r.Int(22),
	}
	for _, f := range []struct {
		column int
		to     any
	}{{5, &t.Events}, {8, &t.Headers}, {9, &t.Command}} {
		if b := r.Bytes(f.column); b != nil {
			if err := json.Unmarshal(b, f.to); err != nil {
				return unreadable(t), nil
			}
		}
	}
	return t, nil
}

// unreadable is a target of which a part cannot be read. It hears of nothing and can be
// removed: an error would stop every event that it might want.
func unreadable(t delivery.Target) delivery.Target {
	t.Events = nil
	if t.InUse() {
		t.DisabledAt, t.Disabled = t.CreatedAt, "It cannot be read as it is stored: remove it, and add it again."
	}
	return t
}

func duration(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }

// targetJSON are the columns that hold JSON; NULL for none.
func targetJSON(t delivery.Target) (events, headers, command []byte, err error) {
	if events, err = json.Marshal(t.Events); err != nil {
		return nil, nil, nil, err
	}
	if headers, err = metadataJSON(t.Headers); err != nil {
		return nil, nil, nil, err
	}
	if t.Command != nil {
		command, err = json.Marshal(t.Command)
	}
	return events, headers, command, err
}

func (x Rows) InsertTarget(t delivery.Target) error {
	events, headers, command, err := targetJSON(t)
	if err != nil {
		return err
	}
	if err := x.TargetsMove(t.Stream); err != nil {
		return err
	}
	return x.write(insertTargetSQL, t.ID, t.Space, string(t.Kind), t.Stream, t.Name, events, t.Principal, t.URL, headers, command, t.Secret, t.OldSecret, t.OldUntil,
		t.MaxAttempts, micros(t.RetryDelay), micros(t.Timeout), micros(t.MaxAge), t.Unordered, t.CreatedAt, t.DisabledAt, t.Disabled, t.RemovedAt, t.Version)
}

func (x Rows) UpdateTarget(prev, t delivery.Target) (bool, error) {
	events, headers, command, err := targetJSON(t)
	if err != nil {
		return false, err
	}
	if err := x.TargetsMove(t.Stream); err != nil {
		return false, err
	}
	return x.one(updateTargetSQL, t.Name, events, t.URL, headers, command, t.Secret, t.OldSecret, t.OldUntil,
		t.MaxAttempts, micros(t.RetryDelay), micros(t.Timeout), micros(t.MaxAge), t.Unordered, t.DisabledAt, t.Disabled, t.RemovedAt, prev.ID, prev.Version)
}

func (x Rows) DropTarget(id string) error {
	return x.write(dropTargetSQL, id)
}

func (x Rows) CountTargets(space, stream string) (global, ofStream, most int64, err error) {
	count := func(to *int64, sql string, args ...any) {
		if err == nil {
			_, err = x.queryRow(sql, args, func(r Row) error { *to = r.Int(0); return nil })
		}
	}
	count(&global, countGlobalSQL, space)
	if stream != "" {
		count(&ofStream, countOfSQL, space, stream)
	} else {
		count(&most, countMostSQL, space)
	}
	return global, ofStream, most, err
}
