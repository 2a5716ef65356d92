package sqlrows

import (
	"encoding/json"
	"time"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/internal/id"
)

const (
	decisionColumns = `id, space, type, owner_kind, owner_id, n, kind, capability, presentation, request, digest, spec_digest,
		args_digest, spent_digest, reason, forbid_edits, run_id, call_id, step_id, node, tool, requested_by, metadata, created_at,
		expires_at, grant_ttl, status, open, needs, choice, decided_by, decided_principal, decided_at, verified, note, edited_args,
		edited_digest, effective_digest, grant_expires_at, epoch, settled_at, consumed_at, consumed_by, version,
		prompt, options, form, idempotency_key, input, withdrawn_by, withdrawn_principal`
	// askedColumns are what a decision has when it is asked; the others begin with their defaults.
	askedColumns = `id, space, type, owner_kind, owner_id, n, kind, capability, presentation, request, digest, spec_digest,
		args_digest, spent_digest, reason, forbid_edits, run_id, call_id, step_id, node, tool, requested_by, metadata, created_at,
		expires_at, grant_ttl, needs, epoch, due_at, prompt, options, form, idempotency_key`
	insertDecisionSQL = `INSERT INTO decision(` + askedColumns + `)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	// seenDecision leaves out those of jobs that are being deleted.
	seenDecision = `(owner_kind <> 'job' OR NOT EXISTS (SELECT 1 FROM job WHERE job.id = decision.owner_id AND job.cleaned_at IS NOT NULL))`

	insertVoteSQL = `INSERT INTO vote(decision_id, principal, by, choice, input, shown, edited_digest, note, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

var (
	selectDecisions  = `SELECT ` + Selected(decisionColumns) + ` FROM decision`
	decisionSQL      = selectDecisions + ` WHERE id = ? AND ` + seenDecision
	decisionByKeySQL = selectDecisions + ` WHERE owner_kind = ? AND owner_id = ? AND idempotency_key = ? AND ` + seenDecision
	dueSQL           = selectDecisions + ` WHERE due_at < ? ORDER BY due_at LIMIT +? OFFSET +?`

	// A decision's owner never changes: it is locked by what the decision says of it. A
	// condition on its kind would let PostgreSQL look through all of that kind.
	lockOwningCallSQL = selectCalls + ` WHERE id = (SELECT CASE WHEN owner_kind = 'call' THEN owner_id END FROM decision WHERE id = ?)` + forChange
	lockOwningRunSQL  = `SELECT 1 FROM run WHERE id = (SELECT CASE WHEN owner_kind = 'run' THEN owner_id END FROM decision WHERE id = ?)` + forChange
	lockOwningJobSQL  = `SELECT 1 FROM job WHERE id = (SELECT CASE WHEN owner_kind = 'job' THEN owner_id END FROM decision WHERE id = ?)` + forChange
)

func (x Rows) Decision(id string) (decision.Decision, error) {
	return x.decision("There is no approval or question "+id+".", decisionSQL, id)
}

func (x Rows) DecisionByKey(owner decision.Ref, key string) (decision.Decision, error) {
	return x.decision("The key is not in use.", decisionByKeySQL, string(owner.Kind), owner.ID, key)
}

func (x Rows) decision(missing, sql string, args ...any) (d decision.Decision, err error) {
	found, err := x.queryRow(sql, args, func(r Row) (err error) {
		d, err = scanDecision(r)
		return err
	})
	if err == nil && !found {
		err = decision.ErrNotFound.Say("%s", missing)
	}
	return d, err
}

func (x Rows) LockDecision(id string) (decision.Decision, error) {
	if err := x.lockOwner(id); err != nil {
		return decision.Decision{}, err
	}
	return x.Decision(id)
}

// lockOwner locks what waits for a decision: a job for a question, a call or a run for
// an approval.
func (x Rows) lockOwner(decisionID string) error {
	if id.Has(id.Question, decisionID) {
		return x.Lock(nil, lockOwningJobSQL, decisionID)
	}
	if err := x.Lock(x.keepCall, lockOwningCallSQL, decisionID); err != nil {
		return err
	}
	if err := x.Lock(nil, lockOwningRunSQL, decisionID); err != nil || id.Has(id.Approval, decisionID) {
		return err
	}
	return x.Lock(nil, lockOwningJobSQL, decisionID)
}

// keepCall keeps the call that was locked for whoever asks for it next.
func (x Rows) keepCall(r Row) (err error) {
	x.ahead.call, err = scanCall(r)
	return err
}

func scanDecision(r Row) (decision.Decision, error) {
	meta, err := scanMetadata(r.Bytes(22))
	var options []string
	if o := r.Bytes(45); err == nil && o != nil {
		err = json.Unmarshal(o, &options)
	}
	return decision.Decision{
		ID: r.Str(0), Space: r.Str(1), Type: decision.Type(r.Str(2)),
		Owner: decision.Ref{Kind: decision.OwnerKind(r.Str(3)), ID: r.Str(4)}, N: r.Int(5),
		Kind: r.Str(6), Capability: r.Bytes(7), Presentation: r.Bytes(8), Request: r.Bytes(9), Digest: r.Str(10), SpecDigest: r.Str(11),
		ArgsDigest: r.Str(12), SpentDigest: r.Str(13), Reason: r.Str(14), ForbidEdits: r.Bool(15),
		RunID: r.Str(16), CallID: r.Str(17), StepID: r.Str(18), Node: r.Str(19), Tool: r.Str(20),
		RequestedBy: r.Str(21), Metadata: meta, CreatedAt: r.Time(23), ExpiresAt: r.Time(24),
		GrantTTL: time.Duration(r.Int(25)) * time.Microsecond,
		Status:   decision.Status(r.Str(26)), Open: r.Bool(27), Needs: int(r.Int(28)), Choice: decision.Choice(r.Str(29)),
		DecidedBy: r.Str(30), DecidedPrincipal: r.Str(31), DecidedAt: r.Time(32), Verified: r.Bool(33), Note: r.Str(34),
		EditedArgs: r.Bytes(35), EditedDigest: r.Str(36), EffectiveDigest: r.Str(37), GrantExpiresAt: r.Time(38), Epoch: r.Int(39),
		SettledAt: r.Time(40), ConsumedAt: r.Time(41), ConsumedBy: r.Int(42), Version: r.Int(43),
		Prompt: string(r.Bytes(44)), Options: options, Form: r.Bytes(46), IdempotencyKey: r.Str(47), Input: r.Bytes(48),
		WithdrawnBy: r.Str(49), WithdrawnPrincipal: r.Str(50),
	}, err
}

// InsertDecision writes what was asked and then, where d comes decided, the rest.
func (x Rows) InsertDecision(d decision.Decision) error {
	metadata, err := metadataJSON(d.Metadata)
	if err != nil {
		return err
	}
	var options []byte
	if d.Options != nil {
		if options, err = json.Marshal(d.Options); err != nil {
			return err
		}
	}
	err = x.write(insertDecisionSQL,
		d.ID, d.Space, string(d.Type), string(d.Owner.Kind), d.Owner.ID, d.N, d.Kind, d.Capability, d.Presentation, d.Request, d.Digest, d.SpecDigest,
		d.ArgsDigest, d.SpentDigest, d.Reason, d.ForbidEdits, d.RunID, d.CallID, d.StepID, d.Node, d.Tool, d.RequestedBy, metadata, d.CreatedAt,
		d.ExpiresAt, micros(d.GrantTTL), d.Needs, d.Epoch, d.ExpiresAt, blob(d.Prompt), options, d.Form, text(d.IdempotencyKey))
	if err != nil || d.Status == decision.Pending && d.Open {
		return err
	}
	return x.UpdateDecision(asAsked(d), d, false)
}

// asAsked is d as it was before anybody answered.
func asAsked(d decision.Decision) decision.Decision {
	d.Status, d.Open, d.Choice, d.Version = decision.Pending, true, "", 1
	d.DecidedBy, d.DecidedPrincipal, d.DecidedAt, d.Verified, d.Note = "", "", time.Time{}, false, ""
	d.Input, d.EditedArgs, d.EditedDigest, d.EffectiveDigest = nil, nil, "", ""
	d.GrantExpiresAt, d.SettledAt, d.ConsumedAt, d.ConsumedBy = time.Time{}, time.Time{}, time.Time{}, 0
	d.WithdrawnBy, d.WithdrawnPrincipal = "", ""
	return d
}

func (x Rows) UpdateDecision(prev, d decision.Decision, whole bool) error {
	u := newUpdate(`decision`)
	u.str(`status`, string(prev.Status), string(d.Status))
	u.bool(`open`, prev.Open, d.Open)
	u.str(`choice`, string(prev.Choice), string(d.Choice))
	u.str(`decided_by`, prev.DecidedBy, d.DecidedBy)
	u.str(`decided_principal`, prev.DecidedPrincipal, d.DecidedPrincipal)
	u.time(`decided_at`, prev.DecidedAt, d.DecidedAt)
	u.bool(`verified`, prev.Verified, d.Verified)
	u.str(`note`, prev.Note, d.Note)
	u.bytes(`input`, prev.Input, d.Input)
	u.bytes(`edited_args`, prev.EditedArgs, d.EditedArgs)
	u.str(`edited_digest`, prev.EditedDigest, d.EditedDigest)
	u.str(`effective_digest`, prev.EffectiveDigest, d.EffectiveDigest)
	u.time(`grant_expires_at`, prev.GrantExpiresAt, d.GrantExpiresAt)
	u.int(`epoch`, prev.Epoch, d.Epoch)
	u.time(`settled_at`, prev.SettledAt, d.SettledAt)
	u.time(`consumed_at`, prev.ConsumedAt, d.ConsumedAt)
	u.int(`consumed_by`, prev.ConsumedBy, d.ConsumedBy)
	u.str(`withdrawn_by`, prev.WithdrawnBy, d.WithdrawnBy)
	u.str(`withdrawn_principal`, prev.WithdrawnPrincipal, d.WithdrawnPrincipal)
	u.time(`due_at`, dueAt(prev), dueAt(d))
	u.where(`id = ? AND status = ? AND digest = ? AND version = ?`, prev.ID, string(prev.Status), prev.Digest, prev.Version)
	if whole {
		u.same(prev)
	}
	return u.run(x, func() error { return decision.Moved("%s", prev.ID) })
}

// same holds the rest of what decision.Decision.Same compares against the row.
func (u *update) same(d decision.Decision) {
	u.and(`choice`, string(d.Choice))
	u.and(`epoch`, d.Epoch)
	u.and(`kind`, d.Kind)
	u.and(`args_digest`, d.ArgsDigest)
	u.and(`spent_digest`, d.SpentDigest)
	u.and(`edited_digest`, d.EditedDigest)
	u.and(`effective_digest`, d.EffectiveDigest)
	u.and(`owner_kind`, string(d.Owner.Kind))
	u.and(`owner_id`, d.Owner.ID)
	u.and(`request`, d.Request)
	u.and(`capability`, d.Capability)
	u.and(`presentation`, d.Presentation)
	u.and(`edited_args`, d.EditedArgs)
	u.and(`input`, d.Input)
}

func (x Rows) InsertVote(v decision.Vote) error {
	return x.write(insertVoteSQL, v.DecisionID, v.Principal, v.By, string(v.Choice), v.Input, v.Shown, v.EditedDigest, v.Note, v.At)
}

// micros is a duration as it is stored: rounded up, since 0 stands for no limit.
func micros(d time.Duration) int64 {
	n := int64(d / time.Microsecond)
	if d > time.Duration(n)*time.Microsecond {
		n++
	}
	return n
}

// dueAt is when a decision has to be expired, while it still can be.
func dueAt(d decision.Decision) time.Time {
	switch {
	case !d.Open:
	case d.Status == decision.Pending:
		return d.ExpiresAt
	case d.Status == decision.Approved:
		return d.GrantExpiresAt
	}
	return time.Time{}
}

func (x Rows) Due(now time.Time, skip, limit int) ([]decision.Decision, error) {
	return x.decisions(dueSQL, now, pageSize(limit, 100, 1000), skip)
}

// Decisions lists newest first: ids sort by time.
func (x Rows) Decisions(q decision.Query) ([]decision.Decision, error) {
	sql, args := decisionsSQL(q)
	return x.decisions(sql, args...)
}

func decisionsSQL(q decision.Query) (string, []any) {
	w := where{}
	if q.CallID != "" {
		w.and(`owner_kind = 'call' AND owner_id = ?`, q.CallID)
	}
	if q.JobID != "" {
		w.and(`owner_kind = 'job' AND owner_id = ?`, q.JobID)
	}
	if q.Owner.ID != "" {
		w.and(`owner_kind = ? AND owner_id = ?`, string(q.Owner.Kind), q.Owner.ID)
	}
	w.and(`space = ?`, q.Space)
	w.and(`type = ?`, string(q.Type), q.Type != "")
	if q.Status == decision.Pending {
		w.and(`status = 'pending'`) // spelt out, so that the index over pending ones serves
	} else {
		w.and(`status = ?`, string(q.Status), q.Status != "")
	}
	w.and(`open = 1`, nil, q.Open)
	w.and(seenDecision)
	w.and(`run_id = ?`, q.RunID, q.RunID != "")
	w.and(`step_id = ?`, q.StepID, q.StepID != "")
	w.and(`id < ?`, q.After, q.After != "")
	w.prefix(`id`, q.Prefix)
	return selectDecisions + w.sql + ` ORDER BY id DESC LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500))
}

// SettledDecisions walks the index of what does not wait any more, from its end.
func (x Rows) SettledDecisions(q decision.Settled) ([]decision.Decision, error) {
	sql, args := settledDecisionsSQL(q)
	return x.decisions(sql, args...)
}

func settledDecisionsSQL(q decision.Settled) (string, []any) {
	w := where{}
	w.and(`space = ?`, q.Space)
	w.and(`status <> 'pending'`)
	if !q.After.IsZero() {
		at := q.After.At.UnixMicro()
		w.and(`settled_at <= ?`, at) // spelt out, so that the index is walked from there
		w.and(`(settled_at < ? OR id < ?)`, at, q.After.ID)
	}
	w.and(seenDecision)
	return selectDecisions + w.sql + ` ORDER BY settled_at DESC, id DESC LIMIT +?`, append(w.args, pageSize(q.Limit, 50, 500))
}

func (x Rows) decisions(sql string, args ...any) ([]decision.Decision, error) {
	var ds []decision.Decision
	err := x.Query(sql, args, func(r Row) error {
		d, err := scanDecision(r)
		ds = append(ds, d)
		return err
	})
	return ds, err
}
