package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// queue is a small at-least-once queue: a message is a file in ready/, one that a
// worker has received is in taken/ until the worker is done with it.
type queue struct{ ready, taken string }

func openQueue(dir string) (*queue, error) {
	q := &queue{filepath.Join(dir, "ready"), filepath.Join(dir, "taken")}
	return q, errors.Join(os.MkdirAll(q.ready, 0o700), os.MkdirAll(q.taken, 0o700))
}

// send writes beside ready/ first, so that nobody receives half a message.
func (q *queue) send(name string, message []byte) error {
	part := q.ready + "." + name
	if err := os.WriteFile(part, message, 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(q.ready, name))
}

// receive takes the first message; an empty name says that there is none. Of
// several workers one wins the rename.
func (q *queue) receive() (name string, message []byte, err error) {
	files, err := os.ReadDir(q.ready)
	for _, f := range files {
		taken := filepath.Join(q.taken, f.Name())
		err := os.Rename(filepath.Join(q.ready, f.Name()), taken)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		message, err := os.ReadFile(taken)
		return f.Name(), message, err
	}
	return "", nil, err
}

// done forgets a message.
func (q *queue) done(name string) error { return os.Remove(filepath.Join(q.taken, name)) }

// redeliver puts back what was received and never done, as a queue does when its
// visibility time-out has passed.
func (q *queue) redeliver() error {
	files, err := os.ReadDir(q.taken)
	for _, f := range files {
		err = errors.Join(err, os.Rename(filepath.Join(q.taken, f.Name()), filepath.Join(q.ready, f.Name())))
	}
	return err
}
