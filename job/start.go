package job

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/delivery"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/txn"
)

// Limits of what is started.
const (
	MaxName    = 200 // characters
	MaxTags    = 50
	MaxSpec    = 256 << 10 // bytes in all
	MaxTimeout = 315_360_000 * time.Second
	maxKey     = 200 // bytes
)

// Starting says what to start and for whom.
type Starting struct {
	Spec
	// IdempotencyKey makes a repeat of the same request answer with the first job.
	IdempotencyKey string
	Principal      string // who starts it, as proved; empty: not known
	// WakeTargets hear of this job's events, from its first on. At most 20.
	WakeTargets []delivery.Adding
	// OwnTrigger takes as a trigger only a job that the same principal started: any
	// other is as if it were not there.
	OwnTrigger bool
}

// Start makes a job and launches it, unless its trigger holds it up. It returns the
// job as it stands then: running, or ended already, or queued. A command that could
// not be started is a failed job and no error.
//
// Errors, and nothing was made: [ErrUsage], [ErrKeyConflict], [ErrNotFound] for the
// trigger's job, the store's.
func (s *Supervisor) Start(ctx context.Context, r Starting) (Job, error) {
	j, _, err := s.StartWaking(ctx, r)
	return j, err
}

// StartWaking is [Supervisor.Start] for whoever has to know the wake targets that were
// made with the job: this once, their secrets are told. A repeat made none.
func (s *Supervisor) StartWaking(ctx context.Context, r Starting) (Job, []delivery.Target, error) {
	if s.misuse != nil {
		return Job{}, nil, s.misuse
	}
	j, err := s.prepare(r)
	if err != nil {
		return Job{}, nil, err
	}
	targets, err := s.targets(j, r.WakeTargets)
	if err != nil {
		return Job{}, nil, err
	}
	token, done := launchingNow()
	defer done()
	j, made, err := s.create(ctx, j, targets, token, r.OwnTrigger)
	if err != nil {
		return Job{}, nil, err
	}
	if !made {
		targets = nil
	}
	if made && j.Status == Launching {
		if err := s.launch(context.WithoutCancel(ctx), j); err != nil {
			s.conf.Log.Warn("a job's launch could not be written down; it is tried again", "job", j.ID, "error", err)
		}
	}
	s.poke()
	j, err = s.stored(context.WithoutCancel(ctx), j.ID)
	return j, targets, err
}

// maxStartTargets bounds how many wake targets a job is started with.
const maxStartTargets = 20

func (s *Supervisor) targets(j Job, as []delivery.Adding) ([]delivery.Target, error) {
	if len(as) > maxStartTargets {
		return nil, ErrUsage.Say("The job has %d wake targets; the limit is %d.", len(as), maxStartTargets)
	}
	targets := make([]delivery.Target, len(as))
	for i, a := range as {
		t, err := s.conf.Channels.Target(j.Space, j.Stream(), j.Principal, a)
		if err != nil {
			return nil, err
		}
		targets[i] = t
	}
	return targets, nil
}

func (s *Supervisor) create(ctx context.Context, j Job, targets []delivery.Target, token string, own bool) (got Job, made bool, err error) {
	for range 3 {
		err = s.update(ctx, func(tx Tx) error {
			got, made = Job{}, false
			if j.IdempotencyKey != "" {
				earlier, err := tx.JobByKey(j.Space, j.Principal, j.IdempotencyKey)
				if err == nil {
					got = earlier
					return sameRequest(earlier, j)
				}
				if !errors.Is(err, ErrNotFound) {
					return err
				}
			}
			if err := s.ownTrigger(tx, j); own && err != nil { // it locks the other job too, before the clock is read
				return err
			}
			if err := s.stay(tx); err != nil {
				return err
			}
			made = true
			for i := range targets {
				if err := delivery.Add(tx, &targets[i]); err != nil {
					return err
				}
			}
			got, err = s.insert(tx, j, token)
			return err
		})
		if !errors.Is(err, decision.ErrMoved) {
			break
		}
	}
	return got, made, err
}

// ownTrigger refuses a trigger on somebody else's job as one on no job at all.
func (s *Supervisor) ownTrigger(tx Tx, j Job) error {
	t := j.Spec.Trigger
	if t.JobID == "" {
		return nil
	}
	before, err := s.job(tx, t.JobID)
	if err == nil && (j.Principal == "" || before.Principal != j.Principal) {
		err = ErrNotFound.Say("There is no job %s.", t.JobID)
	}
	return err
}

// insert writes a new job, and claims it at once where nothing holds it up: nobody
// else launches it then.
func (s *Supervisor) insert(tx Tx, j Job, token string) (Job, error) {
	now := s.clock(tx)
	ch, err := j.Step(Create{Epoch: tx.Epoch()}, now)
	if err != nil {
		return Job{}, err
	}
	due, cmd, err := s.due(tx, ch.Next)
	if err != nil {
		return Job{}, err
	}
	if due {
		cmd = Claim{Token: token, Launcher: self(), Epoch: tx.Epoch()}
	}
	if cmd != nil {
		next, err := ch.Next.Step(cmd, now)
		if err != nil {
			return Job{}, err
		}
		next.Events = append(ch.Events, next.Events...)
		ch = next
	}
	return ch.Next, tx.InsertJob(ch)
}

