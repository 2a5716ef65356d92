package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/placet-dev/placet/fault"
	"github.com/placet-dev/placet/internal/config"
	"github.com/placet-dev/placet/internal/display"
)

func newInitCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write an example placet.yaml with two real tools and rules",
		Args:  upToOneArg("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return a.init(dir)
		},
	}
}

func (a *app) init(dir string) error {
	files := newFiles{config.DefaultName: {config.Example(), 0o644}}
	for name, text := range config.ExampleFiles() {
		files[name] = newFile{text, 0o755}
	}
	if err := files.write(dir); err != nil {
		return err
	}
	if a.json {
		a.emit(struct {
			Dir   string   `json:"dir"`
			Files []string `json:"files"`
		}{dir, sortedKeys(files)})
		return nil
	}
	for _, name := range sortedKeys(files) {
		a.say("Wrote %s", own(filepath.Join(dir, name)))
	}
	if dir != "." {
		a.say("Go there:           cd %s", own(display.ShellWord(dir)))
	}
	a.say("See the tools:      placet tools")
	a.say("Name your agents:   under agents: in %s, then placet run start --goal TEXT --agent NAME", own(config.DefaultName))
	a.say("Call one:           placet call write_note --args '{\"text\":\"A first note, long enough to need a person.\"}'")
	return nil
}

type newFile struct {
	text []byte
	mode fs.FileMode
}

// newFiles are files to write, by their path from a folder.
type newFiles map[string]newFile

// write makes all of them or none. It replaces nothing.
func (fs newFiles) write(dir string) error {
	for _, name := range sortedKeys(fs) {
		if err := mustBeNew(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	var made []string
	for _, name := range sortedKeys(fs) {
		path := filepath.Join(dir, name)
		if err := writeNew(path, fs[name]); err != nil {
			for _, m := range made {
				os.Remove(m)
			}
			return fault.New(fault.Invalid, "%s cannot be written; nothing was.", path).Because(err)
		}
		made = append(made, path)
	}
	return nil
}

func mustBeNew(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
		if err != nil {
			return fault.New(fault.Invalid, "%s cannot be looked at.", path).Because(err)
		}
		return fault.New(fault.Conflict, "%s is there already; nothing was written.", path).Hint("Give another folder: placet init DIR.")
	}
	return nil
}

func writeNew(path string, f newFile) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return err
	}
	_, err = w.Write(f.text)
	return errors.Join(err, w.Close())
}
