package pgtest

import "testing"

func TestCommitAt(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]int{
		"commit": 0, "COMMIT;": 0, " Commit work": 0, "end": 0, "END TRANSACTION": 0, "commit and chain": 0,
		"/* a /* b */ c */ commit -- done": 0, "-- first\ncommit": 0,
		"insert into a values ('x;y'); commit":                   1,
		";; begin; insert into a values (1) ; commit; select 1":  2,
		"select $$; commit; $$; select $q$ $$;end$$ $q$; commit": 2,
		"select $1, $2; commit":                                  1,
		"select 'it''s; commit'":                                 -1,
		`select "; commit" from a`:                               -1,
		"select 1 -- ; commit":                                   -1,
		"select 1 /* ; commit */":                                -1,
		"select a$b$, c$b$ ; commit":                             1,
		"commit prepared 'x'":                                    -1,
		"committed":                                              -1,
		"select case when true then 1 end":                       -1,
		"rollback":                                               -1,
		"do $body$ begin null; end; $body$":                      -1,
		"select 'never closed; commit":                           -1,
		"select $tag$ never closed; commit":                      -1,
		"":                                                       -1, ";": -1, "/*": -1,
	} {
		if got := commitAt(sql); got != want {
			t.Errorf("commitAt(%q) = %d, not %d", sql, got, want)
		}
	}
}

// Whatever the text, it is read to its end and no further.
func FuzzCommitAt(f *testing.F) {
	for _, sql := range []string{"commit", "select $a$ $a$; end", "/*/*", "'", "$", "$$", "--", "é; commit"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		if at := commitAt(sql); at > len(sql) {
			t.Errorf("statement %d in %d bytes", at, len(sql))
		}
	})
}
