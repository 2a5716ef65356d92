package sqlrows

import (
	"fmt"
	"time"

	calls "github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/store"
)

const (
	callColumns = `id, space, run_id, own_run, external_id, tool, spec_digest, args, args_digest, principal, metadata, continue_by, next_try_at,
		status, kind, message, result, effective_digest, approval_id, approval_n, attempts, fence, lease_until, lease_owner, epoch,
		created_at, ended_at, version, head_seq, head, recovery, step_id`
	insertCallSQL = `INSERT INTO call(` + callColumns + `)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

var (
	selectCalls       = `SELECT ` + Selected(callColumns) + ` FROM call`
	callSQL           = selectCalls + ` WHERE id = ?`
	callByExternalSQL = selectCalls + ` WHERE space = ? AND run_id = ? AND external_id = ?`
	lockCallSQL       = `SELECT 1 FROM call WHERE id = ?` + forChange
	// Few calls are granted and not yet run, or in doubt; their indexes find them among
	// any number of others.
	continuableSQL = selectCalls + ` WHERE id IN (
			SELECT owner_id FROM decision WHERE status = 'approved' AND space = ? AND owner_kind = 'call' AND owner_id > ?
			UNION SELECT id FROM call WHERE continue_by = 'daemon' AND status = 'unknown' AND space = ? AND id > ?)
		AND continue_by = 'daemon' AND status IN ('pending', 'unknown') AND step_id IS NULL
		AND (next_try_at IS NULL OR next_try_at <= ?)
		AND (EXISTS (SELECT 1 FROM decision AS d WHERE d.id = call.approval_id AND d.status = 'approved')
			OR status = 'unknown' AND (approval_id IS NULL
				OR EXISTS (SELECT 1 FROM decision AS d WHERE d.id = call.approval_id AND d.status = 'consumed' AND d.choice = 'approve')))
		ORDER BY id LIMIT +?`
	leaseEndedSQL = selectCalls + ` WHERE status = 'running' AND step_id IS NULL AND space = ? AND (lease_until < ? OR epoch < ?) AND id > ? ORDER BY id LIMIT +?`
)

func (x Rows) Call(id string) (calls.Call, error) {
	if c := x.ahead.call; c.ID == id && id != "" {
		x.ahead.call = calls.Call{}
		return c, nil
	}
	return x.call(callSQL, "There is no call "+id+".", id)
}

func (x Rows) CallByExternalID(space, runID, externalID string) (calls.Call, error) {
	return x.call(callByExternalSQL, "Run "+runID+" has no call "+externalID+".", space, runID, externalID)
}

func (x Rows) call(sql, missing string, args ...any) (c calls.Call, err error) {
	found, err := x.queryRow(x.locking(sql), args, func(r Row) (err error) {
		c, err = scanCall(r)
		return err
	})
	if err == nil && !found {
		err = decision.ErrNotFound.Say("%s", missing)
	}
	return c, err
}

func scanCall(r Row) (calls.Call, error) {
	meta, err := scanMetadata(r.Bytes(10))
	c := calls.Call{
		ID: r.Str(0), Space: r.Str(1), RunID: r.Str(2), OwnRun: r.Bool(3), ExternalID: r.Str(4), Tool: r.Str(5), SpecDigest: r.Str(6),
		Args: r.Bytes(7), ArgsDigest: r.Str(8), Principal: r.Str(9), Metadata: meta, ContinueBy: calls.ContinueBy(r.Str(11)), NextTryAt: r.Time(12),
		Status: calls.Status(r.Str(13)), Kind: calls.Kind(r.Str(14)), Message: r.Str(15), Result: r.Bytes(16), EffectiveDigest: r.Str(17),
		ApprovalID: r.Str(18), ApprovalN: r.Int(19), Attempts: r.Int(20), Fence: r.Int(21), LeaseUntil: r.Time(22), LeaseOwner: r.Str(23), Epoch: r.Int(24),
		CreatedAt: r.Time(25), EndedAt: r.Time(26), Version: r.Int(27), Recovery: calls.Recovery(r.Str(30)),
		StepID: r.Str(31),
	}
	if err == nil && !r.Null(31) && !c.Hosted() { // altered: a call without a step has none
		err = fmt.Errorf("the step of call %s is empty as stored", c.ID)
	}
	if !c.Hosted() {
		c.Head = event.Head{Stream: c.Stream(), Seq: r.Int(28), Hash: r.Bytes(29)}
	}
	return c, err
}

func (x Rows) InsertCall(c calls.Call) error {
	metadata, err := metadataJSON(c.Metadata)
	if err != nil {
		return err
	}
	return x.Write(Write{SQL: insertCallSQL, Taken: func() error { return store.TakenCall(c) }, Args: []any{
		c.ID, c.Space, c.RunID, c.OwnRun, text(c.ExternalID), c.Tool, c.SpecDigest, c.Args, c.ArgsDigest, c.Principal, metadata, string(c.ContinueBy), c.NextTryAt,
		string(c.Status), string(c.Kind), c.Message, c.Result, c.EffectiveDigest, text(c.ApprovalID), c.ApprovalN, c.Attempts, c.Fence, c.LeaseUntil, c.LeaseOwner, c.Epoch,
		c.CreatedAt, c.EndedAt, c.Version, c.Head.Seq, c.Head.Hash, string(c.Recovery), text(c.StepID),
	}})
}

func (x Rows) LockCall(id string) error { return x.Lock(nil, lockCallSQL, id) }

func (x Rows) UpdateCall(prev, c calls.Call, whole bool) error {
	x.ahead.call = calls.Call{}
	u := newUpdate(`call`)
	u.str(`spec_digest`, prev.SpecDigest, c.SpecDigest)
	u.str(`recovery`, string(prev.Recovery), string(c.Recovery))
	u.time(`next_try_at`, prev.NextTryAt, c.NextTryAt)
	u.str(`status`, string(prev.Status), string(c.Status))
	u.str(`kind`, string(prev.Kind), string(c.Kind))
	u.str(`message`, prev.Message, c.Message)
	u.bytes(`result`, prev.Result, c.Result)
	u.str(`effective_digest`, prev.EffectiveDigest, c.EffectiveDigest)
	u.text(`approval_id`, prev.ApprovalID, c.ApprovalID)
	u.int(`approval_n`, prev.ApprovalN, c.ApprovalN)
	u.int(`attempts`, prev.Attempts, c.Attempts)
	u.int(`fence`, prev.Fence, c.Fence)
	u.time(`lease_until`, prev.LeaseUntil, c.LeaseUntil)
	u.str(`lease_owner`, prev.LeaseOwner, c.LeaseOwner)
	u.int(`epoch`, prev.Epoch, c.Epoch)
	u.time(`ended_at`, prev.EndedAt, c.EndedAt)
	if !c.Hosted() {
		u.set(`head_seq`, c.Head.Seq) // prev may show the head of events that are not in the row yet
		u.set(`head`, c.Head.Hash)
	}
	u.where(`id = ? AND version = ? AND status = ? AND fence = ?`, prev.ID, prev.Version, string(prev.Status), prev.Fence)
	if whole {
		u.and(`attempts`, prev.Attempts)
		u.and(`approval_id`, text(prev.ApprovalID))
		u.and(`tool`, prev.Tool)
		u.and(`run_id`, prev.RunID)
		u.and(`args_digest`, prev.ArgsDigest)
	}
	return u.run(x, func() error { return store.MovedCall(prev) })
}

func (x Rows) LeaseEnded(space string, now time.Time, after string, limit int) ([]calls.Call, error) {
	return x.calls(leaseEndedSQL, space, now, x.Epoch(), after, pageSize(limit, 100, 1000))
}

func (x Rows) Continuable(space string, now time.Time, after string, limit int) ([]calls.Call, error) {
	return x.calls(continuableSQL, space, after, space, after, now, pageSize(limit, 100, 1000))
}

// Calls lists newest first: ids sort by time.
func (x Rows) Calls(q calls.Query) ([]calls.Call, error) {
	w := where{}
	w.and(`space = ?`, q.Space)
	w.and(`status = ?`, string(q.Status), q.Status != "")
	w.and(`run_id = ?`, q.RunID, q.RunID != "")
	w.and(`id < ?`, q.After, q.After != "")
	w.prefix(`id`, q.Prefix)
	return x.calls(selectCalls+w.sql+` ORDER BY id DESC LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500))...)
}

