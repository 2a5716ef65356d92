package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/internal/id"
	"github.com/placet-dev/placet/internal/review"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/store"
	"github.com/placet-dev/placet/tool"
)

// answerFlags are what a reviewer can say besides yes and no.
type answerFlags struct {
	by, note, edit string
}

func (f *answerFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.by, "by", "", "`NAME` to record (default: the OS user)")
	c.Flags().StringVar(&f.note, "note", "", "`TEXT` to record with it")
}

func (f *answerFlags) addEdit(c *cobra.Command) {
	c.Flags().StringVar(&f.edit, "edit", "", "`FILE` with arguments to run instead, as JSON; - is standard input")
}

// name is who is recorded. An empty --by is refused where it is checked.
func (f *answerFlags) name(c *cobra.Command) string {
	if c.Flags().Changed("by") {
		return f.by
	}
	return osUser()
}

type decideCommand struct {
	*app
	flags   answerFlags
	approve bool
	yes     bool
	hash    string
	bound   bool // --hash was given

	stood review.Approval // as it stood right before the answer
}

func newApproveCommand(a *app) *cobra.Command {
	d := &decideCommand{app: a, approve: true}
	c := d.command("approve ID", "Say yes to one approval, to exactly what is shown", `Shows the approval and asks. The yes is bound to the digest of what was shown: if
it changes meanwhile, nothing is decided. Approving runs nothing; placet resume and
placet run resume do.`)
	d.flags.addEdit(c)
	return c
}

func newRejectCommand(a *app) *cobra.Command {
	d := &decideCommand{app: a}
	return d.command("reject ID", "Say no to one approval", `Shows the approval and asks. After a no the call is denied and never runs, and a run
that asked for it is cancelled; one that may have run already is not run again.`)
}

func (d *decideCommand) command(use, short, long string) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: oneArg("ID", "")}
	d.flags.add(c)
	c.Flags().BoolVar(&d.yes, "yes", false, "do not ask")
	c.Flags().StringVar(&d.hash, "hash", "", "do not ask; decide only if this is the approval's `DIGEST`")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := notBoth(c, "yes", "hash"); err != nil {
			return err
		}
		d.bound = c.Flags().Changed("hash")
		return d.run(c, args[0])
	}
	return c
}

func (d *decideCommand) run(c *cobra.Command, given string) error {
	who := d.person()
	switch {
	case d.yes || d.bound:
		who = nil
	case d.json:
		return use("With --json nothing is asked, and no yes was given.", "Add --hash DIGEST of what you decide on, or --yes.")
	case who == nil:
		return use("There is no terminal to ask at, and no yes was given.", "Add --hash DIGEST of what you decide on, or --yes.")
	}
	edited, err := d.readEdit(d.flags.edit)
	if err != nil {
		return err
	}
	answer := decision.Answer{Approved: d.approve, By: d.flags.name(c), Note: d.flags.note, EditedArgs: edited}
	if err := decision.CheckAnswer(answer); err != nil {
		return err
	}
	st, err := d.write(c.Context())
	if err != nil {
		return err
	}
	defer st.Close()
	approvalID, err := d.find(c.Context(), st, given, id.Approval)
	if err == nil && d.yes {
		err = wholly(given, approvalID)
	}
	if err != nil {
		return err
	}
	return d.decide(c.Context(), st, who, approvalID, answer)
}

func (d *decideCommand) decide(ctx context.Context, st *store.Store, who *person, approvalID string, answer decision.Answer) error {
	s, err := readApproval(ctx, st, approvalID)
	if err != nil {
		return err
	}
	d.maskOf(s.Decision, s.Request, answer.EditedArgs)
	answer.Shown = s.Digest
	if d.bound {
		answer.Shown = d.hash
	}
	if who == nil && !d.json && s.Status == decision.Pending {
		d.review(d.out, s)
	}
	if who != nil {
		if err := d.confirm(ctx, st, who, s, answer); err != nil {
			return err
		}
	}
	if answer.Shown == "" { // an empty digest is that of nothing that was shown
		return decision.ErrApprovalChanged.Say("Approval %s is not the one with an empty digest.", s.ID).Hint("Look at it again: placet show %s.", s.ID)
	}
	if !d.json { // who goes on may be another one by now: a person took their time
		if d.stood, err = readApproval(ctx, st, approvalID); err != nil {
			return err
		}
	}
	after, err := operator(st).Decide(ctx, approvalID, answer)
	if errors.Is(err, tool.ErrInvalidArguments) && answer.EditedArgs != nil {
		return editUnfit(d.flags.edit, err)
	}
	if err != nil {
		return err
	}
	d.tellDecided(after)
	return nil
}

// editUnfit says which file it is that does not fit the schema.
func editUnfit(path string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Say("The edited arguments in %s: %s", path, f.Message)
	}
	return err
}

