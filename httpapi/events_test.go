package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/placet-dev/placet/token"
)

// followed reads a stream of events up to the line that has a text in it.
func (w *world) followed(as, query, until string) string {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.http.URL+"/v1/events?"+query, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	if s, ok := w.tokens[token.Scope(as)]; ok {
		as = s
	}
	req.Header.Set("Authorization", "Bearer "+as)
	res, err := w.http.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		w.t.Fatalf("following %q: %d", query, res.StatusCode)
	}
	var text strings.Builder
	for lines := bufio.NewReader(res.Body); ; {
		line, err := lines.ReadString('\n')
		text.WriteString(line)
		if err != nil {
			w.t.Fatalf("following %q ended without %q: %v\n%s", query, until, err, text.String())
		}
		if strings.Contains(line, until) {
			return text.String()
		}
	}
}

// An agent follows the jobs that it started, also with such a job's own token, which
// is good for that job's stream and for nothing else.
func TestAgentFollowsItsJobs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.tokens["other"] = w.token(token.Agent, "other")
	j, q := w.ask(`{"prompt":"Go on?"}`)
	stream := "stream=job:" + j.get("job_id")
	p := w.park("agent")
	second, _ := w.ask(`{"prompt":"Go on?"}`)
	_, own, err := token.Create(t.Context(), w.st, token.New{Space: "main", Scope: token.Agent, Name: "j", Principal: "agent", JobID: j.get("job_id")})
	if err != nil {
		t.Fatal(err)
	}
	for _, as := range []string{"agent", own, "reviewer"} {
		if got := w.followed(as, stream, q.get("decision_id")); !strings.Contains(got, "event: queued\n") {
			t.Errorf("%s", got)
		}
	}
	told := make(chan string)
	go func() { told <- w.followed("agent", stream+"&after="+q.get("cursor"), "decision_resolved") }()
	w.want(w.do("reviewer", "POST", fmt.Sprintf("/v1/jobs/%s/decision/%s/resolve", j.get("job_id"), q.get("decision_id")), `{"choice":"deny"}`), 200)
	<-told
	for what, tt := range map[string]struct {
		as, query string
		status    int
	}{
		"another's job":                     {"other", stream, 404},
		"no job":                            {"agent", "stream=job:job_x", 404},
		"a job's token, another job":        {own, "stream=job:" + second.get("job_id"), 404},
		"a job's token, its starter's call": {own, "stream=call:" + p.get("call_id"), 404},
		"a job's token, all":                {own, "", 403},
		"an agent, all":                     {"agent", "", 403},
		"a word":                            {"agent", "stream=x", 404},
	} {
		if r := w.do(tt.as, "GET", "/v1/events?"+tt.query, ""); r.status != tt.status {
			t.Errorf("%s: %d %s", what, r.status, r.text)
		}
	}
}
