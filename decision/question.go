package decision

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// Limits of questions (spec 3.2).
const (
	MaxPrompt         = 10_000 // characters
	MaxOptions        = 50     // before duplicates are collapsed
	MaxOption         = 200    // characters
	MaxTimeout        = 315_360_000 * time.Second
	MaxEventBytes     = 64 << 10 // of an event's data, as it is stored; Operator.MaxEventBytes may set another
	MaxPendingOfJob   = 100
	MaxQuestionsOfJob = 10_000
	maxIdempotencyKey = 200 // bytes

	defaultYes = "approve"
	defaultNo  = "deny"
)

// Resolved is a question's answer; the other statuses of a question are pending,
// withdrawn and expired.
const Resolved Status = "resolved"

// Errors of questions (spec 4.6).
var (
	// ErrChoiceConflict: the stored answer is another one, with its standing.
	ErrChoiceConflict = fault.Sentinel(fault.Conflict, "choice_conflict", "This question has another answer already.", ErrNotPending)
	ErrWithdrawn      = fault.Sentinel(fault.Conflict, "withdrawn", "This question was withdrawn.", ErrNotPending)
	ErrExpired        = fault.Sentinel(fault.Expired, "expired", "This question has expired.", ErrNotPending)
	ErrNotOffered     = fault.Sentinel(fault.Invalid, "not_offered", "This is not one of the options.")
	// ErrKeyConflict: the idempotency key stands for another request.
	ErrKeyConflict = fault.Sentinel(fault.Conflict, "key_conflict", "The idempotency key was used for another request.")
	// ErrTooLarge: a question, answer or withdrawal is larger than its event may be.
	ErrTooLarge = fault.Sentinel(fault.TooLarge, "too_large", "This is too large to be told of.")
)

// Asking is what a job asks of people.
type Asking struct {
	Prompt  string        // 1 to 10,000 characters, not blank
	Options []string      // 1 to 50, of 1 to 200 characters, kept and compared as they are; nil: approve and deny
	Timeout time.Duration // whole seconds, 1 s to ten years; 0: it never expires
	Form    []byte        // a flat JSON Schema of what else is asked for; nil or null: nothing
	// IdempotencyKey makes a repeat of the same question answer with the first one.
	IdempotencyKey string
	By             string // principal that asks, at most 200 bytes; empty: not known
}

// Checked is q as it is asked, defaults filled in and repeated options dropped:
// [ErrUsage] naming what cannot be asked.
func (q Asking) Checked() (Asking, error) {
	if q.Options == nil {
		q.Options = []string{defaultYes, defaultNo}
	}
	if isJSON(q.Form, `null`) {
		q.Form = nil
	}
	if err := CheckAsker(q.By, nil); err != nil {
		return q, err
	}
	if err := checkText("prompt", q.Prompt, MaxPrompt); err != nil {
		return q, err
	}
	switch {
	case strings.TrimSpace(q.Prompt) == "":
		return q, ErrUsage.Say("The prompt is blank.").Hint("Ask something.")
	case len(q.Options) == 0 || len(q.Options) > MaxOptions:
		return q, ErrUsage.Say("There are %d options; a question has 1 to %d.", len(q.Options), MaxOptions)
	case q.Timeout < 0 || q.Timeout > MaxTimeout || q.Timeout%time.Second != 0:
		return q, ErrUsage.Say("The time limit is %s; it is a whole number of seconds from 1 to %d.", q.Timeout, MaxTimeout/time.Second)
	case len(q.IdempotencyKey) > maxIdempotencyKey || !txn.IsText(q.IdempotencyKey):
		return q, ErrUsage.Say("The idempotency key is not valid text of at most %d bytes.", maxIdempotencyKey).Hint(txn.ShortTextHint)
	}
	options := make([]string, 0, len(q.Options))
	for _, o := range q.Options {
		if err := checkText("option", o, MaxOption); err != nil {
			return q, err
		}
		if strings.TrimSpace(o) == "" {
			return q, ErrUsage.Say("An option is blank.")
		}
		if !slices.Contains(options, o) {
			options = append(options, o)
		}
	}
	q.Options = options
	return q, checkForm(q.Form)
}