func (x Rows) calls(sql string, args ...any) ([]calls.Call, error) {
	var cs []calls.Call
	err := x.Query(sql, args, func(r Row) error {
		c, err := scanCall(r)
		cs = append(cs, c)
		return err
	})
	return cs, err
}

const (
	attemptColumns = `call_id, n, fence, epoch, approval_id, grant_digest, effective_digest, args, owner, recovery, started_at, ended_at,
		outcome, kind, message, late`
	attemptSQL       = `SELECT ` + attemptColumns + ` FROM attempt WHERE call_id = ? AND n = ?`
	attemptsSQL      = `SELECT ` + attemptColumns + ` FROM attempt WHERE call_id = ? ORDER BY n`
	insertAttemptSQL = `INSERT INTO attempt(` + attemptColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateAttemptSQL = `UPDATE attempt SET ended_at = ?, outcome = ?, kind = ?, message = ?, late = ?
		WHERE call_id = ? AND n = ? AND fence = ? AND epoch = ? AND outcome IS ?`
)

func (x Rows) Attempt(callID string, n int64) (a calls.Attempt, err error) {
	found, err := x.queryRow(attemptSQL, []any{callID, n}, func(r Row) error {
		a = scanAttempt(r)
		return nil
	})
	if err == nil && !found {
		err = decision.ErrNotFound.Say("Call %s has no attempt %d.", callID, n)
	}
	return a, err
}

