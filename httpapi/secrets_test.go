package httpapi_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/placet-dev/placet/call"
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/event"
	"github.com/placet-dev/placet/httpapi"
	"github.com/placet-dev/placet/policy"
	"github.com/placet-dev/placet/request"
	"github.com/placet-dev/placet/run"
	"github.com/placet-dev/placet/token"
	"github.com/placet-dev/placet/tool"
	"github.com/placet-dev/placet/txn"
)

// marker is a secret that is planted wherever one can come from.
const marker = "Planted-Secret-7f3a"

const (
	vaultSchema = `{"type":"object","properties":{"answer":{"type":"string","writeOnly":true},"login":{"type":"object"},"token":{"type":"string","default":"` + marker + `"}}}`
	vaultArgs   = `{"answer":"` + marker + `","login":{"password":"` + marker + `"},"body":"{\"api_key\":\"` + marker + `\"}"}`
	vaultForm   = `{"type":"object","properties":{"answer":{"type":"string","writeOnly":true},"password":{"type":"string","default":"` + marker + `"},"epochs":{"type":"integer"}}}`
	vaultInput  = `{"answer":"` + marker + `","password":"` + marker + `","epochs":5}`
)

// vaults are the tools of a planted world. They repeat the marker in whatever they say.
func vaults(t *testing.T) *tool.Registry {
	t.Helper()
	echo := tool.RunnerFunc(func(_ context.Context, c tool.Call) (json.RawMessage, error) {
		if c.Tool == "vault_fails" {
			return nil, errors.New("no entry with " + marker)
		}
		return json.RawMessage(`{"echo":` + string(c.Args) + `,"access_token":"` + marker + `","said":"it was ` + marker + `"}`), nil
	})
	var tools []tool.Tool
	for _, name := range []string{"vault", "vault_fails", "vault_denied", "vault_free"} {
		tools = append(tools, tool.Tool{Spec: tool.Spec{Name: name, InputSchema: json.RawMessage(vaultSchema), SideEffect: tool.RemoteMutation}, Run: echo})
	}
	reg, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// tellingPolicy repeats the marker in all that a policy may say.
var tellingPolicy = policy.Func(func(_ context.Context, r request.Request, _ policy.View) (policy.Ruling, error) {
	said := policy.Ruling{
		Outcome: policy.RequireApproval, Reason: "It opens with " + marker + ".",
		Presentation: json.RawMessage(`{"title":"Open with ` + marker + `"}`), Capability: json.RawMessage(`{"may":"open ` + marker + `"}`),
	}
	switch r.Tool.Name {
	case "vault_denied":
		said.Outcome = policy.Deny
	case "vault_free":
		said.Outcome = policy.Allow
	}
	return said, nil
})

// planted is a world in which "owner" has work of every sort, with the marker in it.
type planted struct {
	*world
	ids  []string // of everything, by which it is read
	owns []string // paths that show the marker to whoever brought it
	jobs []string
	dec  []string
}

func plant(t *testing.T) *planted {
	t.Helper()
	p := &planted{world: setup(t, func(c *httpapi.Config) {
		c.Tools = vaults(t)
		c.Calls = call.NewExecutor(call.Config{Store: c.Store, Tools: c.Tools, Policy: tellingPolicy, Log: slog.New(slog.DiscardHandler)})
	})}
	p.world.calls, p.world.tools = p.conf.Calls, p.conf.Tools
	for name, scope := range map[string]token.Scope{"owner": token.Agent, "other": token.Agent} {
		p.tokens[token.Scope(name)] = p.token(scope, name)
	}
	p.loop()
	p.plantCalls()
	p.plantRuns()
	p.plantJob()
	return p
}

func (p *planted) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *planted) park(name string) reply {
	p.t.Helper()
	r := p.want(p.do("owner", "POST", "/v1/tools/"+name+"/call", vaultArgs), 202, "status", "pending")
	p.ids = append(p.ids, r.get("call_id"), r.get("approval_id"))
	p.owns = append(p.owns, "/v1/calls/"+r.get("call_id"))
	return r
}

