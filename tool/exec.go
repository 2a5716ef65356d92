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
	Pin  bool     // the content of the program, and of files among its arguments, is part of the implementation

	path    string // absolute path of the program
	pins    []pinned
	usesDir bool // an argument names something in Dir
	impl    string
}

// pinned is a file that has to stay as it is.
type pinned struct {
	what string // "program" or "file"
	path string
	sum  string // SHA-256 in hex
}

var _ Runner = (*Exec)(nil)

// NewExec finds the program argv[0]: a bare name through PATH, a relative path from
// dir (empty: the working directory).
//
// With pin it reads the content of the program, and of each argument that is the path
// of a regular file, and starts the program later only while that is the same. Pin
// does not cover what these load in turn, a file inside another argument
// (--file=deploy.sh), or a change in the instant between check and start. A file that
// the program itself writes to is no argument for a pinned tool.
//
// The error matches [ErrInvalidTool] and says what is missing.
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
	files := e.lookAtArguments()
	if pin {
		if err := e.pin(files); err != nil {
			return nil, err
		}
	}
	if e.impl, err = e.describe(); err != nil {
		return nil, err
	}
	return e, nil
}

// lookAtArguments finds out whether an argument is a relative path of something in
// Dir, and returns the regular files that arguments are paths of.
func (e *Exec) lookAtArguments() (files []string) {
	for _, arg := range e.Argv[1:] {
		if arg == "" || hasNUL(arg) {
			continue
		}
		path := arg
		if !filepath.IsAbs(arg) {
			path = filepath.Join(e.Dir, arg)
		}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		e.usesDir = e.usesDir || !filepath.IsAbs(arg)
		if info.Mode().IsRegular() {
			files = append(files, path)
		}
	}
	return files
}

// pin notes the content of the program and of files.
func (e *Exec) pin(files []string) error {
	e.pins = []pinned{{what: "program", path: e.path}}
	for _, path := range files {
		e.pins = append(e.pins, pinned{what: "file", path: path})
	}
	for i := range e.pins {
		p := &e.pins[i]
		var err error
		if p.sum, err = fileSum(p.path); err != nil {
			return ErrInvalidTool.Say("The %s %s cannot be read, so it cannot be pinned: %s.", p.what, shown(p.path), cause(err))
		}
	}
	return nil
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

// Path is the program's absolute path, as it was found.
func (e *Exec) Path() string { return e.path }

// Implementation is what a yes to this tool is bound to (spec 1.2): `exec`, with Pin
// then `sha256:` and the program's SHA-256 in hex, and the same for each argument that
// is the path of a regular file; if an argument is a relative path of something that
// exists in Dir, then `dir:` and Dir, since such an argument means something else in
// each folder (docs/adr/0008); then the program's absolute path and the arguments. All
// are parted by one space. An element that is empty or has a space, a double quote, a
// backslash or a control character is written as a JSON string.
func (e *Exec) Implementation() string { return e.impl }

func (e *Exec) describe() (string, error) {
	b := []byte("exec")
	for _, p := range e.pins {
		b = append(append(b, " sha256:"...), p.sum...)
	}
	elements := append([]string{e.path}, e.Argv[1:]...)
	if e.usesDir {
		elements = append([]string{"dir:" + e.Dir}, elements...)
	}
	for _, element := range elements {
		if hasNUL(element) {
			return "", ErrInvalidTool.Say("The argument %s has a NUL character.", shown(element))
		}
		quoted, err := canon.AppendString(nil, element)
		if err != nil {
			return "", ErrInvalidTool.Say("The argument %s is not valid UTF-8.", shown(element))
		}
		b = append(b, ' ')
		if needsQuotes(element) {
			b = append(b, quoted...)
		} else {
			b = append(b, element...)
		}
	}
	return string(b), nil
}

func needsQuotes(arg string) bool {
	return arg == "" || strings.ContainsFunc(arg, func(r rune) bool {
		return r == ' ' || r == '"' || r == '\\' || unicode.IsControl(r)
	})
}

// checkPin refuses a program if it, or a file it is given, is not what was approved.
func (e *Exec) checkPin() error {
	for _, p := range e.pins {
		sum, err := fileSum(p.path)
		switch {
		case err != nil:
			return ErrNotStarted.Say("The program %s was not started: the %s %s is pinned and cannot be read: %s.", shown(e.path), p.what, shown(p.path), cause(err))
		case sum != p.sum:
			return ErrNotStarted.Say("The program %s was not started: the %s %s changed since it was loaded, and it is pinned.", shown(e.path), p.what, shown(p.path)).
				Hint("Load the configuration again; what was approved for the old content then needs a new yes.")
		}
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
		return nil, endedAs{ErrOutcomeUnknown.Say("The program ended with exit status 0, but %s.", err), errEnded}
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