func (x Rows) Attempts(callID string) ([]calls.Attempt, error) {
	var as []calls.Attempt
	err := x.Query(attemptsSQL, []any{callID}, func(r Row) error {
		as = append(as, scanAttempt(r))
		return nil
	})
	return as, err
}

func scanAttempt(r Row) calls.Attempt {
	return calls.Attempt{
		CallID: r.Str(0), N: r.Int(1), Fence: r.Int(2), Epoch: r.Int(3), ApprovalID: r.Str(4), GrantDigest: r.Str(5), EffectiveDigest: r.Str(6),
		Args: r.Bytes(7), Owner: r.Str(8), Recovery: calls.Recovery(r.Str(9)), StartedAt: r.Time(10), EndedAt: r.Time(11),
		Outcome: calls.Status(r.Str(12)), Kind: calls.Kind(r.Str(13)), Message: r.Str(14), Late: r.Bool(15),
	}
}

func (x Rows) InsertAttempt(a calls.Attempt) error {
	return x.write(insertAttemptSQL, a.CallID, a.N, a.Fence, a.Epoch, text(a.ApprovalID), a.GrantDigest, a.EffectiveDigest, a.Args, a.Owner,
		string(a.Recovery), a.StartedAt, a.EndedAt, text(string(a.Outcome)), string(a.Kind), a.Message, a.Late)
}

func (x Rows) UpdateAttempt(prev, a calls.Attempt) error {
	return x.Write(Write{SQL: updateAttemptSQL, Lost: func() error { return store.MovedAttempt(prev) }, Args: []any{
		a.EndedAt, text(string(a.Outcome)), string(a.Kind), a.Message, a.Late,
		prev.CallID, prev.N, prev.Fence, prev.Epoch, text(string(prev.Outcome)),
	}})
}

const (
	guardSQL    = `SELECT n, since FROM guard WHERE space = ? AND run_id = ? AND name = ? AND key = ?`
	putGuardSQL = `INSERT INTO guard(space, run_id, name, key, n, since) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (space, run_id, name, key) DO UPDATE SET n = excluded.n, since = excluded.since`
	dropGuardSQL = `DELETE FROM guard WHERE space = ? AND run_id = ? AND name = ? AND key = ? AND n <= ?`
)

func (x Rows) GuardCount(g calls.Guard) (calls.Guard, error) {
	if err := x.LockName("guard\x00" + g.Space + "\x00" + g.RunID + "\x00" + g.Name + "\x00" + g.Key); err != nil {
		return g, err
	}
	_, err := x.queryRow(guardSQL, []any{g.Space, g.RunID, g.Name, g.Key}, func(r Row) error {
		g.N, g.Since = r.Int(0), r.Time(1)
		return nil
	})
	return g, err
}

