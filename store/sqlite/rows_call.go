package sqlite

import (
	"fmt"
	"time"

	calls "github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
)

const (
	callColumns = `id, space, run_id, own_run, external_id, tool, spec_digest, args, args_digest, principal, metadata, continue_by, next_try_at,
		status, kind, message, result, effective_digest, approval_id, approval_n, attempts, fence, lease_until, lease_owner, epoch,
		created_at, ended_at, version, head_seq, head, recovery, step_id`
	insertCallSQL = `INSERT INTO call(` + callColumns + `)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

var (
	selectCalls       = `SELECT ` + selected(callColumns) + ` FROM call`
	callSQL           = selectCalls + ` WHERE id = ?`
	callByExternalSQL = selectCalls + ` WHERE space = ? AND run_id = ? AND external_id = ?`
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

func (x rows) Call(id string) (calls.Call, error) {
	return x.call(callSQL, "There is no call "+id+".", id)
}

func (x rows) CallByExternalID(space, runID, externalID string) (calls.Call, error) {
	return x.call(callByExternalSQL, "Run "+runID+" has no call "+externalID+".", space, runID, externalID)
}

func (x rows) call(sql, missing string, args ...any) (c calls.Call, err error) {
	found, err := x.h.queryRow(sql, args, func(r row) (err error) {
		c, err = scanCall(r)
		return err
	})
	if err == nil && !found {
		err = decision.ErrNotFound.Say("%s", missing)
	}
	return c, err
}

func scanCall(r row) (calls.Call, error) {
	meta, err := scanMetadata(r.bytes(10))
	c := calls.Call{
		ID: r.str(0), Space: r.str(1), RunID: r.str(2), OwnRun: r.bool(3), ExternalID: r.str(4), Tool: r.str(5), SpecDigest: r.str(6),
		Args: r.bytes(7), ArgsDigest: r.str(8), Principal: r.str(9), Metadata: meta, ContinueBy: calls.ContinueBy(r.str(11)), NextTryAt: r.time(12),
		Status: calls.Status(r.str(13)), Kind: calls.Kind(r.str(14)), Message: r.str(15), Result: r.bytes(16), EffectiveDigest: r.str(17),
		ApprovalID: r.str(18), ApprovalN: r.int(19), Attempts: r.int(20), Fence: r.int(21), LeaseUntil: r.time(22), LeaseOwner: r.str(23), Epoch: r.int(24),
		CreatedAt: r.time(25), EndedAt: r.time(26), Version: r.int(27), Recovery: calls.Recovery(r.str(30)),
		StepID: r.str(31),
	}
	if err == nil && !r.null(31) && !c.Hosted() { // altered: a call without a step has none
		err = fmt.Errorf("the step of call %s is empty as stored", c.ID)
	}
	if !c.Hosted() {
		c.Head = event.Head{Stream: c.Stream(), Seq: r.int(28), Hash: r.bytes(29)}
	}
	return c, err
}

func (x rows) InsertCall(c calls.Call) (bool, error) {
	metadata, err := metadataJSON(c.Metadata)
	if err != nil {
		return false, err
	}
	_, err = x.h.exec(insertCallSQL,
		c.ID, c.Space, c.RunID, c.OwnRun, text(c.ExternalID), c.Tool, c.SpecDigest, c.Args, c.ArgsDigest, c.Principal, metadata, string(c.ContinueBy), c.NextTryAt,
		string(c.Status), string(c.Kind), c.Message, c.Result, c.EffectiveDigest, text(c.ApprovalID), c.ApprovalN, c.Attempts, c.Fence, c.LeaseUntil, c.LeaseOwner, c.Epoch,
		c.CreatedAt, c.EndedAt, c.Version, c.Head.Seq, c.Head.Hash, string(c.Recovery), text(c.StepID))
	if isUnique(err) {
		return false, nil
	}
	return err == nil, err
}

// LockCall has nothing to do: the transaction holds the only lock there is.
func (x rows) LockCall(string) error { return nil }

func (x rows) UpdateCall(prev, c calls.Call, whole bool) (bool, error) {
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
	return u.run(x)
}

func (x rows) LeaseEnded(space string, now time.Time, after string, limit int) ([]calls.Call, error) {
	return x.calls(leaseEndedSQL, space, now, x.Epoch(), after, pageSize(limit, 100, 1000))
}

func (x rows) Continuable(space string, now time.Time, after string, limit int) ([]calls.Call, error) {
	return x.calls(continuableSQL, space, after, space, after, now, pageSize(limit, 100, 1000))
}

// Calls lists newest first: ids sort by time.
func (x rows) Calls(q calls.Query) ([]calls.Call, error) {
	w := where{}
	w.and(`space = ?`, q.Space)
	w.and(`status = ?`, string(q.Status), q.Status != "")
	w.and(`run_id = ?`, q.RunID, q.RunID != "")
	w.and(`id < ?`, q.After, q.After != "")
	w.prefix(`id`, q.Prefix)
	return x.calls(selectCalls+w.sql+` ORDER BY id DESC LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500))...)
}

