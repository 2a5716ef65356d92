package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// maxFile bounds a configuration, in bytes.
const maxFile = 1 << 20

// readFile reads the file at path; shown is its name in messages.
func readFile(path, shown string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrConfig.Say("There is no file %s.", shown).Hint("placet init writes an example.")
	case err != nil:
		return nil, unreadable(shown, err)
	case !info.Mode().IsRegular():
		// A pipe or a device could make reading wait for ever.
		return nil, ErrConfig.Say("%s is not an ordinary file.", shown)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(shown, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, unreadable(shown, err)
	case len(text) > maxFile:
		return nil, ErrConfig.Say("%s has more than %d bytes, which is more than a configuration needs.", shown, maxFile)
	}
	return text, nil
}

func unreadable(shown string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return ErrConfig.Say("The file %s cannot be read: %v.", shown, err).Because(err)
}