func (p *planted) goOn(callID string) {
	p.t.Helper()
	_, err := p.calls.Server(httpapi.Origin).Continue(p.t.Context(), callID, func(txn.Tx, call.Call) (bool, error) { return true, nil })
	p.must(err)
}

func (p *planted) plantCalls() {
	decideOn := func(r reply, yes bool, more ...string) {
		more = append(more, `"note":"because of `+marker+`"`)
		p.want(p.do("reviewer", "POST", "/v1/approvals/"+r.get("approval_id")+"/decide", decide(yes, r.get("digest"), more...)), 200)
	}
	ran, failed, rejected, edited, refused := p.park("vault"), p.park("vault_fails"), p.park("vault"), p.park("vault"), p.park("vault")
	p.park("vault")
	decideOn(ran, true)
	decideOn(failed, true)
	decideOn(rejected, false)
	decideOn(edited, true, `"edited_args":`+vaultArgs)
	decideOn(refused, true)
	for _, r := range []reply{ran, failed, edited} {
		p.goOn(r.get("call_id"))
	}
	back := p.park("vault")
	p.want(p.do("owner", "POST", "/v1/approvals/"+back.get("approval_id")+"/withdraw", `{"note":"not with `+marker+`"}`), 200)
	denied := p.want(p.do("owner", "POST", "/v1/tools/vault_denied/call", vaultArgs), 200, "status", "denied")
	p.ids = append(p.ids, denied.get("call_id"))
	var k call.Call
	p.must(txn.View(p.t.Context(), p.st, func(tx call.Tx) (err error) {
		k, err = tx.Call(refused.get("call_id"))
		return err
	}))
	p.must(p.calls.Postpone(p.t.Context(), k, "the vault said "+marker, time.Hour))
	p.must(event.Redact(p.t.Context(), p.st, k.Stream(), 1, "ana", "it had "+marker+" in it"))
}

func (p *planted) plantRuns() {
	agent := func(ps ...run.Proposal) run.Agent {
		return run.AgentFunc(func(_ context.Context, in run.StepInput) (run.Proposal, error) {
			return ps[min(len(in.Steps), len(ps)-1)], nil
		})
	}
	use := func(name string) run.Proposal {
		return run.Proposal{Kind: run.CallTool, Tool: name, Args: json.RawMessage(vaultArgs)}
	}
	for _, a := range []run.Agent{
		agent(use("vault_free"), run.Proposal{Kind: run.Complete, Result: json.RawMessage(`{"token":"` + marker + `","said":"done with ` + marker + `"}`)}),
		agent(use("vault_free"), run.Proposal{Kind: run.Fail, Text: "nothing opens with " + marker}),
		agent(use("vault_denied"), use("vault_fails")),
		agent(use("vault")),
	} {
		d := run.NewDriver(run.Config{Store: p.st, Tools: p.world.tools, Policy: tellingPolicy, Agent: a, Log: slog.New(slog.DiscardHandler)})
		r, err := d.Start(p.t.Context(), "Open the vault with "+marker, run.DefaultLimits(), run.As("owner"))
		p.must(err)
		p.ids = append(p.ids, r.ID)
		p.owns = append(p.owns, "/v1/runs/"+r.ID)
		if r.Status == run.Waiting {
			p.ids = append(p.ids, r.ApprovalID)
			p.must(d.Postpone(p.t.Context(), r, "the vault said "+marker, time.Hour))
		}
	}
	p.owns = append(p.owns, "/v1/runs")
}