func (x rows) calls(sql string, args ...any) ([]calls.Call, error) {
	var cs []calls.Call
	err := x.h.query(sql, args, func(r row) error {
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

func (x rows) Attempt(callID string, n int64) (a calls.Attempt, err error) {
	found, err := x.h.queryRow(attemptSQL, []any{callID, n}, func(r row) error {
		a = scanAttempt(r)
		return nil
	})
	if err == nil && !found {
		err = decision.ErrNotFound.Say("Call %s has no attempt %d.", callID, n)
	}
	return a, err
}

func (x rows) Attempts(callID string) ([]calls.Attempt, error) {
	var as []calls.Attempt
	err := x.h.query(attemptsSQL, []any{callID}, func(r row) error {
		as = append(as, scanAttempt(r))
		return nil
	})
	return as, err
}

func scanAttempt(r row) calls.Attempt {
	return calls.Attempt{
		CallID: r.str(0), N: r.int(1), Fence: r.int(2), Epoch: r.int(3), ApprovalID: r.str(4), GrantDigest: r.str(5), EffectiveDigest: r.str(6),
		Args: r.bytes(7), Owner: r.str(8), Recovery: calls.Recovery(r.str(9)), StartedAt: r.time(10), EndedAt: r.time(11),
		Outcome: calls.Status(r.str(12)), Kind: calls.Kind(r.str(13)), Message: r.str(14), Late: r.bool(15),
	}
}

func (x rows) InsertAttempt(a calls.Attempt) error {
	_, err := x.h.exec(insertAttemptSQL, a.CallID, a.N, a.Fence, a.Epoch, text(a.ApprovalID), a.GrantDigest, a.EffectiveDigest, a.Args, a.Owner,
		string(a.Recovery), a.StartedAt, a.EndedAt, text(string(a.Outcome)), string(a.Kind), a.Message, a.Late)
	return err
}

func (x rows) UpdateAttempt(prev, a calls.Attempt) (bool, error) {
	return x.one(updateAttemptSQL, a.EndedAt, text(string(a.Outcome)), string(a.Kind), a.Message, a.Late,
		prev.CallID, prev.N, prev.Fence, prev.Epoch, text(string(prev.Outcome)))
}

const (
	guardSQL    = `SELECT n, since FROM guard WHERE space = ? AND run_id = ? AND name = ? AND key = ?`
	putGuardSQL = `INSERT INTO guard(space, run_id, name, key, n, since) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (space, run_id, name, key) DO UPDATE SET n = excluded.n, since = excluded.since`
	dropGuardSQL = `DELETE FROM guard WHERE space = ? AND run_id = ? AND name = ? AND key = ? AND n <= ?`
)

func (x rows) GuardCount(g calls.Guard) (calls.Guard, error) {
	_, err := x.h.queryRow(guardSQL, []any{g.Space, g.RunID, g.Name, g.Key}, func(r row) error {
		g.N, g.Since = r.int(0), r.time(1)
		return nil
	})
	return g, err
}

func (x rows) PutGuard(g calls.Guard) error {
	_, err := x.h.exec(putGuardSQL, g.Space, g.RunID, g.Name, g.Key, g.N, g.Since)
	return err
}

func (x rows) DropGuard(g calls.Guard) error {
	_, err := x.h.exec(dropGuardSQL, g.Space, g.RunID, g.Name, g.Key, g.N)
	return err
}

// A closed one stands for ever: what it was given to has ended otherwise.
const countGrantsSQL = `SELECT owner_kind, count(*) FROM decision WHERE space = ? AND status = 'approved' AND open = 1 GROUP BY owner_kind`

func (x rows) CountGrants(space string) (ofCalls, ofRuns int64, err error) {
	err = x.h.query(countGrantsSQL, []any{space}, func(r row) error {
		switch decision.OwnerKind(r.str(0)) {
		case decision.OwnerCall:
			ofCalls = r.int(1)
		case decision.OwnerRun:
			ofRuns = r.int(1)
		}
		return nil
	})
	return ofCalls, ofRuns, err
}

const (
	runIsThereSQL = `SELECT 1 FROM run WHERE id = ? AND space = ?`
	firstUserSQL  = `SELECT principal FROM call WHERE space = ? AND run_id = ? AND step_id IS NULL ORDER BY id LIMIT 1`
)

func (x rows) RunUse(space, runID string) (u calls.RunUse, err error) {
	if u.Run, err = x.h.queryRow(runIsThereSQL, []any{runID, space}, func(row) error { return nil }); err != nil {
		return u, err
	}
	u.Calls, err = x.h.queryRow(firstUserSQL, []any{space, runID}, func(r row) error {
		u.Principal = r.str(0)
		return nil
	})
	return u, err
}

const (
	idempotentSQL       = `SELECT request, call_id, attempt, at FROM idempotency WHERE space = ? AND principal = ? AND route = ? AND key = ? AND at >= ?`
	insertIdempotentSQL = `INSERT INTO idempotency(space, principal, route, key, request, call_id, attempt, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (space, principal, route, key) DO UPDATE SET request = excluded.request, call_id = excluded.call_id, attempt = excluded.attempt,
			at = excluded.at
		WHERE at < ?`
	oldKeysSQL = `SELECT space, principal, route, key, request, call_id, attempt, at FROM idempotency WHERE at < ? ORDER BY at LIMIT +?`
	dropKeySQL = `DELETE FROM idempotency WHERE space = ? AND principal = ? AND route = ? AND key = ? AND at = ?`
)

func (x rows) IdempotentCall(k calls.IdempotencyKey) (calls.IdempotencyKey, error) {
	found, err := x.h.queryRow(idempotentSQL, []any{k.Space, k.Principal, k.Route, k.Key, x.Now().Add(-calls.KeptKeys)}, func(r row) error {
		k.Request, k.CallID, k.Attempt, k.At = r.str(0), r.str(1), r.int(2), r.time(3)
		return nil
	})
	if err == nil && !found {
		err = decision.ErrNotFound
	}
	return k, err
}

func (x rows) InsertIdempotent(k calls.IdempotencyKey) (bool, error) {
	return x.one(insertIdempotentSQL, k.Space, k.Principal, k.Route, k.Key, k.Request, k.CallID, k.Attempt, k.At, k.At.Add(-calls.KeptKeys))
}

func (x rows) OldKeys(before time.Time, limit int) (ks []calls.IdempotencyKey, err error) {
	err = x.h.query(oldKeysSQL, []any{before, pageSize(limit, 100, 1000)}, func(r row) error {
		ks = append(ks, calls.IdempotencyKey{
			Space: r.str(0), Principal: r.str(1), Route: r.str(2), Key: r.str(3), Request: r.str(4), CallID: r.str(5), Attempt: r.int(6), At: r.time(7),
		})
		return nil
	})
	return ks, err
}

func (x rows) DropKey(k calls.IdempotencyKey) (bool, error) {
	return x.one(dropKeySQL, k.Space, k.Principal, k.Route, k.Key, k.At)
}