// confirm shows what is asked and what would be recorded, and asks.
func (d *decideCommand) confirm(ctx context.Context, st *store.Store, who *person, s review.Approval, answer decision.Answer) error {
	if err := refusedAnyway(ctx, st, s, answer); errors.Is(err, tool.ErrInvalidArguments) {
		return editUnfit(d.flags.edit, err)
	} else if err != nil {
		return err
	}
	d.review(who.show, s)
	verb, question := "rejected", "Reject it?"
	if answer.Approved {
		verb, question = "approved", "Approve exactly this?"
	}
	p := page{a: d.app, to: who.show, mask: d.maskOf(s.Decision, s.Request, answer.EditedArgs)}
	if answer.EditedArgs != nil {
		p.fields(fmt.Sprintf("Your edited arguments, which would run instead (%s):", display.Bytes(len(answer.EditedArgs))), answer.EditedArgs)
	}
	p.say("")
	p.say("A yes records: %s by %s as %s, %s, for digest %s.", safe(verb), own(quote(answer.By)), own(principal()), noteWords(answer.Note), own(s.Digest))
	return d.ask(ctx, st, who, s, question)
}

// refusedAnyway is why a yes or a no would be refused whatever a person said: there
// is nothing to ask then.
func refusedAnyway(ctx context.Context, st *store.Store, s review.Approval, answer decision.Answer) error {
	switch {
	case s.Status != decision.Pending:
		return s.ErrDecided()
	case s.Overdue:
		ended, err := operator(st).Expire(ctx, s.ID)
		if err != nil {
			return err
		}
		return ended.ErrDecided()
	case answer.EditedArgs != nil && (s.ForbidEdits || s.Owner.Kind != decision.OwnerCall):
		return decision.ErrUsage.Say("The arguments of approval %s cannot be edited.", s.ID).Hint("Approve or reject it as it is.")
	case answer.EditedArgs != nil:
		return decision.CheckEditedArgs(s.Decision, answer.EditedArgs)
	}
	return nil
}

func noteWords(note string) string {
	if note == "" {
		return "without a note"
	}
	return "with the note " + quote(note)
}

func (d *decideCommand) tellDecided(after decision.Decision) {
	if d.json {
		d.emit(d.approvalObject(after))
		return
	}
	d.say("Approval %s is %s by %s.", own(after.ID), own(after.Status), own(after.DecidedBy))
	d.say("  at         %s", own(stamp(after.DecidedAt)))
	d.say("  digest     %s", own(after.Digest))
	if after.EffectiveDigest != "" {
		d.say("  edited     %s", own(after.EffectiveDigest))
	}
	if after.Note != "" {
		d.say("  note       %s", d.excerpt(after.Note))
	}
	if after.GrantExpiresAt.IsZero() && after.Status == decision.Approved {
		d.say("  good until it is used")
	} else if after.Status == decision.Approved {
		d.say("  good until %s", own(stamp(after.GrantExpiresAt)))
	}
	if after.Owner.Kind == decision.OwnerRun {
		d.tellRunDecided(after)
		return
	}
	switch run := own(d.withGlobals("resume", after.ID)); {
	case after.Status == decision.Approved && d.stood.Way == review.ByReserver:
		d.say("The program that reserved it over HTTP goes on with it.")
	case after.Status == decision.Approved && d.stood.Way == review.ByDaemon:
		d.say("%s", safe(map[bool]string{
			true: "It may have run already. The daemon runs it again.", false: "Nothing has run yet. The daemon runs it.",
		}[d.stood.Doubtful]))
		d.noteAbsentDaemon()
	case after.Status == decision.Approved && d.stood.Doubtful:
		d.say("It may have run already. Run it again:  %s", run)
	case after.Status == decision.Approved:
		d.say("Nothing has run yet. Run it:  %s", run)
	case d.stood.Doubtful:
		d.say("It will not be run again.")
	default:
		d.say("It will not run.")
	}
}

func (d *decideCommand) tellRunDecided(after decision.Decision) {
	run := own(d.withGlobals("run", "resume", after.Owner.ID))
	switch {
	case after.Status != decision.Approved:
		d.say("Its run is cancelled.")
	case d.stood.Way == review.ByDaemon && d.stood.Doubtful:
		d.say("It may have run already. The daemon runs it again, and goes on with the run.")
		d.noteAbsentDaemon()
	case d.stood.Way == review.ByDaemon:
		d.say("Nothing has run yet. The daemon goes on with the run.")
		d.noteAbsentDaemon()
	case d.stood.Doubtful:
		d.say("It may have run already. Run it again, and go on with the run:  %s", run)
	default:
		d.say("Nothing has run yet. Go on with the run:  %s", run)
	}
}

// readEdit reads arguments from a file. No file: nil.
func (a *app) readEdit(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	b, err := a.readFile(path)
	if err != nil {
		return nil, err
	}
	if _, err := request.ArgsDigest(b); err != nil {
		return nil, badJSON("The edited arguments in "+path, err)
	}
	return b, nil
}