func (p *planted) plantJob() {
	line := `{"type":"progress","message":"opening with ` + marker + `","data":{"token":"` + marker + `","done":3}}`
	told := filepath.Join(p.t.TempDir(), "told")
	p.must(os.WriteFile(told, []byte("AGENT_EVENT "+line+"\n"), 0o600))
	spec, err := json.Marshal(map[string]any{
		"command": "cat " + told + "; echo $KEY; read x", "env": map[string]string{"KEY": marker + "-env"}, "secret_env": []string{"KEY"},
	})
	p.must(err)
	j := p.want(p.do("owner", "POST", "/v1/jobs", string(spec)), 201)
	id := j.get("job_id")
	p.t.Cleanup(func() { p.endJob(id) })
	p.ids, p.jobs = append(p.ids, id), append(p.jobs, id)
	at := "/v1/jobs/" + id
	p.want(p.do("owner", "POST", at+"/wait", `{"types":["output:progress"],"timeout_seconds":60}`), 200, "result", "event")
	ask := `{"prompt":"Open it?","options":["yes","no"],"form":` + vaultForm + `}`
	for range 3 {
		q := p.want(p.do("owner", "POST", at+"/decision", ask), 201)
		p.ids, p.dec = append(p.ids, q.get("decision_id")), append(p.dec, q.get("decision_id"))
	}
	p.want(p.do("reviewer", "POST", at+"/decision/"+p.dec[0]+"/resolve", `{"choice":"yes","input":`+vaultInput+`,"note":"because of `+marker+`"}`), 200)
	p.want(p.do("owner", "POST", at+"/decision/"+p.dec[1]+"/withdraw", `{"note":"not needed"}`), 200)
	p.owns = append(p.owns, at+"/events", "/v1/decisions/"+p.dec[0], "/v1/decisions", "/v1/decisions/"+p.dec[0]+"/wait", at, "/v1/jobs")
}

// heads are where every stream ends: the hash of its last event is what a follower
// sees last.
func (p *planted) heads() map[string]string {
	hs := map[string]string{}
	p.must(txn.View(p.t.Context(), p.st, func(tx event.Tx) error {
		for after := ""; ; {
			page, err := tx.Heads(after, 100)
			if err != nil || len(page) == 0 {
				return err
			}
			for _, h := range page {
				hs[h.Stream], after = hex.EncodeToString(h.Hash), h.Stream
			}
		}
	}))
	return hs
}

// reads are all the answers that somebody gets by reading, each route with each id.
func (p *planted) reads(as string) map[string]string {
	ops, _ := operations(p.t)
	got := map[string]string{}
	read := func(method, path, body string) { got[method+" "+path+" "+body] = p.do(as, method, path, body).text }
	for _, o := range ops {
		switch {
		case o.method != http.MethodGet || o.streams():
		case o.ID == "tailJob": // what a job prints is shown as it is; secret_env hides there
		case !strings.Contains(o.path, "{"):
			read("GET", o.path, "")
			for _, q := range []string{"?status=all", "?view=attention", "?order=newest", "?limit=500"} {
				if slices.ContainsFunc(o.Parameters, func(q2 parameter) bool { return strings.HasPrefix(q, "?"+q2.Name) }) {
					read("GET", o.path+q, "")
				}
			}
		default:
			for _, id := range p.ids {
				if o.ID == "waitForQuestion" && id == p.dec[2] {
					continue // nobody answers it
				}
				read("GET", o.at(id), "")
			}
		}
	}
	for _, id := range p.jobs {
		for _, what := range []string{`{"types":["output:progress"]}`, `{"types":["decision_resolved"]}`, `{"types":["decision_requested"]}`, `{"types":["failed"],"return_progress":true}`, `{"decision_id":"` + p.dec[0] + `"}`} {
			read("POST", "/v1/jobs/"+id+"/wait", what)
		}
	}
	return got
}

// acts are answers to what cannot be done any more, and to what is done already.
func (p *planted) acts(as string) map[string]string {
	ops, _ := operations(p.t)
	got := map[string]string{}
	for _, o := range ops {
		bodies := map[string][]string{
			"decide": {decide(true, "sha256-placet1:other"), decide(false, "sha256-placet1:other")}, "withdraw": {""}, "cancelRun": {""}, "resumeRun": {""}, "withdrawCall": {""},
			"confirmCall": {`{"fence":1,"status":"failed","message":"x"}`}, "renewCall": {`{"fence":1}`}, "pauseJob": {""}, "resumeJob": {""},
		}[o.ID]
		for _, b := range bodies {
			for _, id := range p.ids {
				if as == "owner" || o.ID == "cancelRun" {
					continue
				}
				got[o.ID+" "+id+" "+b] = p.do(as, o.method, o.at(id), b).text
			}
		}
	}
	for _, id := range p.dec {
		door := "/v1/jobs/" + p.jobs[0] + "/decision/" + id
		got["withdraw "+id] = p.do(as, "POST", door+"/withdraw", "").text
		got["resolve "+id] = p.do(as, "POST", door+"/resolve", `{"choice":"no","input":`+strings.ReplaceAll(vaultInput, "5", "6")+`}`).text
		got["resolve with another input "+id] = p.do(as, "POST", door+"/resolve", `{"choice":"yes","input":`+strings.ReplaceAll(vaultInput, "5", "6")+`}`).text
		got["resolve again "+id] = p.do(as, "POST", door+"/resolve", `{"choice":"yes","input":`+vaultInput+`}`).text
	}
	return got
}

