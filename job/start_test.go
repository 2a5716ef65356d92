package job_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/placet-dev/placet/job"
)

// A name and tags are shown to everybody who sees the job: a secret in them is refused,
// the field is named, and the secret is not repeated.
func TestSecretInLabels(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, c := range map[string]struct {
		secret, name string
		tags         []string
		field        string // that is refused; empty: none
	}{
		"in the name":              {"hunter2hunter2", "x hunter2hunter2", nil, "name"},
		"all of the name":          {"hunter2hunter2", "hunter2hunter2", nil, "name"},
		"in a tag":                 {"hunter2hunter2", "x", []string{"a", "b=hunter2hunter2"}, "tags"},
		"without its line end":     {"hunter2hunter2\n", "x hunter2hunter2", nil, "name"},
		"as JSON spells it":        {`hunter"2`, `x hunter\"2`, nil, "name"},
		"its beginning":            {"hunter2hunter2", "hunter2", []string{"hunter2"}, ""},
		"the name of the variable": {"hunter2hunter2", "KEY", []string{"KEY"}, ""},
		"an empty secret":          {"", "x", []string{"a"}, ""},
	} {
		spec := shell("true")
		spec.Env, spec.SecretEnv = map[string]string{"OTHER": "x", "KEY": c.secret}, []string{"KEY"}
		spec.Name, spec.Tags = c.name, c.tags
		before := len(w.list())
		_, err := w.s.Start(w.ctx, job.Starting{Spec: spec, IdempotencyKey: name})
		if c.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, job.ErrUsage) || !strings.Contains(err.Error(), c.field+" ") || !strings.Contains(err.Error(), "KEY") || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(w.list()); n != before {
			t.Errorf("%s: %d jobs, before %d", name, n, before)
		}
	}
}

func (w *world) list() []job.Job {
	w.Helper()
	js, err := w.s.List(w.ctx, job.Query{})
	if err != nil {
		w.Fatal(err)
	}
	return js
}
