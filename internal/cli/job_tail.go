package cli

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/job"
)

func newJobTailCommand(a *app) *cobra.Command {
	var q job.Tailing
	stream := string(job.Stdout)
	c := &cobra.Command{
		Use: "tail JOB", Short: "Print what a job has printed", Args: oneArg("JOB", ""),
		Long: `Prints a job's output from its beginning, secrets masked. A pipe or a file gets the
bytes as they are; at a terminal what cannot be seen is shown as an escape.`,
		PreRunE: func(*cobra.Command, []string) error {
			switch q.Stream = job.Stream(stream); {
			case q.Stream != job.Stdout && q.Stream != job.Stderr:
				return use("There is no stream "+quote(stream)+".", "It is stdout or stderr.")
			case q.Offset < 0:
				return use("--offset is a number of bytes, and not negative.", "0 is the beginning.")
			}
			return nil
		},
		RunE: a.ofJob(func(ctx context.Context, d reached, jobID string, _ []string) error {
			return a.tailJob(ctx, d, jobID, q)
		}),
	}
	f := c.Flags()
	f.StringVar(&stream, "stream", stream, "`WORD`: stdout or stderr")
	f.Int64Var(&q.Offset, "offset", 0, "`BYTES` to leave out")
	f.BoolVar(&q.Follow, "follow", false, "go on until the job ends")
	return c
}

// tailPage is how much is asked for at once.
const tailPage = 64 << 10

func (a *app) tailJob(ctx context.Context, d reached, jobID string, q job.Tailing) error {
	q.MaxBytes = tailPage
	p := outputPrinter{app: a, person: terminalOf(a.out.to) != nil}
	for {
		t, err := d.TailJob(ctx, jobID, q)
		if err != nil {
			p.print(nil, true)
			return err
		}
		if a.json {
			a.emit(t)
		} else {
			p.print(t.Data, t.End)
		}
		q.Offset = t.Next
		if t.End || !q.Follow && len(t.Data) == 0 {
			p.print(nil, true)
			return nil
		}
	}
}

// outputPrinter prints what a command printed, as it comes in pieces.
type outputPrinter struct {
	*app
	person bool   // sits there: what a terminal would obey is shown as an escape
	held   []byte // the end of the last piece, which is told only together with what follows
}

// print passes bytes on. The last ones of a piece may be half a character, or of a whole
// page half of what reads as an escape: they are held back until more comes.
func (p *outputPrinter) print(piece []byte, last bool) {
	if !p.person {
		_, _ = p.out.Write(piece)
		return
	}
	b := append(p.held, piece...)
	n := len(b)
	if !last {
		n = wholeCharacters(b)
		if len(piece) == tailPage {
			n = atWhiteSpace(b[:n])
		}
	}
	p.held = bytes.Clone(b[n:])
	for i, line := range bytes.Split(b[:n], []byte("\n")) {
		if i > 0 {
			fmt.Fprint(p.out, "\n")
		}
		fmt.Fprint(p.out, p.line(string(line)))
	}
}

// wholeCharacters is how much of b is no beginning of a character.
func wholeCharacters(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n:]; utf8.RuneStart(c[0]) {
			if !utf8.FullRune(c) {
				return len(b) - n
			}
			break
		}
	}
	return len(b)
}

// atWhiteSpace is how much of b stands before its last white space: nothing reads across
// that. All of it, where there is none near its end.
func atWhiteSpace(b []byte) int {
	const near = 4 << 10
	if i := bytes.LastIndexAny(b[max(0, len(b)-near):], " \n"); i > 0 {
		return max(0, len(b)-near) + i
	}
	return len(b)
}
