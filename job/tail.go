package job

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Stream is one of a job's two outputs.
type Stream string

// The streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Tailing says what to read of a job's output.
type Tailing struct {
	Stream   Stream // Default: Stdout.
	Offset   int64
	MaxBytes int  // 1 to 1 MiB. Default: 64 KiB.
	Follow   bool // wait for more where there is none yet
}

// Tail is a piece of a job's output.
type Tail struct {
	Data []byte
	Next int64 // offset to go on from
	End  bool  // the job has ended and there is no more
	Size int64 // of all that this stream has now, in bytes
}

// MaxTail bounds one piece.
const MaxTail = 1 << 20

// Tail reads what a job has printed, secrets masked. Read from offset 0 and go on
// from Next: every byte comes once. [ErrOutputGone] where the job began and what it
// printed is not there any more; [ErrElsewhere] where it lies in another home.
func (s *Supervisor) Tail(ctx context.Context, id string, q Tailing) (Tail, error) {
	if s.misuse != nil {
		return Tail{}, s.misuse
	}
	name, err := q.check()
	if err != nil {
		return Tail{}, err
	}
	var woken <-chan struct{}
	f := follower{s: s}
	defer f.close()
	if q.Follow {
		w, stop := s.conf.Store.Watch(RefOf(id).Stream())
		defer stop()
		woken = w
	}
	for {
		read := s.stored
		if f.news == nil {
			read = s.Get // its runner may be gone: its end is taken in
		}
		j, err := read(ctx, id)
		if err != nil {
			return Tail{}, err
		}
		if j.Launches > 0 && !s.mine(j) {
			return Tail{Next: q.Offset}, s.elsewhere(ctx, j)
		}
		t, err := s.piece(j, name, q)
		if err != nil || len(t.Data) > 0 || t.End || !q.Follow {
			return t, err
		}
		if err := f.wait(ctx, j, woken); err != nil {
			return t, err
		}
	}
}

func (q *Tailing) check() (file string, err error) {
	if q.MaxBytes == 0 {
		q.MaxBytes = 64 << 10
	}
	switch {
	case q.Offset < 0:
		return "", ErrUsage.Say("The offset is negative.").Hint("0 is the beginning.")
	case q.MaxBytes < 0 || q.MaxBytes > MaxTail:
		return "", ErrUsage.Say("At most %d bytes were asked for; it is from 1 to %d.", q.MaxBytes, MaxTail)
	}
	switch q.Stream {
	case Stdout, "":
		return outFile, nil
	case Stderr:
		return errFile, nil
	}
	return "", ErrUsage.Say("There is no stream %q.", q.Stream).Hint("It is stdout or stderr.")
}

// piece reads what is there. The job was read before the file: of one that has ended
// the file is whole.
func (s *Supervisor) piece(j Job, name string, q Tailing) (Tail, error) {
	t := Tail{Next: q.Offset}
	if j.Launches > 0 {
		data, size, err := stretch(s.dir(j).file(name), q.Offset, q.MaxBytes)
		switch {
		case errors.Is(err, fs.ErrNotExist) && j.StartedAt.IsZero():
			// the runner makes the file before the command begins: nothing was printed
		case errors.Is(err, fs.ErrNotExist):
			return t, ErrOutputGone.Say("The output of job %s is gone: its folder has no file %s any more.", j.ID, name).
				Hint("What the job told as events is still there; run it again for its output.")
		case err != nil:
			return t, err
		}
		t.Data, t.Next, t.Size = data, q.Offset+int64(len(data)), size
	}
	t.End = len(t.Data) == 0 && j.Status.Terminal()
	return t, nil
}

// stretch reads at most so many bytes of a file from an offset, and says how many there
// are in all. Behind its end there are none.
func stretch(path string, offset int64, most int) (b []byte, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() <= offset {
		return nil, sizeOf(info), err
	}
	b = make([]byte, min(int64(most), info.Size()-offset))
	n, err := f.ReadAt(b, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], info.Size(), err
}

func sizeOf(info fs.FileInfo) int64 {
	if info == nil {
		return 0
	}
	return info.Size()
}
