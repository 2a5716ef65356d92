//go:build unix

package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a person's keyboard.
type terminal struct {
	f  *os.File
	fd int
}

// terminalOf is the terminal behind a stream, or nil if there is none.
func terminalOf(stream any) *terminal {
	f, ok := stream.(*os.File)
	if !ok {
		return nil
	}
	fd := int(f.Fd())
	if _, err := unix.IoctlGetTermios(fd, ioctlGetTermios); err != nil {
		return nil
	}
	return &terminal{f, fd}
}

// How long a keyboard has to rest before a question is put: a moment always, and
// longer where somebody is found typing.
const (
	tick       = 100 * time.Millisecond // of one look, the terminal's own unit
	restAlways = 2                      // looks
	restTyping = 6
)

var errGone = errors.New("the terminal is gone")

// settle discards what was typed so far and returns once nobody is typing, so
// that no key that was meant for something else answers the next question.
func (t *terminal) settle(ctx context.Context) (err error) {
	old, err := unix.IoctlGetTermios(t.fd, ioctlGetTermios)
	if err != nil {
		return errGone
	}
	look := *old
	look.Lflag &^= unix.ICANON | unix.ECHO // single keys; signals still work
	look.Cc[unix.VMIN], look.Cc[unix.VTIME] = 0, uint8(tick/(100*time.Millisecond))
	if err := unix.IoctlSetTermios(t.fd, ioctlFlushTermios, &look); err != nil {
		return errGone
	}
	defer func() {
		if e := unix.IoctlSetTermios(t.fd, ioctlFlushTermios, old); e != nil {
			err = errGone
		}
	}()
	return t.rest(ctx)
}

func (t *terminal) rest(ctx context.Context) error {
	var keys [256]byte
	need := restAlways
	for quiet := 0; quiet < need; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		began := time.Now()
		n, err := unix.Read(t.fd, keys[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil, n == 0 && time.Since(began) < tick/4: // a terminal that is gone answers at once, and nothing
			return errGone
		case n > 0:
			quiet, need = 0, restTyping
		default:
			quiet++
		}
	}
	return nil
}

// line reads what a person types up to the end of the line. An end of input
// before that, and more than one line at a time as when text is pasted, is an error.
func (t *terminal) line() (string, error) {
	var buf [4096]byte
	for {
		n, err := unix.Read(t.fd, buf[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return "", errGone
		case n == 0 || buf[n-1] != '\n':
			return "", io.EOF
		}
		if more, err := unix.IoctlGetInt(t.fd, ioctlUnread); err != nil || more > 0 {
			return "", errors.New("more than one line came at a time")
		}
		return string(buf[:n-1]), nil
	}
}
