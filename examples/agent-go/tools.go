package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// repo is where the tools work: a folder beside placet.yaml.
const repo = "shop"

// checked is what the check found.
type checked struct {
	OK   bool   `json:"ok"`
	Said string `json:"said,omitempty"`
	// Of a name that is not defined: which, and where.
	Name string `json:"name,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

var undefined = regexp.MustCompile(`(?m)^(?:vet: )?(?:\./)?(\S+\.go):(\d+):\d+: undefined: (\w+)`)

func check(io.Reader) (any, error) {
	test := exec.Command("go", "test", "./...")
	test.Dir = repo
	out, err := test.CombinedOutput()
	if err == nil {
		return checked{OK: true}, nil
	}
	c := checked{Said: string(out[:min(len(out), 2000)])}
	if m := undefined.FindStringSubmatch(string(out)); m != nil {
		c.File, c.Name = m[1], m[3]
		c.Line, err = strconv.Atoi(m[2])
		return c, err
	}
	return c, nil
}

type file struct {
	File string `json:"file"`
}

type contents struct {
	Lines []string `json:"lines"`
}

func readFile(in io.Reader) (any, error) {
	var f file
	if err := json.NewDecoder(in).Decode(&f); err != nil {
		return nil, err
	}
	lines, _, err := linesOf(f.File)
	return contents{lines}, err
}

// linesOf reads a file of the repo, and no other.
func linesOf(name string) (lines []string, path string, err error) {
	if !filepath.IsLocal(name) {
		return nil, "", fmt.Errorf("%s is no file of %s", name, repo)
	}
	path = filepath.Join(repo, name)
	b, err := os.ReadFile(path)
	return strings.Split(string(b), "\n"), path, err
}

// patch replaces one line.
type patch struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// applyPatch replaces the line if it is still the one that people saw.
func applyPatch(in io.Reader) (any, error) {
	var p patch
	if err := json.NewDecoder(in).Decode(&p); err != nil {
		return nil, err
	}
	lines, path, err := linesOf(p.File)
	if err != nil {
		return nil, err
	}
	if p.Line < 1 || p.Line > len(lines) || lines[p.Line-1] != p.Old {
		return nil, fmt.Errorf("line %d of %s is not what the patch was made for; nothing was written", p.Line, p.File)
	}
	lines[p.Line-1] = p.New
	if err := os.WriteFile(path+".new", []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		return nil, err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, err
	}
	return map[string]any{"file": p.File, "line": p.Line}, nil
}