func (x Rows) PutGuard(g calls.Guard) error {
	return x.write(putGuardSQL, g.Space, g.RunID, g.Name, g.Key, g.N, g.Since)
}

func (x Rows) DropGuard(g calls.Guard) error {
	return x.write(dropGuardSQL, g.Space, g.RunID, g.Name, g.Key, g.N)
}

// A closed one stands for ever: what it was given to has ended otherwise.
const countGrantsSQL = `SELECT owner_kind, count(*) FROM decision WHERE space = ? AND status = 'approved' AND open = 1 GROUP BY owner_kind`

func (x Rows) CountGrants(space string) (ofCalls, ofRuns int64, err error) {
	err = x.Query(countGrantsSQL, []any{space}, func(r Row) error {
		switch decision.OwnerKind(r.Str(0)) {
		case decision.OwnerCall:
			ofCalls = r.Int(1)
		case decision.OwnerRun:
			ofRuns = r.Int(1)
		}
		return nil
	})
	return ofCalls, ofRuns, err
}

const (
	runIsThereSQL = `SELECT 1 FROM run WHERE id = ? AND space = ?`
	firstUserSQL  = `SELECT principal FROM call WHERE space = ? AND run_id = ? AND step_id IS NULL ORDER BY id LIMIT 1`
)

func (x Rows) RunUse(space, runID string) (u calls.RunUse, err error) {
	if u.Run, err = x.queryRow(runIsThereSQL, []any{runID, space}, func(Row) error { return nil }); err != nil {
		return u, err
	}
	u.Calls, err = x.queryRow(firstUserSQL, []any{space, runID}, func(r Row) error {
		u.Principal = r.Str(0)
		return nil
	})
	return u, err
}

const (
	idempotentSQL       = `SELECT request, call_id, attempt, at FROM idempotency WHERE space = ? AND principal = ? AND route = ? AND key = ? AND at >= ?`
	insertIdempotentSQL = `INSERT INTO idempotency(space, principal, route, key, request, call_id, attempt, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (space, principal, route, key) DO UPDATE SET request = excluded.request, call_id = excluded.call_id, attempt = excluded.attempt,
			at = excluded.at
		WHERE idempotency.at < ?`
	oldKeysSQL = `SELECT space, principal, route, key, request, call_id, attempt, at FROM idempotency WHERE at < ? ORDER BY at LIMIT +?`
	dropKeySQL = `DELETE FROM idempotency WHERE space = ? AND principal = ? AND route = ? AND key = ? AND at = ?`
)

func (x Rows) IdempotentCall(k calls.IdempotencyKey) (calls.IdempotencyKey, error) {
	found, err := x.queryRow(idempotentSQL, []any{k.Space, k.Principal, k.Route, k.Key, x.Now().Add(-calls.KeptKeys)}, func(r Row) error {
		k.Request, k.CallID, k.Attempt, k.At = r.Str(0), r.Str(1), r.Int(2), r.Time(3)
		return nil
	})
	if err == nil && !found {
		err = decision.ErrNotFound
	}
	return k, err
}

func (x Rows) InsertIdempotent(k calls.IdempotencyKey) (bool, error) {
	return x.one(insertIdempotentSQL, k.Space, k.Principal, k.Route, k.Key, k.Request, k.CallID, k.Attempt, k.At, k.At.Add(-calls.KeptKeys))
}

func (x Rows) OldKeys(before time.Time, limit int) (ks []calls.IdempotencyKey, err error) {
	err = x.Query(oldKeysSQL, []any{before, pageSize(limit, 100, 1000)}, func(r Row) error {
		ks = append(ks, calls.IdempotencyKey{
			Space: r.Str(0), Principal: r.Str(1), Route: r.Str(2), Key: r.Str(3), Request: r.Str(4), CallID: r.Str(5), Attempt: r.Int(6), At: r.Time(7),
		})
		return nil
	})
	return ks, err
}

func (x Rows) DropKey(k calls.IdempotencyKey) (bool, error) {
	return x.one(dropKeySQL, k.Space, k.Principal, k.Route, k.Key, k.At)
}
