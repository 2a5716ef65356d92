package view

// Shell is what is around each page.
type Shell struct {
	Title   string
	Nonce   string // of this answer's script and style
	Style   string // paths of the assets
	Code    string
	Who     Who
	Section Section // which one this is
	Count   int64   // what waits for people; below 0: not known
	Live    string  // where the page hears of what happens; empty: it does not
	Store   string  // what the store's state keeps anybody from doing; empty: nothing
}

// Who is signed in. The zero Who is nobody.
type Who struct {
	Name      string // the label that is recorded
	Principal string // who was proved
	Scope     string
	FormToken string // proves that a form came from this sign-in's own page
	Decides   bool   // may answer what waits
	Operates  bool   // may try deliveries again
}

// both is the label, and who was proved where that is another name.
func (w Who) both() string {
	if w.Principal == "" || w.Principal == w.Name {
		return w.Name
	}
	return w.Name + " (proved as " + w.Principal + ")"
}

// Section is a part of the inbox.
type Section string

// The sections.
const (
	Waiting    Section = "waiting"
	Decided    Section = "decided"
	Runs       Section = "runs"
	Jobs       Section = "jobs"
	Events     Section = "events"
	Deliveries Section = "deliveries"
)

type link struct {
	to      string
	text    string
	section Section
}

var sections = []link{
	{"/", "Waiting", Waiting},
	{"/decided", "Decided", Decided},
	{"/runs", "Runs", Runs},
	{"/jobs", "Jobs", Jobs},
	{"/events", "Events", Events},
	{"/deliveries", "Deliveries", Deliveries},
}

// Notice is something that a page says above its content.
type Notice struct {
	Sort  NoticeSort
	Title string
	Text  string // may be foreign
	More  string // what to do
	To    string // a page of ours that More leads to; empty: none
}

// NoticeSort is how a notice is marked.
type NoticeSort string

// The sorts of notices.
const (
	Plain   NoticeSort = "plain"
	Good    NoticeSort = "good"
	Warning NoticeSort = "warning"
	Refused NoticeSort = "refused"
)
