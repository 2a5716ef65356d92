package sqlrows

import (
	"encoding/json"
	"fmt"
	"time"

	calls "github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/store"
)

const (
	runColumns = `id, space, goal, limits, agent, flow, flow_version, flow_digest, principal, metadata, continue_by, next_try_at,
		status, reason, detail, result, step_count, failures, repeats, last_digest, model_calls, tokens, cost, active, active_since,
		approval_id, approval_n, fence, lease_until, lease_owner, epoch, created_at, finished_at, version, head_seq, head`
	insertRunSQL = `INSERT INTO run(` + runColumns + `)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	stepColumns = `id, run_id, n, status, kind, tool, args, args_digest, said, raw, node, ruling, observation, message,
		call_id, approval_id, started_at, finished_at`
	insertStepSQL = `INSERT INTO step(` + stepColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	renewRunSQL   = `UPDATE run SET lease_until = ? WHERE id = ? AND fence = ? AND status = 'RUNNING' AND lease_until >= ?`
)

// runFields and stepFields are how many columns a run and a step have in a row.
const (
	runFields  = 36
	stepFields = 18
)

var (
	selectRuns = `SELECT ` + of(`run`, runColumns) + `, ` + of(`step`, stepColumns) + `, call.result FROM run
		LEFT JOIN step ON step.run_id = run.id AND step.n = run.step_count
		LEFT JOIN call ON call.id = step.call_id`
	runSQL     = selectRuns + ` WHERE run.id = ?`
	lockRunSQL = `SELECT 1 FROM run WHERE id = ?` + forChange
	adriftSQL  = selectRuns + ` WHERE run.status = 'RUNNING' AND run.space = ? AND (run.lease_until IS NULL OR run.lease_until < ? OR run.epoch < ?)
		AND run.id > ? ORDER BY run.id LIMIT +?`
	// Few runs are at work, granted, or wait for a word that came in another way; their
	// indexes find them among any number of others.
	continuableRunsSQL = selectRuns + ` WHERE run.id IN (
			SELECT id FROM run WHERE status = 'RUNNING' AND space = ? AND id > ?
			UNION SELECT owner_id FROM decision WHERE status = 'approved' AND space = ? AND owner_kind = 'run' AND owner_id > ?
			UNION SELECT owner_id FROM decision WHERE kind = 'interrupted_side_effect' AND status IN ('withdrawn', 'superseded')
				AND space = ? AND owner_kind = 'run' AND owner_id > ?)
		AND run.continue_by = 'daemon' AND run.status IN ('RUNNING', 'WAITING_FOR_APPROVAL')
		AND (run.next_try_at IS NULL OR run.next_try_at <= ?)
		AND (run.status = 'RUNNING' AND (run.lease_until IS NULL OR run.lease_until < ? OR run.epoch < ?)
			OR EXISTS (SELECT 1 FROM decision AS d WHERE d.id = run.approval_id AND (d.status = 'approved'
				OR d.status IN ('withdrawn', 'superseded') AND EXISTS (SELECT 1 FROM step AS s JOIN call AS c ON c.id = s.call_id
					WHERE s.run_id = run.id AND s.n = run.step_count AND c.status IN ('succeeded', 'failed')))))
		ORDER BY run.id LIMIT +?`
	// All steps of the run are walked through, without their arguments and results: what is
	// looked at of each stands before those.
	stepCallSQL = `SELECT coalesce(call_id, '') FROM step WHERE run_id = ? AND id = ?`

	stepsSQL = `SELECT ` + of(`step`, stepColumns) + `, call.result FROM step LEFT JOIN call ON call.id = step.call_id
		WHERE step.run_id = ? AND step.n > ? ORDER BY step.n LIMIT +?`
)

// Run reads what belongs to a run by statements that begin once it is locked.
func (x Rows) Run(id string) (r run.Run, err error) {
	if err := x.LockRun(id); err != nil {
		return r, err
	}
	found, err := x.queryRow(runSQL, []any{id}, func(row Row) (err error) {
		r, err = scanRun(row)
		return err
	})
	if err == nil && !found {
		err = decision.ErrNotFound.Say("There is no run %s.", id)
	}
	return r, err
}

func (x Rows) LockRun(id string) error { return x.Lock(nil, lockRunSQL, id) }

// Runs lists newest first: ids sort by time.
func (x Rows) Runs(q run.Query) ([]run.Run, error) {
	w := where{}
	w.and(`run.space = ?`, q.Space)
	w.and(`run.status = ?`, string(q.Status), q.Status != "")
	w.and(`run.id < ?`, q.After, q.After != "")
	w.prefix(`run.id`, q.Prefix)
	return x.runs(selectRuns+w.sql+` ORDER BY run.id DESC LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500))...)
}

func (x Rows) ContinuableRuns(space string, now time.Time, after string, limit int) ([]run.Run, error) {
	return x.runs(continuableRunsSQL, space, after, space, after, space, after, now, now, x.Epoch(), pageSize(limit, 100, 1000))
}

