package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/placet-dev/placet/canon"
)

// Exec is a [Runner] that starts a program for each call (spec 4.2).
//
// The program gets the argument bytes on its standard input and prints one JSON
// value of at most [MaxResult] bytes. It runs in Dir, in a process group of its own,
// with PATH, HOME, LANG, TZ and TMPDIR of this process where they are set, the
// variables PLACET_CALL_ID, PLACET_RUN_ID and PLACET_ATTEMPT, and nothing else.
//
// An exit other than 0 is an error that the tool returns: the last 4 KiB of standard
// error are its message. A program that could not be started is [ErrNotStarted]; one
// that was killed, printed too much, or ended with 0 but without exactly one JSON
// value is [ErrOutcomeUnknown]. When the context ends the group gets SIGTERM and
// after 2 s SIGKILL.
type Exec struct {
	Argv []string // the program as it was named, and its arguments
	Dir  string   // absolute; where the program runs
	Pin  bool     // the program's content is part of the implementation

	path string // absolute path of the program
	sum  string // its SHA-256 in hex, if pinned
	impl string
}

var _ Runner = (*Exec)(nil)

// NewExec finds the program argv[0]: a bare name through PATH, a relative path from
// dir (empty: the working directory). With pin it reads the program's content and
// starts it later only while that is the same; pin covers that one file, not
// what it loads (a script named in argv[1], say), and not a change in the instant
// between check and start. The error matches [ErrInvalidTool] and says what is missing.
func NewExec(argv []string, dir string, pin bool) (*Exec, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, ErrInvalidTool.Say("exec names no program.").Hint("Write it as a list: the program, then its arguments.")
	}
	dir, err := programDir(dir)
	if err != nil {
		return nil, err
	}
	path, err := findProgram(argv[0], dir)
	if err != nil {
		return nil, err
	}
	e := &Exec{Argv: slices.Clone(argv), Dir: dir, Pin: pin, path: path}
	if pin {
		if e.sum, err = fileSum(path); err != nil {
			return nil, ErrInvalidTool.Say("The program %s cannot be read, so it cannot be pinned: %s.", shown(path), cause(err))
		}
	}
	if e.impl, err = e.describe(); err != nil {
		return nil, err
	}
	return e, nil
}

func programDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", ErrInvalidTool.Say("The folder %s has no absolute path: %s.", shown(dir), cause(err))
	}
	info, err := os.Stat(abs)
	switch {
	case err != nil:
		return "", ErrInvalidTool.Say("The folder %s cannot be used: %s.", shown(abs), cause(err))
	case !info.IsDir():
		return "", ErrInvalidTool.Say("%s is not a folder.", shown(abs))
	}
	return abs, nil
}

// findProgram is the absolute path of an executable file.
func findProgram(name, dir string) (string, error) {
	path := name
	if strings.ContainsRune(name, '/') || filepath.IsAbs(name) || strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, name)
		}
		path = filepath.Clean(path)
	}
	found, err := exec.LookPath(path)
	switch {
	case errors.Is(err, exec.ErrDot):
		return "", ErrInvalidTool.Say("The program %s is found only because PATH has a relative folder.", shown(name)).
			Hint("Write it with its path, as in ./%s.", name)
	case errors.Is(err, exec.ErrNotFound):
		return "", ErrInvalidTool.Say("The program %s is in no folder of PATH.", shown(name)).
			Hint("Write its path; a relative one starts at %s.", dir)
	case errors.Is(err, fs.ErrPermission):
		return "", ErrInvalidTool.Say("The program %s is not an executable file.", shown(path)).
			Hint("Make it one: chmod +x %s", path)
	case err != nil:
		return "", ErrInvalidTool.Say("The program %s cannot be used: %s.", shown(path), cause(err))
	}
	return found, nil
}

// cause is an error of the file system without the path, which the sentence names already.
func cause(err error) string {
	var pe *fs.PathError
	var ee *exec.Error
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &ee):
		err = ee.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "it does not exist"
	}
	return short(err.Error())
}

// Implementation is what a yes to this tool is bound to (spec 1.2): `exec`, with Pin
// then `sha256:` and the program's SHA-256 in hex, then the program's absolute path
// and the arguments, all parted by one space. An element that is empty or has a
// space, a double quote, a backslash or a control character is written as a JSON string.
func (e *Exec) Implementation() string { return e.impl }

func (e *Exec) describe() (string, error) {
	b := []byte("exec")
	if e.Pin {
		b = append(append(b, " sha256:"...), e.sum...)
	}
	for i, arg := range e.Argv {
		if i == 0 {
			arg = e.path
		}
		if hasNUL(arg) {
			return "", ErrInvalidTool.Say("The argument %s has a NUL character.", shown(arg))
		}
		quoted, err := canon.AppendString(nil, arg)
		if err != nil {
			return "", ErrInvalidTool.Say("The argument %s is not valid UTF-8.", shown(arg))
		}
		b = append(b, ' ')
		if needsQuotes(arg) {
			b = append(b, quoted...)
		} else {
			b = append(b, arg...)
		}
	}
	return string(b), nil
}

func needsQuotes(arg string) bool {
	return arg == "" || strings.ContainsFunc(arg, func(r rune) bool {
		return r == ' ' || r == '"' || r == '\\' || unicode.IsControl(r)
	})
}

// checkPin refuses a program whose content is not what was approved.
func (e *Exec) checkPin() error {
	if !e.Pin {
		return nil
	}
	sum, err := fileSum(e.path)
	switch {
	case err != nil:
		return ErrNotStarted.Say("The program %s was not started: it is pinned and cannot be read: %s.", shown(e.path), cause(err))
	case sum != e.sum:
		return ErrNotStarted.Say("The program %s was not started: it changed since it was loaded, and it is pinned.", shown(e.path)).
			Hint("Load the configuration again; what was approved for the old program then needs a new yes.")
	}
	return nil
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Run starts the program and waits for it. The result is the bytes it printed,
// without white space around them.
func (e *Exec) Run(ctx context.Context, c Call) (json.RawMessage, error) {
	out, err := e.output(ctx, c)
	if err != nil {
		return nil, err
	}
	value, err := oneValue(out)
	if err != nil {
		return nil, ErrOutcomeUnknown.Say("The program ended with exit status 0, but %s.", err)
	}
	return value, nil
}

// ExecProbe is a [Prober] that asks a program what became of a call. The program
// gets what the tool's program got (see [Exec]) and prints one of
//
//	{"outcome":"succeeded","result":…}
//	{"outcome":"failed","message":"…"}
//	{"outcome":"not_found"}
//
// and nothing else. Everything else, an exit other than 0 included, is an error.
type ExecProbe struct {
	exec *Exec
}

var _ Prober = (*ExecProbe)(nil)

// NewExecProbe finds the program as [NewExec] does. A probe is not part of a tool's spec.
func NewExecProbe(argv []string, dir string) (*ExecProbe, error) {
	e, err := NewExec(argv, dir, false)
	if err != nil {
		return nil, err
	}
	return &ExecProbe{e}, nil
}

// Probe runs the program and reads its answer.
func (p *ExecProbe) Probe(ctx context.Context, c Call) (ProbeResult, error) {
	out, err := p.exec.output(ctx, c)
	if err != nil {
		return ProbeResult{}, fmt.Errorf("run the probe: %w", err)
	}
	return parseProbe(out)
}
