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
	"github.com/placet-dev/placet/internal/display"
	"github.com/placet-dev/placet/run"
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

  - name: check_spelling
    description: Look for the word "lettr" in letter.txt.
    input_schema: {type: object, additionalProperties: false}
    side_effect: read_only
    exec: [./check_spelling.sh]

  - name: correct_spelling
    description: Write "letter" for "lettr" in letter.txt.
    input_schema: {type: object, additionalProperties: false}
    side_effect: local_mutation
    exec: [./correct_spelling.sh]

agents:
  proofreader: {exec: [./proofreader.sh]}

rules:
  - name: letters
    when: tool == "send_letter"
    outcome: require_approval
    reason: a letter cannot be taken back
    presentation: {title: '"A letter to " + args.to', text: args.text}

  - name: corrections
    when: tool == "correct_spelling"
    outcome: require_approval
    reason: letter.txt is somebody's own
`
	demoTool = `#!/bin/sh
# Arguments come as JSON on standard input, the result goes to standard output.
set -eu
printf '%s ' "$PLACET_CALL_ID" >>outbox.txt
tr '\n' ' ' >>outbox.txt
echo >>outbox.txt
echo '{"file":"outbox.txt"}'
`
	demoLetter = "Dear Cy,\ndid you get my lettr?\n"
	demoCheck  = `#!/bin/sh
if grep -q lettr letter.txt; then echo '{"wrong":"lettr"}'; else echo '{"ok":true}'; fi
`
	demoCorrect = `#!/bin/sh
set -eu
sed 's/lettr/letter/g' letter.txt >letter.new
mv letter.new letter.txt
echo '{"corrected":"letter.txt"}'
`
	demoAgent = `#!/bin/sh
# An agent. It reads how its run stands, and prints what to do next: one process for
# each step, no matter how long the run waits in between.
case $(cat) in
*'"ok":true'*) echo '{"kind":"complete","result":"letter.txt has no wrong word."}' ;;
*'"corrected":'*) echo '{"kind":"tool_call","tool":"check_spelling","args":{},"reason":"see whether it helped"}' ;;
*'"wrong":'*) echo '{"kind":"tool_call","tool":"correct_spelling","args":{},"reason":"a word is wrong"}' ;;
*) echo '{"kind":"tool_call","tool":"check_spelling","args":{}}' ;;
esac
`
	demoAgentName  = "proofreader"
	demoLetterFile = "letter.txt"
)

func newDemoCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "demo [DIR]",
		Short: "Carry one real call and one agent's run to their ends, and leave a call for you to decide",
		Long: `Makes a folder with a database, a configuration, real tools and an agent (without
DIR, a new folder for temporary files). One call is parked, approved and run; an
agent's run waits in the middle, is approved and goes on; another call is parked and
left to you.`,
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
	d := demo{app: a, store: st, conf: conf, ex: ex, outbox: filepath.Join(dir, "outbox.txt"), letter: filepath.Join(dir, demoLetterFile)}
	if err := d.whole(ctx); err != nil {
		return err
	}
	if err := d.agent(ctx); err != nil {
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
	return newFiles{
		config.DefaultName: {[]byte(demoConfig), 0o644}, "send_letter.sh": {[]byte(demoTool), 0o755},
		"check_spelling.sh": {[]byte(demoCheck), 0o755}, "correct_spelling.sh": {[]byte(demoCorrect), 0o755},
		demoAgentName + ".sh": {[]byte(demoAgent), 0o755},
	}.write(dir)
}

// demo is one telling of the story.
type demo struct {
	*app
	store  *store.Store
	conf   *config.Config
	ex     *call.Executor
	outbox string
	letter string
	runID  string
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
	d.tell("2. The demo agreed in a person's place, to exactly that digest. Nothing has run yet.")
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

// agent takes one run of an agent from its start to its end.
func (d *demo) agent(ctx context.Context) error {
	if err := os.WriteFile(d.letter, []byte(demoLetter), 0o644); err != nil {
		return fault.New(fault.Invalid, "The file %s cannot be written.", d.letter).Because(err)
	}
	ref := run.AgentRef{Name: demoAgentName}
	agent, err := agentOf(d.conf, ref)
	if err != nil {
		return err
	}
	driver := run.NewDriver(run.Config{Store: d.store, Agent: agent, Tools: d.conf.Tools, Policy: d.conf.Policy, Log: d.logger()})
	r, err := driver.Start(ctx, "Correct letter.txt.", run.DefaultLimits(), run.As(principal()), run.By(ref))
	if err == nil && r.Status != run.Waiting {
		err = fault.New(fault.Internal, "The demo's run is %s and does not wait: %s", r.Status, r.Detail)
	}
	if err != nil {
		return err
	}
	d.runID = r.ID
	d.tell("")
	d.tell("5. An agent was told to correct letter.txt. It called a tool that checks the file, which")
	d.tell("   was allowed, and then one that changes it: its run %s waits.", own(r.ID))
	if err := driver.Approve(ctx, r.ID, r.ApprovalID, "demo", "The demo says yes here, too."); err != nil {
		return err
	}
	if r, err = driver.Resume(ctx, r.ID); err != nil {
		return err
	}
	if r.Status != run.Completed {
		return fault.New(fault.Internal, "The demo's run is %s: %s", r.Status, r.Detail)
	}
	d.tell("6. The demo agreed again, and the run went on: %s was changed, the agent", own(d.letter))
	d.tell("   checked it again and was done, after %d steps.", r.StepCount)
	return nil
}

// left parks a call and says what to type.
func (d demo) left(ctx context.Context) error {
	parked, err := d.park(ctx, `{"to":"Bo","text":"You decide whether this is sent."}`)
	if err != nil {
		return err
	}
	o := demoObject{DB: d.db, Config: d.config, ApprovalID: parked.ApprovalID, CallID: parked.CallID, RunID: d.runID, File: d.outbox}
	commands := func() []string {
		return []string{
			d.withGlobals("show", parked.ApprovalID), d.withGlobals("approve", parked.ApprovalID), d.withGlobals("resume", parked.ApprovalID),
			"cat " + display.ShellWord(d.outbox),
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
	d.tell("  export PLACET_DB=%s PLACET_CONFIG=%s", own(display.ShellWord(o.DB)), own(display.ShellWord(o.Config)))
	d.tell("")
	why := []string{"see what is asked", "agree; it shows it again and asks", "run it, once", "the letters that were sent"}
	for i, c := range commands() {
		d.tell("  # %s", own(why[i]))
		d.tell("  %s", own(c))
	}
	d.tell("")
	d.tell("In a browser instead, at the address that the first of these prints:")
	d.tell("")
	d.tell("  %s", own(d.withGlobals("serve")))
	d.tell("  # in another terminal: a token to sign in with")
	d.tell("  %s", own(d.withGlobals("token", "create", "--scope", "reviewer", "--name", display.ShellWord(osUser()))))
	d.tell("")
	d.tell("To say no instead:      %s", own(d.withGlobals("reject", parked.ApprovalID)))
	d.tell("What the agent did:     %s", own(d.withGlobals("show", d.runID)))
	return nil
}

type demoObject struct {
	DB         string   `json:"db"`
	Config     string   `json:"config"`
	ApprovalID string   `json:"approval_id"`
	CallID     string   `json:"call_id"`
	RunID      string   `json:"run_id"`
	File       string   `json:"file"`
	Commands   []string `json:"commands"`
}