// checkForm takes a flat schema only: an object whose fields are texts, numbers and
// yes or no, so that every door can show it as a form.
func checkForm(form []byte) error {
	if form == nil {
		return nil
	}
	if _, err := tool.CompileSchema(form); err != nil {
		return ErrUsage.Say("The form is not a usable JSON Schema.").Because(err)
	}
	var f struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(form, &f); err != nil || f.Type != "object" || len(f.Properties) == 0 {
		return ErrUsage.Say("The form is not an object with properties.").Hint(`Write {"type":"object","properties":{…}}.`)
	}
	for name, p := range f.Properties {
		var field struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(p, &field); err != nil || !slices.Contains([]string{"string", "number", "integer", "boolean"}, field.Type) {
			return ErrUsage.Say("The form's field %q is not flat.", name).Hint("Its type is string, number, integer or boolean.")
		}
	}
	return nil
}

// Asked is the decision that asks q of people for the owner. The times are the
// transaction's. Whether its event fits is the [Operator]'s to say.
func (q Asking) Asked(id, space string, owner Ref, n int64, now time.Time, epoch int64) (Decision, error) {
	d := Decision{
		ID: id, Space: space, Type: Question, Owner: owner, N: n, Prompt: q.Prompt, Options: q.Options, Form: q.Form,
		IdempotencyKey: q.IdempotencyKey, RequestedBy: q.By, CreatedAt: now, Epoch: epoch, Status: Pending, Open: true, Needs: 1,
	}
	if q.Timeout > 0 {
		d.ExpiresAt = now.Add(q.Timeout)
	}
	var err error
	d.Digest, err = d.Binding()
	return d, err
}

// sameQuestion reports whether d asks what q would: what an idempotency key stands for.
func (d Decision) sameQuestion(q Asking) bool {
	timeout := time.Duration(0)
	if !d.ExpiresAt.IsZero() {
		timeout = d.ExpiresAt.Sub(d.CreatedAt)
	}
	return d.Prompt == q.Prompt && slices.Equal(d.Options, q.Options) && sameForm(d.Form, q.Form) && timeout == q.Timeout
}

// fits refuses an event whose data would not fit: it carries the answer, so it is
// never cut (spec 3.2). A limit of 0 is [MaxEventBytes].
func fits(e event.Event, limit int) error {
	if limit == 0 {
		limit = MaxEventBytes
	}
	if n := len(e.Payload); n > limit {
		return ErrTooLarge.Say("What would be told of this has %d bytes; the limit is %d.", n, limit).Hint("Say it in fewer words.")
	}
	return nil
}

// Resolve is a person's answer to a question. Everything in it is fact by the time it
// is judged.
type Resolve struct {
	Choice        Choice
	Input         []byte // what the form asks for, JSON; nil, null and {}: nothing
	By            string
	Note          string
	Principal     string
	Verified      bool
	MayOwn        bool
	Waiting       error // what the owner said
	Unfit         error // what the form says to the input
	Checked       string
	MaxEventBytes int    // 0: [MaxEventBytes]
	Shown         string // digest of the question as it was shown; empty: not bound to a showing
}

func (Resolve) command() {}

// resolve follows spec 3.2: the first failure is the answer. The same answer again
// changes nothing.
func (d Decision) resolve(cmd Resolve, now time.Time) (Change, error) {
	switch d.Status {
	case Pending:
	case Resolved:
		if d.Choice == cmd.Choice && sameInput(d.Input, cmd.Input) {
			return Change{Next: d, Repeated: true}, nil
		}
		return Change{}, d.errOtherAnswer(cmd.Choice)
	default:
		return Change{}, d.errNotPending()
	}
	if cmd.Waiting != nil {
		return Change{}, cmd.Waiting
	}
	if d.closed() {
		return Change{}, d.errClosed()
	}
	if err := d.checkAsked(cmd.Shown); err != nil {
		return Change{}, err
	}
	if d.Overdue(now) {
		return d.expired(now, true), nil
	}
	if err := d.checkDecider(Decide{Principal: cmd.Principal, MayOwn: cmd.MayOwn}); err != nil {
		return Change{}, err
	}
	if !slices.Contains(d.Options, string(cmd.Choice)) {
		return Change{}, d.errNotOffered(string(cmd.Choice))
	}
	if err := d.checkInput(cmd); err != nil {
		return Change{}, err
	}
	return d.answer(cmd, now)
}