func (x Rows) Adrift(space string, now time.Time, after string, limit int) ([]run.Run, error) {
	return x.runs(adriftSQL, space, now, x.Epoch(), after, pageSize(limit, 100, 1000))
}

func (x Rows) runs(sql string, args ...any) ([]run.Run, error) {
	var rs []run.Run
	err := x.Query(sql, args, func(row Row) error {
		r, err := scanRun(row)
		rs = append(rs, r)
		return err
	})
	return rs, err
}

func scanRun(r Row) (run.Run, error) {
	meta, err := scanMetadata(r.Bytes(9))
	n := run.Run{
		ID: r.Str(0), Space: r.Str(1), Goal: r.Str(2),
		Flow:      run.FlowRef{Name: r.Str(5), Version: r.Str(6), Digest: r.Str(7)},
		Principal: r.Str(8), Metadata: meta, ContinueBy: calls.ContinueBy(r.Str(10)), NextTryAt: r.Time(11),
		Status: run.Status(r.Str(12)), Reason: run.Reason(r.Str(13)), Detail: r.Str(14), Result: string(r.Bytes(15)),
		StepCount: r.Int(16), Failures: r.Int(17), Repeats: r.Int(18), LastDigest: r.Str(19),
		Usage:  run.Usage{ModelCalls: r.Int(20), Tokens: r.Int(21), Cost: run.Cost(r.Int(22))},
		Active: time.Duration(r.Int(23)) * time.Microsecond, ActiveSince: r.Time(24),
		ApprovalID: r.Str(25), ApprovalN: r.Int(26), Fence: r.Int(27), LeaseUntil: r.Time(28), LeaseOwner: r.Str(29), Epoch: r.Int(30),
		CreatedAt: r.Time(31), FinishedAt: r.Time(32), Version: r.Int(33),
	}
	n.Head = event.Head{Stream: n.Stream(), Seq: r.Int(34), Hash: r.Bytes(35)}
	if err == nil {
		err = readJSON("limits", r.Bytes(3), &n.Limits)
	}
	if agent := r.Bytes(4); err == nil && agent != nil {
		err = readJSON("agent", agent, &n.Agent)
	}
	if err == nil && !r.Null(runFields) {
		n.Current, err = scanStep(r, runFields)
	}
	return n, err
}

func scanStep(r Row, at int) (run.Step, error) {
	s := run.Step{
		ID: r.Str(at), RunID: r.Str(at + 1), Index: r.Int(at + 2), Status: run.StepStatus(r.Str(at + 3)),
		Kind: run.ProposalKind(r.Str(at + 4)), Tool: r.Str(at + 5), Args: string(r.Bytes(at + 6)), ArgsDigest: r.Str(at + 7),
		Said: r.Str(at + 8), Raw: string(r.Bytes(at + 9)), Node: r.Str(at + 10),
		Observation: run.ObservationKind(r.Str(at + 12)), Message: r.Str(at + 13),
		CallID: r.Str(at + 14), ApprovalID: r.Str(at + 15), StartedAt: r.Time(at + 16), FinishedAt: r.Time(at + 17),
		Result: string(r.Bytes(at + stepFields)),
	}
	ruling := r.Bytes(at + 11)
	if ruling == nil {
		return s, nil
	}
	return s, readJSON("ruling", ruling, &s.Ruling)
}

func readJSON(what string, b []byte, to any) error {
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("the %s of a run cannot be read as stored: %w", what, err)
	}
	return nil
}

func (x Rows) InsertRun(r run.Run) error {
	metadata, err := metadataJSON(r.Metadata)
	if err != nil {
		return err
	}
	limits, err := json.Marshal(r.Limits)
	if err != nil {
		return err
	}
	var agent []byte
	if r.Agent.Name != "" || r.Agent.Argv != nil {
		if agent, err = json.Marshal(r.Agent); err != nil {
			return err
		}
	}
	return x.Write(Write{SQL: insertRunSQL, Taken: func() error { return takenRun(r) }, Args: []any{
		r.ID, r.Space, r.Goal, limits, agent, r.Flow.Name, r.Flow.Version, r.Flow.Digest, r.Principal, metadata,
		string(r.ContinueBy), r.NextTryAt, string(r.Status), string(r.Reason), r.Detail, blob(r.Result), r.StepCount, r.Failures, r.Repeats, r.LastDigest,
		r.Usage.ModelCalls, r.Usage.Tokens, int64(r.Usage.Cost), micros(r.Active), r.ActiveSince, text(r.ApprovalID), r.ApprovalN, r.Fence, r.LeaseUntil,
		r.LeaseOwner, r.Epoch, r.CreatedAt, r.FinishedAt, r.Version, r.Head.Seq, r.Head.Hash,
	}})
}

func takenRun(r run.Run) error {
	return run.ErrRunState.Say("There is a run %s already.", r.ID).Hint("Choose another id, or resume it: placet run resume %s.", r.ID)
}