// A secret that somebody brought shows to nobody else, through whatever is read,
// followed, waited for or refused.
func TestSecretsShowToNobodyElse(t *testing.T) {
	t.Parallel()
	p := plant(t)
	check := func(as, what, text string) {
		if i := strings.Index(text, marker); i >= 0 {
			t.Errorf("%s sees it by %s: …%s…", as, what, text[max(0, i-120):min(len(text), i+60)])
		}
	}
	for _, as := range []string{"other", "reviewer", "operator", "admin"} {
		for what, text := range p.reads(as) {
			check(as, what, text)
		}
		if as == "other" {
			continue
		}
		for stream, last := range p.heads() {
			check(as, stream, p.followed(as, "stream="+stream, last))
		}
		check(as, "all streams", p.followed(as, "", hex.EncodeToString(p.last().Hash)))
	}
	for _, as := range []string{"reviewer", "operator", "admin"} {
		for what, text := range p.acts(as) {
			check(as, what, text)
		}
	}
}

// last is the last event of all.
func (p *planted) last() (e event.Event) {
	p.must(txn.View(p.t.Context(), p.st, func(tx event.Tx) error {
		pos, err := tx.LastPos()
		if err != nil {
			return err
		}
		es, err := tx.Events(event.Query{After: pos - 1, Limit: 1})
		if err == nil {
			e = es[0]
		}
		return err
	}))
	return e
}

// Whoever brought a secret gets it back, and so does the job that asked for it, by its
// own token too.
func TestSecretsShowToWhoBroughtThem(t *testing.T) {
	t.Parallel()
	p := plant(t)
	for _, path := range p.owns {
		if r := p.want(p.do("owner", "GET", path, ""), 200); !strings.Contains(r.text, marker) {
			t.Errorf("%s: %s", path, r.text)
		}
	}
	_, own, err := token.Create(t.Context(), p.st, token.New{Space: "main", Scope: token.Agent, Name: "j", Principal: "owner", JobID: p.jobs[0]})
	p.must(err)
	for _, as := range []string{"owner", own} {
		for _, r := range []reply{
			p.do(as, "GET", "/v1/decisions/"+p.dec[0], ""), p.do(as, "GET", "/v1/decisions/"+p.dec[0]+"/wait?wait=1s", ""),
			p.do(as, "POST", "/v1/jobs/"+p.jobs[0]+"/wait", `{"decision_id":"`+p.dec[0]+`"}`),
		} {
			if !strings.Contains(r.text, `"input":`+vaultInput) {
				t.Errorf("the input is not whole: %s", r.text)
			}
		}
		stream := "job:" + p.jobs[0]
		if text := p.followed(as, "stream="+stream, p.heads()[stream]); !strings.Contains(text, `"input":`+vaultInput) || !strings.Contains(text, `"token":"`+marker+`"`) {
			t.Errorf("followed: %s", text)
		}
	}
	// Who asked for somebody else's job needs the answer, too.
	q, err := decision.Operator{Store: p.st}.Ask(t.Context(), event.MainSpace, p.jobs[0], decision.Asking{Prompt: "?", Form: []byte(vaultForm), By: "reviewer"})
	p.must(err)
	_, err = decision.Operator{Store: p.st}.Resolve(t.Context(), "", q.ID, decision.Answering{Choice: "approve", Input: []byte(vaultInput), By: "ana"})
	p.must(err)
	for _, path := range []string{"/v1/decisions/" + q.ID, "/v1/decisions/" + q.ID + "/wait"} {
		if r := p.do("reviewer", "GET", path, ""); !strings.Contains(r.text, `"input":`+vaultInput) {
			t.Errorf("the input is not whole: %s", r.text)
		}
		if r := p.do("operator", "GET", path, ""); strings.Contains(r.text, marker) || !strings.Contains(r.text, `"epochs":5`) {
			t.Errorf("to others: %s", r.text)
		}
	}
}

