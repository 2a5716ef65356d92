package view

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/a-h/templ"

	"github.com/placet-dev/placet/internal/display"
)

// Room is how much of one page documents may take, in bytes of HTML. What does not fit is
// shown in part, or by its size alone: a page stays one that a browser can show, whatever
// is stored.
type Room struct{ left int }

// NewRoom is the room of one page.
func NewRoom() *Room { return &Room{left: 200 << 10} }

// What one document may take, in bytes of HTML.
const (
	besideOthers = 6 << 10
	byItself     = 120 << 10
)

var errNoRoom = errors.New("no room")

// fit is a component that is made already, if it takes at most so many bytes and they are
// left.
func (r *Room) fit(ctx context.Context, c templ.Component, most int) (templ.Component, bool) {
	w := narrow{left: min(most, r.left)}
	if c.Render(ctx, &w) != nil {
		return nil, false
	}
	r.left -= w.got.Len()
	return templ.Raw(w.got.String()), true
}

// narrow takes so many bytes and no more.
type narrow struct {
	got  bytes.Buffer
	left int
}

// Write is io.Writer's.
func (w *narrow) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errNoRoom
	}
	return w.got.Write(b)
}

// smallDoc is up to how many bytes a document stands in a page without being opened.
const smallDoc = 600

// excerptOf is how many bytes of room there have to be for each character of an excerpt:
// one that cannot be seen takes more than it does in a text.
const excerptOf = 10

// Doc shows a JSON document as far as there is room: as a tree, in part, or by its size.
// whole is where all of it is shown; empty: nowhere.
func Doc(room *Room, m *display.Mask, doc []byte, most int, whole string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		tree, alone := m.Tree(doc), most == byItself
		for _, open := range []bool{true, false} {
			if open && !alone {
				continue
			}
			if made, ok := room.fit(ctx, Tree(tree, open), most); ok {
				return docWhole(made, len(doc), alone || len(doc) <= smallDoc).Render(ctx, w)
			}
		}
		head, tail, _ := display.HeadTail(string(m.JSON(doc)), most/excerptOf)
		if made, ok := room.fit(ctx, docPart(head, tail), most); ok {
			return docCut(made, len(doc), whole).Render(ctx, w)
		}
		return docCut(nil, len(doc), whole).Render(ctx, w)
	})
}

// Foreign shows a text as far as there is room.
func Foreign(room *Room, s string, most int) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if made, ok := room.fit(ctx, Long(s, false), most); ok {
			return made.Render(ctx, w)
		}
		if made, ok := room.fit(ctx, Long(first(s, 200), false), most); ok {
			return made.Render(ctx, w)
		}
		return docCut(nil, len(s), "").Render(ctx, w)
	})
}

// at reads a time as the API writes it; zero where there is none.
func at(stamp string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return time.Time{}
	}
	return t
}
