package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/tool"
)

// write opens a text in the person's own editor, and hands what they wrote to s.
func (a *app) write(s screen, text string) tea.Cmd {
	command, err := editorCommand()
	if err != nil {
		return func() tea.Msg { return editedMsg{of: s, err: err} }
	}
	e := &editing{ctx: a.ctx, command: command, text: []byte(text)}
	return tea.Exec(e, func(err error) tea.Msg { return editedMsg{of: s, text: e.text, err: err} })
}

// editorCommand is what the person named, as they would type it in a shell, or an editor
// that is there.
func editorCommand() (string, error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if c := os.Getenv(name); c != "" {
			return c, nil
		}
	}
	for _, c := range []string{"vi", "nano"} {
		if _, err := exec.LookPath(c); err == nil {
			return c, nil
		}
	}
	return "", fault.New(fault.Unavailable, "There is no editor: neither VISUAL nor EDITOR is set, and vi and nano are not there.").
		Hint("Set EDITOR, or use placet approve --edit FILE.")
}

// editing is an editor at work on a file that only this person can read. The file is gone
// when it ends, however it ends.
type editing struct {
	ctx      context.Context
	command  string
	text     []byte // as it was, then as it was written
	in       io.Reader
	out, err io.Writer
}

// The editor uses the terminal that the inbox has.
func (e *editing) SetStdin(r io.Reader)  { e.in = r }
func (e *editing) SetStdout(w io.Writer) { e.out = w }
func (e *editing) SetStderr(w io.Writer) { e.err = w }

// Run is tea.ExecCommand's.
func (e *editing) Run() (err error) {
	dir, err := os.MkdirTemp("", "placet-edit-") // for its owner alone
	if err != nil {
		return fault.New(fault.Unavailable, "There is no place for the file to edit.").Because(err)
	}
	defer os.RemoveAll(dir) // with what the editor left beside it
	path := filepath.Join(dir, "arguments.json")
	if err := os.WriteFile(path, e.text, 0o600); err != nil {
		return fault.New(fault.Unavailable, "The file to edit could not be written.").Because(err)
	}
	if err := e.open(path); err != nil {
		return err
	}
	e.text, err = readBounded(path)
	return err
}

func (e *editing) open(path string) error {
	c := exec.CommandContext(e.ctx, "sh", "-c", e.command+` "$1"`, "sh", path)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGHUP) } // what a closed terminal sends
	c.WaitDelay = 2 * time.Second
	c.Stdin, c.Stdout, c.Stderr = file(e.in), e.out, e.err
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case e.ctx.Err() != nil:
		return context.Canceled
	case errors.As(err, &exit) && exit.ExitCode() == 127: // a shell's word for what it does not find
		return fault.New(fault.Invalid, "The editor %s was not found.", e.command).Hint("Set EDITOR to one that is there, such as EDITOR=vi.")
	case errors.As(err, &exit):
		return fault.New(fault.Invalid, "%s ended with %s.", e.command, exit)
	case err != nil:
		return fault.New(fault.Unavailable, "%s could not be started.", e.command).Because(err)
	}
	return nil
}

// file is the keyboard's own file: an editor needs a terminal, not a copy of its bytes.
func file(r io.Reader) io.Reader {
	if k, ok := r.(*keyboard); ok {
		return k.File
	}
	return r
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.Invalid, "What was written cannot be read.").Because(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, tool.MaxArgs+1))
	switch {
	case err != nil:
		return nil, fault.New(fault.Invalid, "What was written cannot be read.").Because(err)
	case len(b) > tool.MaxArgs:
		return nil, fault.New(fault.TooLarge, "What was written has more than %d bytes, which is the limit for arguments.", tool.MaxArgs)
	}
	return b, nil
}