// What is shown masked is a view: the stored event stays, and its chain verifies.
func TestMaskedEventsStayWhole(t *testing.T) {
	t.Parallel()
	p := plant(t)
	of := func(as string) map[string]event.Object {
		var page httpapi.Events
		r := p.want(p.do(as, "GET", "/v1/jobs/"+p.jobs[0]+"/events", ""), 200)
		p.must(json.Unmarshal([]byte(r.text), &page))
		got := map[string]event.Object{}
		for _, e := range page.Events {
			got[fmt.Sprint(e.StreamSeq)] = e
		}
		return got
	}
	mine, others := of("owner"), of("reviewer")
	changed := 0
	for seq, e := range mine {
		o := others[seq]
		if e.Hash != o.Hash || e.Cursor != o.Cursor || e.Type != o.Type || e.Subject != o.Subject {
			t.Errorf("event %s is another one: %+v, %+v", seq, e, o)
		}
		if string(e.Payload) != string(o.Payload) {
			changed++
		}
	}
	if len(mine) != len(others) || changed < 3 {
		t.Errorf("%d events, %d masked", len(others), changed)
	}
	found, err := event.Verify(t.Context(), p.st, nil)
	if err != nil || found.Break != nil {
		t.Errorf("the chain: %+v, %v", found, err)
	}
}

// A refusal names what stands, to others without its secrets, however long it is.
func TestAConflictNamesTheStandingAnswer(t *testing.T) {
	t.Parallel()
	p := plant(t)
	at := "/v1/jobs/" + p.jobs[0] + "/decision/"
	long := `{"password":"` + strings.Repeat("ab", 90) + marker + `","answer":"otp","epochs":7}`
	p.want(p.do("reviewer", "POST", at+p.dec[2]+"/resolve", `{"choice":"yes","input":`+long+`}`), 200)
	for _, id := range []string{p.dec[0], p.dec[2]} {
		r := p.want(p.do("reviewer", "POST", at+id+"/resolve", `{"choice":"yes","input":{"epochs":6}}`), 409, "reason", "choice_conflict")
		if strings.Contains(r.text, "Planted") || strings.Contains(r.text, "abab") {
			t.Errorf("%s", r.text)
		}
		d, _ := r.body["details"].(map[string]any)
		if input, _ := d["input"].(map[string]any); d["decision_id"] != id || d["choice"] != "yes" || input["password"] != "[masked]" || input["epochs"] == nil {
			t.Errorf("the facts: %s", r.text)
		}
	}
}

// In pages the secrets of whoever is signed in are masked like anybody's.
func TestPagesHideOnesOwnSecrets(t *testing.T) {
	t.Parallel()
	p := plant(t)
	p.tokens["signed-in"] = p.token(token.Reviewer, "owner") // the same principal
	ts, err := token.List(t.Context(), p.st, token.Query{Space: "main"})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ts, func(o token.Token) bool { return o.Name == "owner" && o.Scope == token.Reviewer })
	read := 0
	for _, path := range p.owns {
		if !strings.Contains(p.do("signed-in", "GET", path, "").text, marker) {
			continue // it is told to the agent that waits for it, and to nobody else
		}
		read++
		_, shown, err := p.api.As(ts[i]).Send(t.Context(), http.MethodGet, path, nil, nil, nil)
		if err != nil || strings.Contains(string(shown), marker) {
			t.Errorf("%s for a page: %v %s", path, err, shown)
		}
	}
	if read < len(p.owns)/2 {
		t.Errorf("only %d of %d paths show the owner its own", read, len(p.owns))
	}
}
