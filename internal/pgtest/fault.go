package pgtest

// Strike tells what an armed fault did.
type Strike struct {
	// Statements are the texts of the transaction whose COMMIT was struck, that one last.
	Statements []string
	// Answer is the server's to the COMMIT, where the fault lets it be executed:
	// "COMMIT", "ROLLBACK" (the transaction had failed), or "ERROR" with the SQLSTATE.
	// Empty: the server never had the COMMIT, or went away before it answered.
	Answer string
}

// Committed says whether the server said that it committed.
func (s Strike) Committed() bool { return s.Answer == "COMMIT" }

type faultKind int

const (
	cutBefore faultKind = iota + 1
	dropCommit
	cutAfter
	cutInAnswer
)

// armed is a fault that waits for a COMMIT.
type armed struct {
	kind      faultKind
	fragments []string
	struck    chan Strike
	strike    Strike
	reported  bool
}

func (f *armed) report() {
	f.reported = true
	f.struck <- f.strike // never blocks: there is room for the one
	close(f.struck)
}

// giveUp is for a fault whose connection ended in some other way while it struck.
func (f *armed) giveUp() {
	if f != nil && !f.reported {
		close(f.struck)
	}
}

// awaited is a COMMIT that was let through to strike its answer.
type awaited struct {
	fault *armed
	asked
	held    []byte // what the client does not get, from before the answer on
	answer  int    // where the answer begins in held
	flushed bool   // the client asked for answers before the end of the group
}

// take keeps m from the client and says whether the fate of the transaction is
// known. PostgreSQL commits before it says so. The end of the group is waited for
// nevertheless, unless the client may wait for its answers before it sends that.
func (w *awaited) take(m message, a answer) (known bool) {
	mine := a.group == w.group && a.tag != "" && w.fault.strike.Answer == "" &&
		(a.pos == w.pos || m.kind() == 'E')
	if mine {
		w.fault.strike.Answer, w.answer = a.tag, len(w.held)
	}
	w.held = append(w.held, m...)
	return a.last && a.group == w.group || w.flushed && w.fault.strike.Answer != ""
}

// part is what the client gets of held before a cut in the answer: its type and
// half of its length.
func (w *awaited) part() []byte { return w.held[:w.answer+3] }

// CutBeforeCommit lets the next COMMIT not reach the server and cuts its connection:
// the transaction is rolled back. With fragments, it is the next COMMIT of a
// transaction in whose statements each of them occurs. The channel tells when it
// has struck and is closed then, or without that when the connection ends in some
// other way meanwhile, or the test.
//
// A COMMIT is whatever executes one: a simple query, possibly with others in its
// text, or a prepared statement. What came before it in one go is passed on. Faults
// that are armed together strike one COMMIT each, in order.
func (p *Proxy) CutBeforeCommit(fragments ...string) <-chan Strike {
	return p.arm(cutBefore, fragments)
}

// DropCommit lets the next COMMIT vanish and leaves its connection open, but nothing
// comes through it any more, in either direction, until [Proxy.Cut]: the server keeps
// the transaction open, with its locks, even when the client hangs up.
func (p *Proxy) DropCommit(fragments ...string) <-chan Strike { return p.arm(dropCommit, fragments) }

// CutAfterCommitSent passes the next COMMIT on, waits for the server's answer, and
// cuts the connection before any of it, or of anything else since the COMMIT,
// reaches the client.
func (p *Proxy) CutAfterCommitSent(fragments ...string) <-chan Strike {
	return p.arm(cutAfter, fragments)
}

// CutInCommitAnswer does what CutAfterCommitSent does, but the client gets the first
// bytes of the answer.
func (p *Proxy) CutInCommitAnswer(fragments ...string) <-chan Strike {
	return p.arm(cutInAnswer, fragments)
}

// Disarm takes back the faults that have not struck; their channels are closed.
func (p *Proxy) Disarm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.armed {
		close(f.struck)
	}
	p.armed = nil
}

func (p *Proxy) arm(kind faultKind, fragments []string) <-chan Strike {
	f := &armed{kind: kind, fragments: fragments, struck: make(chan Strike, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = append(p.armed, f)
	return f.struck
}

// disarm takes the first fault that is meant for a transaction of these texts, or nil.
// Call it under the lock.
func (p *Proxy) disarm(texts []string) *armed {
	for i, f := range p.armed {
		if has(texts, f.fragments) {
			p.armed = append(p.armed[:i:i], p.armed[i+1:]...)
			f.strike.Statements = texts
			return f
		}
	}
	return nil
}
