package migrate_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/placet-dev/placet/internal/migrate"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files []string
		want  []int
		wrong []string // words of the refusal
	}{
		{"OK", []string{"0002_b.sql", "0001_a.sql", "0010_j.sql", "0003_c.sql", "0004_d.sql", "0005_e.sql", "0006_f.sql", "0007_g.sql", "0008_h.sql", "0009_i.sql"}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, nil},
		{"InAFolder", []string{"migrations/0001_a.sql", "migrations/README.md"}, []int{1}, nil},
		{"Double", []string{"0001_a.sql", "0002_b.sql", "0002_c.sql"}, nil, []string{"0002_b.sql", "0002_c.sql", "same number 2"}},
		{"DoubleOtherDigits", []string{"1_a.sql", "0001_b.sql"}, nil, []string{"1_a.sql", "0001_b.sql"}},
		{"Gap", []string{"0001_a.sql", "0003_c.sql"}, nil, []string{"step 2 is missing", "0003_c.sql"}},
		{"NoFirst", []string{"0002_b.sql"}, nil, []string{"step 1 is missing", "0002_b.sql"}},
		{"NoNumber", []string{"init.sql"}, nil, []string{"init.sql", "0001_init.sql"}},
		{"Zero", []string{"0000_a.sql"}, nil, []string{"0000_a.sql"}},
		{"None", nil, nil, []string{"no schema steps"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fsys := fstest.MapFS{}
			for _, f := range tt.files {
				fsys[f] = &fstest.MapFile{Data: []byte("-- " + f)}
			}
			steps, err := migrate.Load(fsys)
			for _, word := range tt.wrong {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Fatalf("Load said %v, want it to name %q", err, word)
				}
			}
			if tt.wrong != nil {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range steps {
				if s.Number != tt.want[i] || !strings.HasSuffix(s.SQL, s.Name) {
					t.Errorf("step %d is %d %s with %q", i, s.Number, s.Name, s.SQL)
				}
			}
			if len(steps) != len(tt.want) {
				t.Errorf("%d steps, want %d", len(steps), len(tt.want))
			}
		})
	}
}

func TestPending(t *testing.T) {
	t.Parallel()
	steps := []migrate.Step{{Number: 1}, {Number: 2}, {Number: 3}}
	for from, want := range map[int]int{0: 3, 1: 2, 3: 0, 4: 0} {
		if got := len(migrate.Pending(steps, from)); got != want {
			t.Errorf("from schema %d there are %d steps, want %d", from, got, want)
		}
	}
}
