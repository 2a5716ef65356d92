package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/store"
)

const (
	demoConfig = `# Made by placet demo.
tools:
  - name: send_letter
    description: Send a letter. It is written to the file outbox.txt, one line for each time this runs.
    input_schema:
      type: object
      required: [to, text]
      additionalProperties: false
      properties:
        to: {type: string, minLength: 1, maxLength: 100}
        text: {type: string, minLength: 1, maxLength: 1000}
    side_effect: remote_mutation
    exec: [./send_letter.sh]

rules:
  - name: letters
    when: tool == "send_letter"
    outcome: require_approval
    reason: a letter cannot be taken back
    presentation: {title: '"A letter to " + args.to', text: args.text}
`
	demoTool = `#!/bin/sh
# Arguments come as JSON on standard input, the result goes to standard output.
set -eu
printf '%s ' "$PLACET_CALL_ID" >>outbox.txt
tr '\n' ' ' >>outbox.txt
echo >>outbox.txt
echo '{"file":"outbox.txt"}'
`
)

func newDemoCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "demo [DIR]",
		Short: "Carry one real call to its end, and leave one for you to decide",
		Long: `Makes a folder with a database, a configuration and one real tool (without DIR, a
new folder for temporary files). One call is parked, approved and run; another is
parked and left to you.`,
		Args: upToOneArg("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := demoDir(args)
			if err != nil {
				return err
			}
			return a.demo(c.Context(), dir)
		},
	}
}

func demoDir(args []string) (string, error) {
	if len(args) == 0 {
		return os.MkdirTemp("", "placet-demo-")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

func (a *app) demo(ctx context.Context, dir string) error {
	if err := demoFiles(dir); err != nil {
		return err
	}
	a.db, a.config = filepath.Join(dir, "placet.db"), filepath.Join(dir, config.DefaultName)
	conf, err := a.load()
	if err != nil {
		return err
	}
	st, err := a.create(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	ex := a.executor(st, conf)
	d := demo{app: a, store: st, ex: ex, outbox: filepath.Join(dir, "outbox.txt")}
	if err := d.whole(ctx); err != nil {
		return err
	}
	return d.left(ctx)
}

// demoFiles writes the tool and its configuration, unless an earlier demo did.
func demoFiles(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, config.DefaultName)); err == nil {
		b, err := os.ReadFile(filepath.Join(dir, config.DefaultName))
		if err != nil || string(b) != demoConfig {
			return fault.New(fault.Conflict, "%s holds something else than a demo.", dir).Hint("Give another folder: placet demo DIR.")
		}
		return nil
	}
	return newFiles{config.DefaultName: {[]byte(demoConfig), 0o644}, "send_letter.sh": {[]byte(demoTool), 0o755}}.write(dir)
}

// demo is one telling of the story.
type demo struct {
	*app
	store  *store.Store
	ex     *call.Executor
	outbox string
}

// tell is for people; programs get the one object at the end.
func (d demo) tell(format string, args ...any) {
	if !d.json {
		d.say(format, args...)
	}
}

func (d demo) park(ctx context.Context, args string) (*call.PendingError, error) {
	_, err := d.ex.Call(ctx, "send_letter", []byte(args), call.As(principal()))
	var parked *call.PendingError
	if errors.As(err, &parked) {
		return parked, nil
	}
	if err == nil {
		err = fault.New(fault.Internal, "The demo's call was not parked.")
	}
	return nil, err
}

// whole takes one call from the asking to the end.
func (d demo) whole(ctx context.Context) error {
	parked, err := d.park(ctx, `{"to":"Ana","text":"The demo is running."}`)
	if err != nil {
		return err
	}
	d.tell("1. A tool was called: send_letter, to Ana. A letter cannot be taken back, so it waits")
	d.tell("   for a person as approval %s.", own(parked.ApprovalID))
	a := decision.Answer{Approved: true, By: "demo", Note: "The demo says yes here.", Shown: parked.Digest}
	if _, err := operator(d.store).Decide(ctx, parked.ApprovalID, a); err != nil {
		return err
	}
	d.tell("2. Somebody agreed, to exactly that digest. Nothing has run yet.")
	res, err := d.ex.Resume(ctx, parked.ApprovalID, nil, call.As(principal()))
	if err != nil {
		return err
	}
	if res.Failed() {
		return fault.New(fault.Internal, "The demo's tool did not succeed: %s", res.Message)
	}
	d.tell("3. It was resumed and ran: %s has one more line.", own(d.outbox))
	if _, err := d.ex.Resume(ctx, parked.ApprovalID, nil); !errors.Is(err, call.ErrAlreadyDecided) {
		return fault.New(fault.Internal, "A second resume was not refused.").Because(err)
	}
	d.tell("4. It was resumed once more and refused: a yes is good for one run.")
	return nil
}

// left parks a call and says what to type.
func (d demo) left(ctx context.Context) error {
	parked, err := d.park(ctx, `{"to":"Bo","text":"You decide whether this is sent."}`)
	if err != nil {
		return err
	}
	o := demoObject{DB: d.db, Config: d.config, ApprovalID: parked.ApprovalID, CallID: parked.CallID, File: d.outbox}
	commands := func() []string {
		return []string{
			d.withGlobals("show", parked.ApprovalID), d.withGlobals("approve", parked.ApprovalID), d.withGlobals("resume", parked.ApprovalID),
			"cat " + shellWord(d.outbox),
		}
	}
	if d.json {
		o.Commands = commands() // each stands by itself
		d.emit(o)
		return nil
	}
	d.db, d.config = "", "" // said once, by the line that exports them
	d.tell("")
	d.tell("Another letter, to Bo, waits for you. From this terminal or any other:")
	d.tell("")
	d.tell("  export PLACET_DB=%s PLACET_CONFIG=%s", own(shellWord(o.DB)), own(shellWord(o.Config)))
	d.tell("")
	why := []string{"see what is asked", "agree; it shows it again and asks", "run it, once", "the letters that were sent"}
	for i, c := range commands() {
		d.tell("  # %s", own(why[i]))
		d.tell("  %s", own(c))
	}
	d.tell("")
	d.tell("To say no instead:  %s", own(d.withGlobals("reject", parked.ApprovalID)))
	return nil
}

type demoObject struct {
	DB         string   `json:"db"`
	Config     string   `json:"config"`
	ApprovalID string   `json:"approval_id"`
	CallID     string   `json:"call_id"`
	File       string   `json:"file"`
	Commands   []string `json:"commands"`
}