// checkAsked holds an answer that is bound to a showing against what is stored: the
// question is the one that was shown, and its digest that of its prompt, options and form.
func (d Decision) checkAsked(shown string) error {
	if shown == "" {
		return nil
	}
	if shown != d.Digest {
		return ErrApprovalChanged.Say("Question %s is not the one that was shown.", d.ID).Hint("Look at it again, and answer what it asks now.")
	}
	return d.Intact()
}

// errNotOffered shows where a choice only looks like an option: what was asked and what
// is answered are compared by their characters.
func (d Decision) errNotOffered(choice string) error {
	form := norm.NFC.String(choice)
	for _, o := range d.Options {
		if norm.NFC.String(o) == form {
			return ErrNotOffered.Say("Question %s offers %s; %s is the same text in another Unicode form.", d.ID, strconv.QuoteToASCII(o), strconv.QuoteToASCII(choice)).
				Hint("Send exactly the characters of the option.")
		}
	}
	return ErrNotOffered.Say("Question %s does not offer %s.", d.ID, quote(choice)).Hint("It offers: %s.", quoteAll(d.Options))
}

func (d Decision) checkInput(cmd Resolve) error {
	switch {
	case d.Form == nil && nothing(cmd.Input):
		return nil
	case d.Form == nil:
		return ErrUsage.Say("Question %s asks for nothing but a choice.", d.ID).Hint("Leave the input out.")
	case cmd.Checked != d.Digest:
		return ErrApprovalChanged.Say("The input was checked for another form than question %s now has.", d.ID)
	}
	return cmd.Unfit
}

func (d Decision) answer(cmd Resolve, now time.Time) (Change, error) {
	d.Status, d.Open, d.Choice, d.Input = Resolved, false, cmd.Choice, d.filledIn(cmd.Input)
	d.DecidedBy, d.DecidedPrincipal, d.Verified = cmd.By, cmd.Principal, cmd.Verified
	d.DecidedAt, d.SettledAt, d.Note = now, now, cmd.Note
	e := d.event(event.DecisionResolved, cmd.By, resolvedPayload{d.ID, string(d.Choice), d.Input, cmd.By, cmd.Principal})
	return Change{
		Next: d,
		Vote: &Vote{
			DecisionID: d.ID, Principal: cmd.Principal, By: cmd.By, Choice: d.Choice, Input: d.Input, Shown: cmd.Shown, Note: cmd.Note, At: now,
		},
		Events: []event.Event{e},
	}, fits(e, cmd.MaxEventBytes)
}

func quoteAll(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
	}
	return strings.Join(quoted, ", ")
}

type askedPayload struct {
	DecisionID string          `json:"decision_id"`
	Prompt     string          `json:"prompt"`
	Options    []string        `json:"options"`
	Form       json.RawMessage `json:"form,omitempty"`
	ExpiresAt  string          `json:"expires_at,omitempty"`
}

type resolvedPayload struct {
	DecisionID string          `json:"decision_id"`
	Choice     string          `json:"choice"`
	Input      json.RawMessage `json:"input,omitempty"`
	By         string          `json:"by"`
	Principal  string          `json:"principal,omitempty"`
}

type withdrawnPayload struct {
	DecisionID string `json:"decision_id"`
	By         string `json:"by"`
}

type questionPayload struct {
	DecisionID string `json:"decision_id"`
}
