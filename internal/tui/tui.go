package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/txn"
)

// Config is what the inbox works with.
type Config struct {
	Store txn.Store
	Space string
	// Operator decides, with the rights of who is at the terminal.
	Operator decision.Operator
	By       string // the name that answers carry
	// Command is a command line that reaches the same store, for people to type.
	Command func(words ...string) string
	// Absent says that no daemon goes on with its work; empty: one does. It is asked once
	// something was approved that waits for a daemon. Nil: nobody knows.
	Absent func() string

	// Now counts the time down. Default: time.Now.
	Now func() time.Time
	// After sends msg once d is over. Default: tea.Tick.
	After func(d time.Duration, msg tea.Msg) tea.Cmd
}

// Reasons why the inbox ended by itself.
var (
	ErrSignal = fault.Sentinel(fault.Unavailable, "interrupted", "The inbox was ended by a signal. What was not answered in it is as it was.")
	ErrGone   = fault.Sentinel(fault.Unavailable, "terminal_gone", "The inbox ended because its terminal is gone. What was not answered in it is as it was.")
)

// Run shows the inbox on a terminal until somebody leaves it: nil. It ends by itself with
// ctx ([ErrSignal]), with its terminal ([ErrGone]) and with an error of the store. The
// terminal is as it was before then, and nothing is decided by the ending. An answer that
// was on its way is waited for, and last says what came of it; mostly it is empty.
func Run(ctx context.Context, c Config, in, out *os.File) (last string, err error) {
	a := newApp(ctx, c)
	keys := &keyboard{File: in}
	p := tea.NewProgram(a, tea.WithContext(ctx), tea.WithInput(keys), tea.WithOutput(out), tea.WithoutSignalHandler())
	keys.gone = func() { go p.Send(goneMsg{}) }
	_, err = p.Run()
	return a.flight.landed(), a.ended(ctx, err)
}

func (a *app) ended(ctx context.Context, err error) error {
	switch {
	case a.err != nil:
		return a.err
	case ctx.Err() != nil:
		return ErrSignal
	case errors.Is(err, tea.ErrProgramPanic):
		return fault.New(fault.Internal, "The inbox failed. What was not answered in it is as it was.").Because(err)
	case err != nil:
		return ErrGone.Because(err)
	}
	return nil
}

// keyboard notices that nobody will type any more: the program itself would go on showing.
type keyboard struct {
	*os.File
	gone func()
	once sync.Once
}

// Read is the file's.
func (k *keyboard) Read(b []byte) (int, error) {
	n, err := k.File.Read(b)
	if err != nil || n == 0 && len(b) > 0 {
		k.once.Do(k.gone)
		if err == nil {
			err = io.EOF
		}
	}
	return n, err
}

type goneMsg struct{}