// due reports whether a queued job may be launched; where it never can be, cmd says so.
func (s *Supervisor) due(tx Tx, j Job) (due bool, cmd Command, err error) {
	t := j.Spec.Trigger
	switch {
	case j.Status != Queued || j.Paused:
		return false, nil, nil
	case j.Epoch < tx.Epoch():
		return false, Pause{By: event.System, Reason: wentBack(tx) + " The job may have run since; resume it to run it."}, nil
	case t.JobID == "":
		return true, nil, nil
	}
	before, err := s.job(tx, t.JobID)
	switch {
	case errors.Is(err, ErrNotFound) && j.Version > 0:
		return false, Abandon{Failure: "Job " + t.JobID + ", which it waited for, is not there any more."}, nil
	case err != nil:
		return false, nil, err
	case before.Status == t.Status:
		return true, nil, nil
	case before.Status.Terminal():
		return false, Abandon{Failure: "Job " + t.JobID + ", which it waited for, is " + string(before.Status) + ", not " + string(t.Status) + "."}, nil
	}
	return false, nil, nil
}

func sameRequest(earlier, j Job) error {
	if earlier.Request != j.Request {
		return ErrKeyConflict.Say("The idempotency key %q was used for another job, %s.", j.IdempotencyKey, earlier.ID).
			Hint("Use a new key for a new job.")
	}
	return nil
}

// prepare checks what is to be started and makes a job of it.
func (s *Supervisor) prepare(r Starting) (Job, error) {
	spec := r.Spec.clone()
	if err := checkSpec(spec); err != nil {
		return Job{}, err
	}
	if err := checkLabels(r); err != nil {
		return Job{}, err
	}
	if spec.Cwd == "" {
		spec.Cwd = home()
	}
	whole, err := json.Marshal(struct {
		Spec
		WakeTargets []delivery.Adding `json:"wake_targets,omitempty"`
	}{spec, r.WakeTargets})
	if err != nil {
		return Job{}, ErrUsage.Say("The job cannot be encoded.").Because(err)
	}
	if len(whole) > MaxSpec {
		return Job{}, ErrUsage.Say("The job has %d bytes; the limit is %d.", len(whole), MaxSpec)
	}
	digest, err := canon.Digest("placet/job/v1", whole)
	if err != nil {
		return Job{}, ErrUsage.Say("The job cannot be encoded.").Because(err)
	}
	j := Job{
		ID: s.conf.NewID(id.Job), Space: s.conf.Space, Home: s.conf.Home, Principal: r.Principal,
		IdempotencyKey: r.IdempotencyKey, Request: digest, Spec: spec,
	}
	for _, name := range spec.SecretEnv {
		if v, ok := spec.Env[name]; ok {
			if j.Secrets == nil {
				j.Secrets = map[string]string{}
			}
			j.Secrets[name] = v
			delete(spec.Env, name)
		}
	}
	return j, j.checkNoSecret()
}

// checkNoSecret refuses labels that a secret stands in: they are kept and shown as
// they are. It repeats neither.
func (j Job) checkNoSecret() error {
	for _, name := range slices.Sorted(maps.Keys(j.Secrets)) {
		m := newMask([]string{j.Secrets[name]})
		var field string
		switch {
		case m.text(j.Spec.Name) != j.Spec.Name:
			field = "name"
		case slices.ContainsFunc(j.Spec.Tags, func(t string) bool { return m.text(t) != t }):
			field = "tags"
		default:
			continue
		}
		return ErrUsage.Say("The field %s has the value of the secret variable %s in it; nothing was started.", field, name).
			Hint("The job's name and tags are shown as they are: leave the value out of them.")
	}
	return nil
}

func home() string {
	if dir, err := os.UserHomeDir(); err == nil && filepath.IsAbs(dir) {
		return dir
	}
	return "/"
}

