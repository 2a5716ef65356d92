package cli

import (
	"strings"

	"github.com/placet-dev/placet/internal/place"
)

// passwordShows says that a password stands in the command line; empty: it does not. What
// PLACET_DB says only the user's own processes can read.
func (a *app) passwordShows() string {
	p, err := a.place()
	if a.db == "" || err != nil || !p.HasPassword() {
		return ""
	}
	return "The password in --db can be seen by every user of this machine, in the list of processes: leave it out there, and put it in ~/.pgpass, PGPASSWORD or PLACET_DB."
}

// lookWay looks at the way to a server: who could read the password or the traffic.
func (a *app) lookWay(f *findings, p place.Place) {
	if says := a.passwordShows(); says != "" {
		f.attention("password", "%s", says)
	}
	switch says, open := p.Openness(); {
	case open:
		f.attention("transport", "%s", says)
	case says != "":
		f.note("transport", "%s", says)
	}
}

// lookServer tells what there is to know about the server that a store is on. A file has
// none. What stands in the report in words is not said again.
func lookServer(f *findings, r place.Report) {
	s := r.Postgres
	if s == nil {
		return
	}
	f.ok("server", "PostgreSQL %s, database %s, schema %s", strings.TrimPrefix(s.Server, "PostgreSQL "), s.Database, s.SchemaName)
	said := func(word string) bool {
		return strings.Contains(strings.ToLower(strings.Join(r.Problems, "\n")+"\n"+strings.Join(r.Warnings, "\n")), word)
	}
	if s.Identity == "agrees" {
		f.ok("identity", "it is the server that the store was made on")
	} else if r.OK() {
		f.attention("identity", "%s", s.Identity)
	}
	if s.Settings["synchronous_commit"] == "off" && !said("synchronous_commit") {
		f.attention("durability", "synchronous_commit is off, so that a crash of the server can forget a start that was committed: set it to on for this role or database")
	}
	if s.Settings["is_superuser"] == "on" && !said("superuser") {
		f.note("role", "%s is a superuser: give Placet a role of its own, which owns its schema and nothing else", s.Role)
	}
	for _, w := range r.Warnings {
		f.note("server", "%s", w)
	}
	f.note("owner", "Whoever can connect as %s decides. Where an agent runs as your user it can read ~/.pgpass, too: give it another user. Decisions made here say verified: false.", s.Role)
}