func (x Rows) UpdateRun(prev, r run.Run) error {
	u := newUpdate(`run`)
	u.time(`next_try_at`, prev.NextTryAt, r.NextTryAt)
	u.str(`status`, string(prev.Status), string(r.Status))
	u.str(`reason`, string(prev.Reason), string(r.Reason))
	u.str(`detail`, prev.Detail, r.Detail)
	if prev.Result != r.Result {
		u.set(`result`, blob(r.Result))
	}
	u.int(`step_count`, prev.StepCount, r.StepCount)
	u.int(`failures`, prev.Failures, r.Failures)
	u.int(`repeats`, prev.Repeats, r.Repeats)
	u.str(`last_digest`, prev.LastDigest, r.LastDigest)
	u.int(`model_calls`, prev.Usage.ModelCalls, r.Usage.ModelCalls)
	u.int(`tokens`, prev.Usage.Tokens, r.Usage.Tokens)
	u.int(`cost`, int64(prev.Usage.Cost), int64(r.Usage.Cost))
	u.int(`active`, micros(prev.Active), micros(r.Active))
	u.time(`active_since`, prev.ActiveSince, r.ActiveSince)
	u.text(`approval_id`, prev.ApprovalID, r.ApprovalID)
	u.int(`approval_n`, prev.ApprovalN, r.ApprovalN)
	u.int(`fence`, prev.Fence, r.Fence)
	u.time(`lease_until`, prev.LeaseUntil, r.LeaseUntil)
	u.str(`lease_owner`, prev.LeaseOwner, r.LeaseOwner)
	u.int(`epoch`, prev.Epoch, r.Epoch)
	u.time(`finished_at`, prev.FinishedAt, r.FinishedAt)
	u.set(`head_seq`, r.Head.Seq) // prev may show the head of events that are not in the row yet
	u.set(`head`, r.Head.Hash)
	u.where(`id = ? AND version = ? AND status = ? AND fence = ?`, prev.ID, prev.Version, string(prev.Status), prev.Fence)
	return u.run(x, func() error { return store.MovedRun(prev) })
}

func (x Rows) RenewRun(id string, fence int64, until time.Time) (bool, error) {
	return x.one(renewRunSQL, until, id, fence, x.Now())
}

func (x Rows) Steps(runID string, after int64, limit int) ([]run.Step, error) {
	var ss []run.Step
	err := x.Query(stepsSQL, []any{runID, after, pageSize(limit, 100, 1000)}, func(r Row) error {
		s, err := scanStep(r, 0)
		ss = append(ss, s)
		return err
	})
	return ss, err
}

func (x Rows) StepCall(runID, stepID string) (callID string, err error) {
	_, err = x.queryRow(stepCallSQL, []any{runID, stepID}, func(r Row) error { callID = r.Str(0); return nil })
	return callID, err
}

func (x Rows) InsertStep(s run.Step) error {
	ruling, err := rulingJSON(s.Ruling)
	if err != nil {
		return err
	}
	return x.write(insertStepSQL, s.ID, s.RunID, s.Index, string(s.Status), string(s.Kind), s.Tool, blob(s.Args), s.ArgsDigest, s.Said, blob(s.Raw), s.Node,
		ruling, string(s.Observation), s.Message, text(s.CallID), text(s.ApprovalID), s.StartedAt, s.FinishedAt)
}

func (x Rows) UpdateStep(prev, s run.Step) error {
	ruling, err := rulingJSON(s.Ruling)
	if err != nil {
		return err
	}
	u := newUpdate(`step`)
	u.str(`status`, string(prev.Status), string(s.Status))
	u.str(`kind`, string(prev.Kind), string(s.Kind))
	u.str(`tool`, prev.Tool, s.Tool)
	if prev.Args != s.Args {
		u.set(`args`, blob(s.Args))
	}
	u.str(`args_digest`, prev.ArgsDigest, s.ArgsDigest)
	u.str(`said`, prev.Said, s.Said)
	if prev.Raw != s.Raw {
		u.set(`raw`, blob(s.Raw))
	}
	u.str(`node`, prev.Node, s.Node)
	if prev.Ruling != s.Ruling {
		u.set(`ruling`, ruling)
	}
	u.str(`observation`, string(prev.Observation), string(s.Observation))
	u.str(`message`, prev.Message, s.Message)
	u.text(`call_id`, prev.CallID, s.CallID)
	u.text(`approval_id`, prev.ApprovalID, s.ApprovalID)
	u.time(`finished_at`, prev.FinishedAt, s.FinishedAt)
	u.where(`run_id = ? AND n = ? AND id = ? AND status = ?`, prev.RunID, prev.Index, prev.ID, string(prev.Status))
	return u.run(x, func() error { return store.MovedStep(prev) })
}

func rulingJSON(r run.Ruling) ([]byte, error) {
	if r == (run.Ruling{}) {
		return nil, nil
	}
	return json.Marshal(r)
}

// blob is bytes for a column in which nothing is NULL.
func blob(s string) any {
	if s == "" {
		return nil
	}
	return []byte(s)
}