func checkSpec(s Spec) error {
	switch {
	case len(s.Command) == 0 == (s.Shell == ""):
		return ErrUsage.Say("A job has either a command or a shell line.").Hint("Give one of them.")
	case len(s.Command) > 0 && s.Command[0] == "":
		return ErrUsage.Say("The command's program is empty.")
	case s.Cwd != "" && !filepath.IsAbs(s.Cwd):
		return ErrUsage.Say("The working folder %q is no absolute path.", s.Cwd)
	case s.Timeout < 0 || s.Timeout > MaxTimeout || s.Timeout%time.Second != 0:
		return ErrUsage.Say("The time limit is %s; it is a whole number of seconds from 1 to %d.", s.Timeout, MaxTimeout/time.Second)
	case s.Trigger.JobID != "" && !s.Trigger.Status.Terminal():
		return ErrUsage.Say("The trigger's status is %q.", s.Trigger.Status).Hint("It is completed, failed, timeout, cancelled or orphaned.")
	case s.Trigger.JobID == "" && s.Trigger.Status != "":
		return ErrUsage.Say("The trigger names no job.")
	}
	for _, t := range append(append(slices.Clone(s.Command), s.Shell, s.Cwd, s.Trigger.JobID), s.SecretEnv...) {
		if !txn.IsText(t) {
			return ErrUsage.Say("The command is not valid text.").Hint(txn.TextHint)
		}
	}
	for _, name := range s.SecretEnv {
		if _, ok := s.Env[name]; !ok {
			return ErrUsage.Say("The variable %q is to be masked, and is not among those that the job gets.", name).
				Hint("Put it into env, or leave it out of secret_env.")
		}
	}
	return checkEnv(s)
}

// reserved are variables that a launch sets itself.
var reserved = []string{"PLACET_JOB_ID", "PLACET_URL", "PLACET_TOKEN", markName}

func checkEnv(s Spec) error {
	for name, v := range s.Env {
		switch {
		case name == "" || strings.ContainsRune(name, '=') || !txn.IsText(name) || !txn.IsText(v):
			return ErrUsage.Say("The variable %q cannot be set.", name)
		case slices.Contains(reserved, name):
			return ErrUsage.Say("The variable %s is Placet's own.", name).Hint("Choose another name.")
		}
	}
	return nil
}

func checkLabels(r Starting) error {
	switch {
	case !txn.IsText(r.Name) || utf8.RuneCountInString(r.Name) > MaxName:
		return ErrUsage.Say("The name is not valid text of at most %d characters.", MaxName).Hint(txn.ShortTextHint)
	case len(r.Tags) > MaxTags:
		return ErrUsage.Say("There are %d tags; the limit is %d.", len(r.Tags), MaxTags)
	case !txn.IsText(r.IdempotencyKey) || len(r.IdempotencyKey) > maxKey:
		return ErrUsage.Say("The idempotency key is not valid text of at most %d bytes.", maxKey).Hint(txn.ShortTextHint)
	case !txn.IsText(r.Principal) || len(r.Principal) > maxKey:
		return ErrUsage.Say("The principal is not valid text of at most %d bytes.", maxKey).Hint(txn.ShortTextHint)
	}
	for _, t := range r.Tags {
		if t == "" {
			return ErrUsage.Say("A tag is empty.").Hint("Leave it out.")
		}
		if !txn.IsText(t) || utf8.RuneCountInString(t) > MaxName {
			return ErrUsage.Say("The tag %q is not valid text of 1 to %d characters.", t, MaxName).Hint(txn.ShortTextHint)
		}
	}
	return nil
}

func checkBy(by string) error { return decision.CheckAnswer(decision.Answer{By: by}) }

// claim takes a queued job that is due; taken is false where it is not, or not any more.
func (s *Supervisor) claim(ctx context.Context, id, token string) (j Job, taken bool, err error) {
	err = s.update(ctx, func(tx Tx) error {
		j, taken = Job{}, false
		now, err := s.job(tx, id)
		if err != nil {
			return err
		}
		due, cmd, err := s.due(tx, now)
		if err != nil || !due && cmd == nil {
			return err
		}
		if due {
			if err := s.stay(tx); err != nil {
				return err
			}
			cmd = Claim{Token: token, Launcher: self(), Epoch: tx.Epoch()}
		}
		if err := put(tx, now, cmd, s.clock(tx)); err != nil {
			return err
		}
		taken = due
		j, err = tx.Job(id)
		return err
	})
	return j, taken, err
}

// isDue looks whether a queued job is to be claimed or abandoned, without writing.
func (s *Supervisor) isDue(ctx context.Context, j Job) (is bool, err error) {
	err = txn.View(ctx, s.conf.Store, func(tx Tx) error {
		due, cmd, err := s.due(tx, j)
		is = due || cmd != nil
		return err
	})
	return is, err
}

// environment is what a launch gets: the safe base, what the job names, what the
// supervisor adds, the job's id. The later wins.
func (s *Supervisor) environment(ctx context.Context, j Job) (env, secrets []string, err error) {
	vars := map[string]string{}
	for _, v := range s.base {
		name, value, _ := strings.Cut(v, "=")
		vars[name] = value
	}
	maps.Copy(vars, j.Spec.Env)
	maps.Copy(vars, j.Secrets)
	for _, v := range j.Secrets {
		secrets = append(secrets, v)
	}
	if s.conf.Environ != nil {
		more, err := s.conf.Environ(ctx, j.Clone())
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(vars, more)
		secrets = append(secrets, more["PLACET_TOKEN"])
	}
	vars["PLACET_JOB_ID"] = j.ID
	for name, v := range vars {
		env = append(env, name+"="+v)
	}
	slices.Sort(env)
	return env, secrets, nil
}
